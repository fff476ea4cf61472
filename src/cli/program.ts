/** The command tree: names, flags and help. */
import { Command } from 'commander';
import { VERSION } from '../wire/version.ts';
import { addAgent } from './tree/agent.ts';
import { addAlarm } from './tree/alarm.ts';
import { addDaemons } from './tree/daemons.ts';
import { addDoctor } from './tree/doctor.ts';
import { addMachine } from './tree/machine.ts';

/** Builds the tree anew; commander keeps parsed values in it. */
export function buildProgram(): Command {
  const program = new Command('reveille')
    .description('An alarm clock for AI agents.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('--help', 'print this help')
    .showHelpAfterError('(add --help to see what is possible)')
    .exitOverride();
  addDaemons(program);
  addAlarm(program);
  addAgent(program);
  addMachine(program);
  addDoctor(program);
  return program;
}

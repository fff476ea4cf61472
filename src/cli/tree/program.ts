/** The command tree: names, flags and help. */
import type { Command } from 'commander';
import { VERSION } from '../../wire/version.ts';
import type { CliProcess } from '../cli-process.ts';
import { addAgent } from './agent.ts';
import { addAlarm } from './alarm.ts';
import { addApprover, addSubmitter } from './approver.ts';
import { StrictCommand } from './command.ts';
import { addDaemons } from './daemons.ts';
import { addDoctor } from './doctor.ts';
import { addIntent } from './intent.ts';
import { addMachine } from './machine.ts';
import { addMemory } from './memory.ts';
import { addMigrate } from './migrate.ts';
import { addPolicy } from './policy.ts';
import { addProfile } from './profile.ts';
import { addReceipt } from './receipt.ts';
import { addTime } from './time.ts';
import { addTools } from './tools.ts';

/** Builds the tree anew; commander keeps parsed values in it. */
export function buildProgram(process: CliProcess): Command {
  const { stdout, stderr } = process;
  const program = new StrictCommand(process, 'reveille')
    .description('An alarm clock for AI agents.')
    .version(VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('(add --help to see what is possible)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : 80),
      getErrHelpWidth: () => (stderr.isTTY ? stderr.columns : 80),
    });
  addDaemons(program);
  addAlarm(program);
  addAgent(program);
  addMachine(program);
  addIntent(program);
  addApprover(program);
  addSubmitter(program);
  addReceipt(program);
  addTools(program);
  addPolicy(program);
  addProfile(program);
  addTime(program);
  addMemory(program);
  addMigrate(program);
  addDoctor(program);
  return program;
}

/** The command tree: names, flags and help. */

import type { Command } from 'commander';
import { VERSION } from '../../wire/version.ts';
import type { CliProcess } from '../cli-process.ts';
import { addAlarm } from './alarm.ts';
import { StrictCommand } from './command.ts';
import { addDaemons } from './daemons.ts';
import { addAgent, addApprover, addSubmitter, addUser } from './identity.ts';
import { addIntent, addPolicy, addReceipt, addTools } from './intent.ts';
import { addMachine } from './machine.ts';
import { addNotify } from './notify.ts';
import { addChat, addConnect, addLog } from './person.ts';
import { addService } from './service.ts';
import { addProfile, addTime } from './time.ts';
import { addBackup, addCompletion, addDoctor, addInit, addMemory, addMigrate, addOpen, addSpread } from './upkeep.ts';

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
  addInit(program);
  addOpen(program);
  addAlarm(program);
  addChat(program);
  addLog(program);
  addConnect(program);
  addAgent(program);
  addMachine(program);
  addIntent(program);
  addApprover(program);
  addSubmitter(program);
  addUser(program);
  addNotify(program);
  addReceipt(program);
  addTools(program);
  addPolicy(program);
  addProfile(program);
  addTime(program);
  addMemory(program);
  addService(program);
  addBackup(program);
  addMigrate(program);
  addSpread(program);
  addDoctor(program);
  addCompletion(program);
  return program;
}

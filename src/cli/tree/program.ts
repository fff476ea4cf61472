/** The command tree: names, flags and help. */

import type { Command } from 'commander';
import { VERSION } from '../../wire/version.ts';
import type { CliProcess } from '../cli-process.ts';
import { addAlarm } from './alarm.ts';
import { StrictCommand } from './command.ts';
import { addDaemons } from './daemons.ts';
import { addHelp } from './help.ts';
import { addAgent, addApprover, addSubmitter, addUser } from './identity.ts';
import { addIntent, addPolicy, addReceipt, addTools } from './intent.ts';
import { addMachine } from './machine.ts';
import { addChat, addConnect, addLog, addNotify, addProfile, addTime } from './person.ts';
import {
  addBackup,
  addCompletion,
  addConfig,
  addDocs,
  addDoctor,
  addInit,
  addMemory,
  addMigrate,
  addOpen,
  addReshard,
  addService,
  addStatus,
} from './upkeep.ts';

/** Builds a new tree: commander stores parsed values in it. */
export function buildProgram(process: CliProcess): Command {
  const { stdout, stderr } = process;
  const program = new StrictCommand(process, 'reveille')
    .description('alarms, turns and approvals for AI agents')
    .version(VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('(add --help for usage)')
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
  addStatus(program);
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
  addReshard(program);
  addDoctor(program);
  addCompletion(program);
  addConfig(program);
  addDocs(program);
  addHelp(program);
  return program;
}

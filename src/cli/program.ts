/** The command tree: names, flags and help. */
import { Command, type HelpContext } from 'commander';
import { VERSION } from '../wire/version.ts';
import { addAgent } from './tree/agent.ts';
import { addAlarm } from './tree/alarm.ts';
import { addApprover, addSubmitter } from './tree/approver.ts';
import { addDaemons } from './tree/daemons.ts';
import { addDoctor } from './tree/doctor.ts';
import { addIntent } from './tree/intent.ts';
import { addMachine } from './tree/machine.ts';
import { addMemory } from './tree/memory.ts';
import { addMigrate } from './tree/migrate.ts';
import { addPolicy } from './tree/policy.ts';
import { addProfile } from './tree/profile.ts';
import { addReceipt } from './tree/receipt.ts';
import { addTime } from './tree/time.ts';
import { addTools } from './tree/tools.ts';

/** Commander answers `bogus --help` with the help of what is above it, as if it had been understood; here it is refused. */
class StrictCommand extends Command {
  override createCommand(name?: string): Command {
    return new StrictCommand(name);
  }

  override outputHelp(context?: HelpContext | ((text: string) => string)): void {
    const word = this.args.find((arg) => arg !== '--help' && arg !== '-h');
    const names = this.createHelp()
      .visibleCommands(this)
      .map((command) => command.name());
    // Alone, the word is an unknown command like any other, and parsing it says so.
    if (names.length > 0 && word !== undefined && !word.startsWith('-') && !names.includes(word))
      this.parse([word], { from: 'user' });
    super.outputHelp(context as HelpContext);
  }
}

/** Builds the tree anew; commander keeps parsed values in it. */
export function buildProgram(): Command {
  const program = new StrictCommand('reveille')
    .description('An alarm clock for AI agents.')
    .version(VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('(add --help to see what is possible)')
    .exitOverride();
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

/** The command tree: names, flags and help. */
import { Command, type HelpContext } from 'commander';
import { VERSION } from '../../wire/version.ts';
import { addAgent } from './agent.ts';
import { addAlarm } from './alarm.ts';
import { addApprover, addSubmitter } from './approver.ts';
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

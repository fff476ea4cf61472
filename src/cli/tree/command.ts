/**
 * How a command hangs in the tree. The tree itself knows words and flags only; what a command does is imported when it
 * runs, so that `reveille --version` does not load a database.
 */
import { Command, type HelpContext } from 'commander';
import type { Settings } from '../../wire/settings.ts';
import type { CliProcess } from '../cli-process.ts';
import type { CliContext } from '../context.ts';

/**
 * Commander answers `bogus --help` with the help of what is above it, as if it had been understood; here it is refused.
 */
export class StrictCommand extends Command {
  readonly process: CliProcess;
  /** Adds the options that have to be loaded first; once. */
  late: (() => Promise<void>) | undefined;

  constructor(process: CliProcess, name?: string) {
    super(name);
    this.process = process;
  }

  override createCommand(name?: string): Command {
    return new StrictCommand(this.process, name);
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

/** What commander makes of a flag: its text, or whether it was there. */
export type FlagValue = string | boolean | undefined;

/** Reads the flags that override settings, by the names of the variables. */
export type FlagSettings = (flags: Record<string, FlagValue>) => Settings;

export type CommandSpec<Flags> = {
  /** Name and arguments as commander writes them: `show <id>`. */
  usage: string;
  summary: string;
  /** A line that can be typed as it stands. */
  example: string;
  /** Adds options. */
  options?: (command: Command) => Command;
  /** Adds options that have to be loaded first, when the command is about to be parsed. */
  lateOptions?: (command: Command) => Promise<void>;
  settings?: FlagSettings;
  /** Not for people: in no help, completion or page. */
  hidden?: boolean;
  /** Runs although `config.yaml` or the made secrets are damaged, as if they were not there. */
  tolerant?: boolean;
  /** A process of this command that a router has started goes by its environment alone. */
  canBeMachine?: boolean;
  /** @param args the positional arguments, in order */
  run: (context: CliContext, flags: Flags, args: string[]) => Promise<void>;
};

async function takeLate(command: Command): Promise<void> {
  const { late } = command as StrictCommand;
  (command as StrictCommand).late = undefined;
  await late?.();
}

/** Adds the options of a whole tree that are otherwise added when their command is about to be parsed. */
export async function loadLateOptions(command: Command): Promise<void> {
  await takeLate(command);
  for (const below of command.commands) await loadLateOptions(below);
}

/** Adds a command to its parent; every one gets `--json` and an example in its help. */
export function addCommand<Flags>(parent: Command, spec: CommandSpec<Flags>): Command {
  const command = parent.command(spec.usage, { hidden: spec.hidden === true }).description(spec.summary);
  command.option('--json', 'print JSON lines instead of text');
  command.addHelpText('after', `\nExample:\n  $ ${spec.example}`);
  spec.options?.(command);
  const { lateOptions } = spec;
  if (lateOptions) {
    (command as StrictCommand).late = () => lateOptions(command);
    parent.hook('preSubcommand', async (_, chosen) => {
      if (chosen === command) await takeLate(command);
    });
  }
  command.action(async (...received: unknown[]) => {
    // A command below one that has flags itself, such as `neo tools`, finds them there.
    const flags = command.optsWithGlobals<Record<string, unknown>>();
    // Commander hands over the positional arguments, then the options, then the command.
    const args = received
      .slice(0, -2)
      .flat()
      .filter((arg): arg is string => typeof arg === 'string');
    const overrides = spec.settings?.(flags as Record<string, FlagValue>) ?? {};
    const { createContext } = await import('../context.ts');
    const context = await createContext(
      (command as StrictCommand).process,
      { json: flags.json === true },
      overrides,
      spec,
    );
    await spec.run(context, flags as Flags, args);
  });
  return command;
}

/** Adds a group of commands, such as `alarm`. */
export function addGroup(parent: Command, name: string, summary: string): Command {
  return parent.command(name).description(summary);
}

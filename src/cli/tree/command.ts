/**
 * Adds a command to the command tree. The tree holds names and flags only. The code of a command is imported when it
 * runs, so that `reveille --version` does not load a database.
 */
import { Command, type HelpContext } from 'commander';
import type { Settings } from '../../wire/settings.ts';
import type { CliProcess } from '../cli-process.ts';
import type { CliContext } from '../context.ts';

/** Commander answers `unknown --help` with the help of the parent command. This class reports the unknown command. */
export class StrictCommand extends Command {
  readonly process: CliProcess;
  /** Adds the options that have to be loaded first; runs once. */
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
    // Parsing the word alone reports the unknown command.
    if (names.length > 0 && word !== undefined && !word.startsWith('-') && !names.includes(word))
      this.parse([word], { from: 'user' });
    super.outputHelp(context as HelpContext);
  }
}

export type CommandSpec<Flags> = {
  /** Name and arguments as commander writes them: `show <id>`. */
  usage: string;
  summary: string;
  /** Complete command lines for the help: the common case first. */
  examples: readonly string[];
  /** The name of an earlier version. It works for one minor version, with a warning. */
  formerly?: string;
  options?: (command: Command) => Command;
  /** Adds options that have to be loaded first, before the command is parsed. */
  lateOptions?: (command: Command) => Promise<void>;
  /** The variables that flags override, by the flags' names: a text sets its value, and `--no-…` sets 0. */
  settings?: Readonly<Record<string, string>>;
  /** In no help, completion or page: another program runs it. */
  hidden?: boolean;
  /** Runs even when `config.yaml` or the generated secrets are damaged, as if they were missing. */
  tolerant?: boolean;
  /** When a router starts this command, only the environment counts. */
  canBeMachine?: boolean;
  /** @param args the positional arguments, in order */
  run: (context: CliContext, flags: Flags, args: string[]) => Promise<void>;
};

async function takeLate(command: Command): Promise<void> {
  const { late } = command as StrictCommand;
  (command as StrictCommand).late = undefined;
  await late?.();
}

/** Adds the late options of a whole tree now. */
export async function loadLateOptions(command: Command): Promise<void> {
  await takeLate(command);
  for (const below of command.commands) await loadLateOptions(below);
}

function settingsOf(flags: Record<string, unknown>, variables: CommandSpec<unknown>['settings'] = {}): Settings {
  const given = Object.entries(variables).map(([flag, variable]) => {
    const value = flags[flag];
    return [variable, value === false ? '0' : typeof value === 'string' ? value : undefined];
  });
  return Object.fromEntries(given);
}

/** Collects the values of a repeatable option. */
export const several = (value: string, before: readonly string[] = []) => [...before, value];

export const ofUser = (command: Command) =>
  command.option('--user <label>', 'the user (default: the user of this installation)');
/** The user whose entries a list has. */
export const ofOneUser = (command: Command) =>
  command.option('--user <label>', 'only of this user (default: all users)');
export type UserFlags = { user?: string };

/** Text below the flags: complete command lines. */
const examplesText = (examples: readonly string[]) =>
  `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((line) => `  $ ${line}`).join('\n')}`;

/** Adds a command to its parent. Each command has `--json` and examples in its help. */
export function addCommand<Flags>(parent: Command, spec: CommandSpec<Flags>): Command {
  const { formerly, ...current } = spec;
  if (formerly !== undefined) {
    const run: CommandSpec<Flags>['run'] = (context, flags, args) => {
      context.out.remark(`"${formerly}" is now "${current.usage}"; the old name is removed in the next minor version`);
      return current.run(context, flags, args);
    };
    addCommand(parent, { ...current, usage: formerly, hidden: true, run });
  }
  const command = parent.command(spec.usage, { hidden: spec.hidden === true }).description(spec.summary);
  command.option('--json', 'print JSON lines instead of text');
  command.addHelpText('after', examplesText(spec.examples));
  spec.options?.(command);
  const { lateOptions } = spec;
  if (lateOptions) {
    (command as StrictCommand).late = () => lateOptions(command);
    parent.hook('preSubcommand', async (_, chosen) => {
      if (chosen === command) await takeLate(command);
    });
  }
  command.action(async (...received: unknown[]) => {
    // The parent may have flags itself, as `neo` has for `neo tools`.
    const flags = command.optsWithGlobals<Record<string, unknown>>();
    // Commander passes the positional arguments, then the options, then the command.
    const args = received
      .slice(0, -2)
      .flat()
      .filter((arg): arg is string => typeof arg === 'string');
    const overrides = settingsOf(flags, spec.settings);
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
export function addGroup(parent: Command, name: string, summary: string, examples: readonly string[]): Command {
  return parent.command(name).description(summary).addHelpText('after', examplesText(examples));
}

/** The command tree as data, for completions, the manual page and the site. It is read from the real tree. */
import type { EventEmitter } from 'node:events';
import type { Argument, Command, Option } from 'commander';
import { loadLateOptions } from '../tree/command.ts';

/** The kind of a value: files are completed, other values are not. */
export type ValueKind = 'file' | 'folder' | 'other';

export type OutlineOption = {
  /** As typed: `--json`, or `-v` and `--version`. */
  readonly names: readonly string[];
  /** As in the help: `<duration>`, `<tools...>`; `undefined` for a switch. */
  readonly value: string | undefined;
  readonly valueKind: ValueKind | undefined;
  readonly summary: string;
};

export type OutlineCommand = {
  /** Starting with the program's name: `['reveille', 'alarm', 'set']`. */
  readonly words: readonly string[];
  readonly summary: string;
  /** As in the help: `<id>`, `[message] [when]`. */
  readonly values: readonly string[];
  /** The completion of the first value. */
  readonly valueKind: ValueKind | undefined;
  readonly options: readonly OutlineOption[];
  readonly commands: readonly OutlineCommand[];
  /** The help below the flags: remarks and examples. */
  readonly after: string;
};

function kindOf(name: string): ValueKind {
  if (/\bfile\b/.test(name)) return 'file';
  return /\b(?:folder|dir)\b/.test(name) ? 'folder' : 'other';
}

function outlineOption({ flags, long, short, description }: Option): OutlineOption {
  const value = /[<[].*[\]>]/.exec(flags)?.[0];
  const names = [short, long].filter((name) => name != null);
  return { names, value, valueKind: value === undefined ? undefined : kindOf(value), summary: description };
}

function termOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** The text that commander prints after the help of a command. */
function afterOf(command: Command): string {
  let after = '';
  // Commander is an event emitter, which its types do not declare.
  (command as unknown as EventEmitter).emit('afterHelp', {
    error: false,
    command,
    write: (text: string) => (after += text),
  });
  return after.trim();
}

function outlineCommand(command: Command, above: readonly string[]): OutlineCommand {
  const words = [...above, command.name()];
  const help = command.createHelp();
  const [first] = command.registeredArguments;
  return {
    words,
    summary: command.description(),
    values: command.registeredArguments.map(termOf),
    valueKind: first && kindOf(first.name()),
    options: help.visibleOptions(command).map(outlineOption),
    // "help" takes the words of all other commands.
    commands: help
      .visibleCommands(command)
      .filter((below) => below.name() !== 'help')
      .map((below) => outlineCommand(below, words)),
    after: afterOf(command),
  };
}

/** Reads a tree, including late options. */
export async function outlineOf(program: Command): Promise<OutlineCommand> {
  await loadLateOptions(program);
  return outlineCommand(program, []);
}

/** A command and its subcommands, parents first. */
export function everyCommand(outline: OutlineCommand): OutlineCommand[] {
  return [outline, ...outline.commands.flatMap(everyCommand)];
}

/** The usage of a command, as in the first line of its help. */
export function usageOf({ words, values, options, commands }: OutlineCommand): string {
  const some = options.length > 0 ? ['[options]'] : [];
  const below = commands.length > 0 ? ['[command]'] : [];
  return [...words, ...some, ...values, ...below].join(' ');
}

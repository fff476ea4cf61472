/**
 * The command tree as data: what completions and the manual page are made of. It is read off the tree that runs, so that
 * a command or a flag stands in one place.
 */
import type { EventEmitter } from 'node:events';
import type { Argument, Command, Option } from 'commander';
import { loadLateOptions } from '../tree/command.ts';

/** What stands where a value does: files are completed, the rest is for people. */
export type ValueKind = 'file' | 'folder' | 'other';

export type OutlineOption = {
  /** As they are typed: `--json`, or `-v` and `--version`. */
  readonly names: readonly string[];
  /** As the help shows it: `<duration>`, `<tools...>`; `undefined` for a switch. */
  readonly value: string | undefined;
  readonly valueKind: ValueKind | undefined;
  readonly summary: string;
};

export type OutlineCommand = {
  /** From the program's name on: `['reveille', 'alarm', 'set']`. */
  readonly words: readonly string[];
  readonly summary: string;
  /** As the help shows them: `<id>`, `[message] [when]`. */
  readonly values: readonly string[];
  /** What the first of them is completed with. */
  readonly valueKind: ValueKind | undefined;
  readonly options: readonly OutlineOption[];
  readonly commands: readonly OutlineCommand[];
  /** What stands below the flags in the help: remarks and an example. */
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

/** What commander prints after the help of a command. */
function afterOf(command: Command): string {
  let after = '';
  // Commander is an emitter by inheritance that its types do not say.
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
    // "help" is commander's own, and takes the words of all others.
    commands: help
      .visibleCommands(command)
      .filter((below) => below.name() !== 'help')
      .map((below) => outlineCommand(below, words)),
    after: afterOf(command),
  };
}

/** Reads a tree, with the options that are only loaded for the command that has them. */
export async function outlineOf(program: Command): Promise<OutlineCommand> {
  await loadLateOptions(program);
  return outlineCommand(program, []);
}

/** A command and all below it, each before what is below it. */
export function everyCommand(outline: OutlineCommand): OutlineCommand[] {
  return [outline, ...outline.commands.flatMap(everyCommand)];
}

/** How a command is used, as the first line of its help says it. */
export function usageOf({ words, values, options, commands }: OutlineCommand): string {
  const some = options.length > 0 ? ['[options]'] : [];
  const below = commands.length > 0 ? ['[command]'] : [];
  return [...words, ...some, ...values, ...below].join(' ');
}

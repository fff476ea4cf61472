/** The command tree as data, for completions, the manual page (man(7)) and the site. It is read from the real tree. */
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

const hex = (letter: string) => letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');

/** Text for roff: no character is a request, and a dash can be copied. */
function plain(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  const ascii = safe.replace(/[^\n\x20-\x7e]/gu, (letter) => `\\[u${hex(letter)}]`);
  return ascii.replace(/^(?=[.'])/gm, '\\&');
}

const bold = (text: string) => `\\fB${plain(text)}\\fR`;
/** A usage line: words bold, values in italics. */
const usage = (text: string) =>
  text
    .split(' ')
    .map((word) => (/^[<[]/.test(word) ? `\\fI${plain(word)}\\fR` : bold(word)))
    .join(' ');

function option({ names, value, summary }: OutlineOption): string[] {
  const shown = names.map(bold).join(', ');
  return ['.TP', value === undefined ? shown : `${shown} \\fI${plain(value)}\\fR`, plain(summary)];
}

/** Remarks as text, examples as typed. */
function after(text: string): string[] {
  if (text === '') return [];
  return text.split(/\n{2,}/).flatMap((part) => {
    const [first, ...rest] = part.split('\n');
    return /^Examples?:$/.test(first!) ? ['.PP', '.EX', ...rest.map(plain), '.EE'] : ['.PP', plain(part)];
  });
}

/** Shared options are described once. */
const IS_SHARED = new Set(['--json', '--help']);

function section(command: OutlineCommand): string[] {
  const options = command.options.filter(({ names }) => !names.some((name) => IS_SHARED.has(name)));
  return [
    `.SS ${usage(usageOf({ ...command, options }))}`,
    plain(command.summary),
    ...options.flatMap(option),
    ...after(command.after),
  ];
}

/**
 * @param outline of the whole program
 * @param version the program's
 */
export function manPage(outline: OutlineCommand, version: string): string {
  const [program, ...commands] = everyCommand(outline);
  const lines = [
    `.TH REVEILLE 1 "" "Reveille ${plain(version)}" "User Commands"`,
    ...['.SH NAME', `reveille \\- ${plain('alarms, turns and approvals for AI agents')}`],
    ...['.SH SYNOPSIS', usage('reveille <command> [options]')],
    '.SH DESCRIPTION',
    plain(
      'Stores alarms durably, fires them to the millisecond, starts the agent and delivers its message as one turn.',
    ),
    plain('"reveille up" starts all daemons on this computer.'),
    ...['.SH OPTIONS', ...program!.options.flatMap(option)],
    ...['.PP', 'Options of every command:'],
    ...[
      '.TP',
      bold('--json'),
      'print JSON lines instead of text',
      '.TP',
      `${bold('-h')}, ${bold('--help')}`,
      'print the help of the command',
    ],
    ...['.SH COMMANDS', ...commands.flatMap(section)],
    '.SH ENVIRONMENT',
    ...['.TP', bold('REVEILLE_HOME'), plain('the folder of keys, tokens and data (default: ~/.reveille)')],
    ...['.PP', plain('Settings are read from flags, then the environment, then config.yaml there.')],
    ...['.SH FILES', '.TP', plain('~/.reveille'), 'keys, tokens and data of an installation'],
    '.SH EXIT STATUS',
    ...['.TP', bold('0'), 'done', '.TP', bold('1'), 'failed', '.TP', bold('2'), 'used wrongly'],
    ...['.TP', bold('3'), plain('Reveille is not running (doctor, status and service status)')],
  ];
  return `${lines.join('\n')}\n`;
}

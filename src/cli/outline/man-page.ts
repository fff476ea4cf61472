/** The manual page, `reveille.1`, in the macros of man(7). */
import { everyCommand, type OutlineCommand, type OutlineOption, usageOf } from './outline.ts';

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

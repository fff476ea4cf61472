/** The manual page, `reveille.1`, in the macros of man(7). */
import { everyCommand, type OutlineCommand, type OutlineOption, usageOf } from './outline.ts';

const hex = (letter: string) => letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');

/** Text as roff takes it: no character of ours is a request, and a dash can be copied as one. */
function plain(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  const ascii = safe.replace(/[^\n\x20-\x7e]/gu, (letter) => `\\[u${hex(letter)}]`);
  return ascii.replace(/^(?=[.'])/gm, '\\&');
}

const bold = (text: string) => `\\fB${plain(text)}\\fR`;
/** A usage line: words bold, what stands for a value in italics. */
const usage = (text: string) =>
  text
    .split(' ')
    .map((word) => (/^[<[]/.test(word) ? `\\fI${plain(word)}\\fR` : bold(word)))
    .join(' ');

function option({ names, value, summary }: OutlineOption): string[] {
  const shown = names.map(bold).join(', ');
  return ['.TP', value === undefined ? shown : `${shown} \\fI${plain(value)}\\fR`, plain(summary)];
}

/** Remarks as they are, an example as it is typed. */
function after(text: string): string[] {
  if (text === '') return [];
  return text.split(/\n{2,}/).flatMap((part) => {
    const [first, ...rest] = part.split('\n');
    return /^Examples?:$/.test(first!) ? ['.PP', '.EX', ...rest.map(plain), '.EE'] : ['.PP', plain(part)];
  });
}

/** What every command has is said once. */
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
    ...['.SH NAME', `reveille \\- ${plain('an alarm clock for AI agents')}`],
    ...['.SH SYNOPSIS', usage('reveille <command> [options]')],
    '.SH DESCRIPTION',
    plain(
      'Keeps alarms durably, rings them to the millisecond, starts the machine that the agent lives on, and puts the',
    ),
    plain('agent\'s own words back into its conversation. "reveille up" starts everything on this machine.'),
    ...['.SH OPTIONS', ...program!.options.flatMap(option)],
    ...['.PP', 'Every command takes these as well:'],
    ...[
      '.TP',
      bold('--json'),
      'print JSON lines instead of text',
      '.TP',
      `${bold('-h')}, ${bold('--help')}`,
      'print its help',
    ],
    ...['.SH COMMANDS', ...commands.flatMap(section)],
    '.SH ENVIRONMENT',
    ...['.TP', bold('REVEILLE_HOME'), plain('where keys, tokens and data lie (default: ~/.reveille)')],
    ...['.PP', plain('Settings are read from flags, then the environment, then config.yaml there.')],
    ...['.SH FILES', '.TP', plain('~/.reveille'), 'keys, tokens and data of an installation'],
    '.SH EXIT STATUS',
    ...['.TP', bold('0'), 'done', '.TP', bold('1'), 'failed', '.TP', bold('2'), 'used wrongly'],
    ...['.TP', bold('3'), plain('only of "reveille doctor": nothing runs here')],
  ];
  return `${lines.join('\n')}\n`;
}

/** The command line of a turn, from its preset. Nothing of it goes through a shell. */
import { utf8Bytes } from '../../wire/text.ts';
import type { TerminalPreset } from './preset.ts';

/** Linux takes no longer argument (MAX_ARG_STRLEN, 32 pages, with the NUL at its end); other systems take more. */
const LONGEST_ARGUMENT_BYTES = 32 * 4096 - 1;

/** `input`: what the program reads on standard input; `undefined` when the words are an argument. */
export type CommandLine = { arguments: string[]; input: string | undefined };

/** Whether text can be an argument: the kernel ends it at a NUL, and a program takes what begins with a dash for an option. */
function fitsArgument(words: string): boolean {
  return !words.startsWith('-') && !words.includes('\0') && utf8Bytes(words) <= LONGEST_ARGUMENT_BYTES;
}

function unfitBecause(words: string): string {
  if (words.startsWith('-')) return 'begins with a dash, which the program would take for an option';
  if (words.includes('\0')) return 'holds a NUL character, which no argument can';
  return `has ${utf8Bytes(words)} bytes with its payload, and an argument holds ${LONGEST_ARGUMENT_BYTES} at most`;
}

function filled(
  template: readonly string[],
  words: string,
  session: string | undefined,
  more: readonly string[],
): string[] {
  return template.flatMap((entry) => {
    if (entry === '<args>') return more;
    if (entry === '<message>') return [words];
    return [session === undefined ? entry : entry.replaceAll('<session>', () => session)];
  });
}

/**
 * @param session of the conversation that is to go on; without it one begins
 * @param more the machine's own arguments
 * @returns a sentence's end that says why the words cannot be handed over, when they cannot
 */
export function commandLine(
  preset: TerminalPreset,
  words: string,
  session: string | undefined,
  more: readonly string[],
): CommandLine | { impossible: string } {
  const { argument, stdin } = (session === undefined ? undefined : preset.resume) ?? preset.new;
  // Arguments of a process are shown to everybody on the computer; what it reads is not.
  if (stdin) return { arguments: filled(stdin, words, session, more), input: words };
  if (argument && fitsArgument(words)) {
    return { arguments: filled(argument, words, session, more), input: undefined };
  }
  return { impossible: unfitBecause(words) };
}

/** Commands as people type them: words, quotes and backslashes as in a shell, without expansion. Pure. */

export class CommandLineError extends Error {
  override name = 'CommandLineError';
}

/**
 * Splits a command into words. Single quotes keep everything; double quotes keep everything but `\"` and `\\`; outside
 * of quotes a backslash keeps the next character.
 *
 * @throws CommandLineError for an unclosed quote, a backslash at the end, and an empty command
 */
export function splitCommand(text: string): [string, ...string[]] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (quote !== undefined) {
      const next = text[at + 1];
      if (character === quote) quote = undefined;
      else if (quote === '"' && character === '\\' && (next === '"' || next === '\\')) word += text[++at]!;
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === '\\') {
      if (at + 1 === text.length) throw new CommandLineError('must not end with a backslash');
      word = (word ?? '') + text[++at]!;
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== undefined) throw new CommandLineError(`has a ${quote} without its counterpart`);
  if (word !== undefined) words.push(word);
  const [program, ...rest] = words;
  if (program === undefined || program === '') throw new CommandLineError('must name a program');
  return [program, ...rest];
}

/** Characters that a shell would act on. Quotes take their meaning away. */
const ACTED_ON = /[|&;<>`$]/;

/**
 * The first character of a command on which a shell would act, outside of quotes and after no backslash; `undefined`
 * without one. Such a command was probably meant for a shell.
 */
export function shellCharacterIn(text: string): string | undefined {
  const bare = text.replace(/'[^']*'|"(?:[^"\\]|\\.)*"|\\./gs, '');
  return ACTED_ON.exec(bare)?.[0];
}

/** Words as one command, which {@link splitCommand} reads back. */
export function joinCommand(words: readonly string[]): string {
  const written = (word: string) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
  return words.map(written).join(' ');
}

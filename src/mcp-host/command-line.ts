/** A command that carries its arguments in one string, as manifests may write it (contracts §8). No shell ever reads it. */

export class CommandLineError extends Error {
  override name = 'CommandLineError';
}

/**
 * Cuts a command into words. Single quotes keep everything; double quotes keep everything but `\"` and `\\`; outside of quotes a
 * backslash keeps the next character.
 *
 * @throws CommandLineError for a quote without an end, a backslash at the end, and an empty command
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

/**
 * Texts as a person is shown them: nothing in them is invisible, turns the line around, looks like another letter, or can be taken for the
 * question around them. Pure.
 */
import { lookalikes, withBlanksShown, withHiddenShown } from './hidden-characters.ts';

const nameOf = (character: string) => `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;

/** The text with characters that cannot be seen, or that look like others, written by their code points. */
export function visible(text: string): string {
  const shown = withHiddenShown(text.replaceAll('\t', '\\t'));
  const alike = new Set(lookalikes(shown));
  if (alike.size === 0) return shown;
  return [...shown]
    .map((character) => (alike.has(nameOf(character)) ? `\\u{${character.codePointAt(0)!.toString(16)}}` : character))
    .join('');
}

/** A short text inside a line of the question. */
export function inline(text: string): string {
  return visible(JSON.stringify(text));
}

/**
 * JSON, laid out in lines by us, each marked as somebody else's: what ends a line elsewhere stands inside of its texts, and must not look like
 * a line of the layout.
 */
export function quotedJson(json: string): string[] {
  return withBlanksShown(json)
    .split('\n')
    .map((line) => `  | ${visible(line)}`);
}

/** Somebody else's lines, each marked as such. */
export function quoted(text: string): string[] {
  return text.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/).map((line) => `  | ${visible(line)}`);
}

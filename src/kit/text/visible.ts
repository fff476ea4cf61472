/**
 * Texts of others as a person is shown them before he decides: nothing in them is invisible, turns the line around,
 * looks like another letter, or can be taken for the question around them. Every line of theirs begins with a mark, and
 * no line of ours does. The layout does not depend on anybody's terminal: what is signed over is these lines. Pure.
 */
import { createHash } from 'node:crypto';
import { braced, lookalikes, misleading, nameOf, withBlanksShown, withHiddenShown } from './hidden-characters.ts';

/** Begins every line that somebody else wrote. */
export const MARK = '  | ';
/** Begins what is remarked about the line above it; no text of others begins so, for a blank follows their mark. */
export const REMARK = '  |! ';

/** More marks than any script puts on a letter would be drawn over the lines above and below. */
const STACK = /(?<=\p{M}{3})\p{M}/gu;

/**
 * The text with characters that cannot be seen, that look like others, or that pile up, written by their code points.
 */
export function visible(text: string): string {
  return laidOut(text.replaceAll('\t', '\\t'), braced);
}

function laidOut(text: string, write: (character: string) => string): string {
  const shown = withHiddenShown(text, write).replace(STACK, write);
  const alike = new Set(lookalikes(shown));
  if (alike.size === 0) return shown;
  return [...shown].map((character) => (alike.has(nameOf(character)) ? write(character) : character)).join('');
}

/** A part of a text: as it was written, or the code point of a character that would not be seen for what it is. */
export type MarkedPart = { readonly text: string; readonly isOdd: boolean };

/** The same for a page that can set such code points apart from a text that spells them out; tabs stay. */
export function marked(text: string): MarkedPart[] {
  // Neither of these two is left in the text: they are in the table themselves.
  const parts = laidOut(text, (character) => `\u0001${braced(character)}\u0002`).split(/\u0001(.*?)\u0002/su);
  return parts.flatMap((part, at) => (part === '' ? [] : [{ text: part, isOdd: at % 2 === 1 }]));
}

/** Plain ASCII: every other character is written by its code point. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, braced);
}

/**
 * JSON, laid out in lines by us, each marked as somebody else's: what ends a line elsewhere stands inside of its texts,
 * and must not look like a line of the layout.
 */
export function quotedJson(json: string): string[] {
  return withBlanksShown(json)
    .split('\n')
    .map((line) => `${MARK}${visible(line)}`);
}

/** Somebody else's lines, each marked as such. */
export function quoted(text: string): string[] {
  return text.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/).map((line) => `${MARK}${visible(line)}`);
}

const BRIEF_CHARACTERS = 64;

/** What fits into two short lines of a terminal, in plain ASCII; what is left out is said. */
export function brief(text: string): string[] {
  const shown = plain(text);
  if (shown.length <= BRIEF_CHARACTERS) return [`${MARK}${shown}`];
  // Half an escape would be another character.
  const kept = shown.slice(0, BRIEF_CHARACTERS).replace(/\\(?:u(?:\{[0-9a-f]*)?)?$/, '');
  return [`${MARK}${kept}`, `${REMARK}cut; ${shown.length} characters in all`];
}

/** A text in plain ASCII, never cut. */
export function wholeText(text: string): string[] {
  return [`${MARK}${plain(text)}`];
}

/**
 * A member of a call's arguments, or all of them, never cut: JSON in marked lines, with an end of a line after each
 * escaped line feed of a text.
 *
 * @param name of the member; absent for all arguments
 */
export function wholeLines(value: unknown, name?: string): string[] {
  const before = name === undefined ? '' : `${JSON.stringify(name)}: `;
  const json = typeof value === 'string' ? feedsEnded(value) : JSON.stringify(value, null, 2);
  return `${before}${json}`.split('\n').flatMap((line) => {
    const isShort = line.length <= VALUE_CHARACTERS;
    return [...quotedJson(line), ...(isShort && /[^\x20-\x7e]/.test(line) ? [notAscii(line)] : [])];
  });
}

/** A text as JSON, with an end of a line of ours after each line feed. */
const feedsEnded = (text: string) =>
  `"${text
    .split(/(?<=\n)/)
    .map((line) => JSON.stringify(line).slice(1, -1))
    .join('\n')}"`;

const notAscii = (json: string) => `${REMARK}not ASCII: ${plain(json.trim())}`;

const VALUE_CHARACTERS = 240;
const LINES = 120;

const digestOf = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

/** A text as JSON, or its beginning, and what to remark about it. */
function textOf(text: string, remarks: string[]): string {
  if (text.length <= VALUE_CHARACTERS) return JSON.stringify(text);
  remarks.push(`cut: a text of ${text.length} characters, sha256 ${digestOf(text)}`);
  const why = misleading(text);
  if (why !== undefined) remarks.push(`it ${why}`);
  return JSON.stringify(text.slice(0, VALUE_CHARACTERS).toWellFormed());
}

type Line = { readonly json: string; readonly remarks: readonly string[] };

/** The lines of {@link JSON.stringify} with an indentation of two, but for texts that are cut. */
function* linesOf(value: unknown, indent: string, before: Line, after: string): Generator<Line> {
  const remarks = [...before.remarks];
  const line = (json: string): Line => ({ json: `${indent}${before.json}${json}`, remarks });
  if (typeof value !== 'object' || value === null) {
    const json = typeof value === 'string' ? textOf(value, remarks) : JSON.stringify(value);
    yield line(`${json}${after}`);
    return;
  }
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const members: [Line, unknown][] = Array.isArray(value)
    ? value.map((member) => [{ json: '', remarks: [] }, member])
    : Object.entries(value).map(([name, member]) => {
        const about: string[] = [];
        return [{ json: `${textOf(name, about)}: `, remarks: about }, member];
      });
  if (members.length === 0) {
    yield line(`${open}${close}${after}`);
    return;
  }
  yield line(open);
  for (const [at, [name, member]] of members.entries())
    yield* linesOf(member, `${indent}  `, name, at === members.length - 1 ? '' : ',');
  yield { json: `${indent}${close}${after}`, remarks: [] };
}

/** Every text of a JSON value, names of members among them. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}

/**
 * The arguments of a call, in marked lines. A long text is cut, with its length and its digest; what is no plain ASCII
 * is written out below its line; after many lines the rest is only counted.
 */
export function argumentLines(args: unknown): string[] {
  const shown: string[] = [];
  let left = 0;
  for (const { json, remarks } of linesOf(args, '', { json: '', remarks: [] }, '')) {
    if (shown.length >= LINES) {
      left++;
      continue;
    }
    shown.push(...quotedJson(json));
    if (/[^\x20-\x7e]/.test(json)) shown.push(notAscii(json));
    for (const remark of remarks) shown.push(`${REMARK}${remark}`);
  }
  if (left === 0) return shown;
  const json = JSON.stringify(args);
  // Of the texts themselves: in JSON, control characters are escaped.
  const why = textsIn(args)
    .map(misleading)
    .find((found) => found !== undefined);
  return [
    ...[...shown, `${REMARK}${left} more lines; JSON of ${json.length} characters in all, sha256 ${digestOf(json)}`],
    ...(why === undefined ? [] : [`${REMARK}it ${why}`]),
  ];
}

/**
 * Shows external text to an approver: no character is invisible, changes the direction, resembles another letter, or
 * can be mistaken for the question itself. Every external line begins with a mark; the executor's own lines do not. The
 * layout is independent of the terminal, because the signature covers these lines. Pure.
 */
import { createHash } from 'node:crypto';
import { braced, lookalikes, misleading, nameOf, withBlanksShown, withHiddenShown } from './hidden-characters.ts';

/** Begins every line of external text. */
export const MARK = '  | ';
/** Begins a remark about the line above. External text cannot imitate it, because a space follows its mark. */
export const REMARK = '  |! ';

/** More combining marks than any script uses would overlap the lines above and below. */
const STACK = /(?<=\p{M}{3})\p{M}/gu;

/** The text with invisible, misleading and stacked characters written by their code points. */
export function visible(text: string): string {
  return laidOut(text.replaceAll('\t', '\\t'), braced);
}

function laidOut(text: string, write: (character: string) => string): string {
  const shown = withHiddenShown(text, write).replace(STACK, write);
  const alike = new Set(lookalikes(shown));
  if (alike.size === 0) return shown;
  return [...shown].map((character) => (alike.has(nameOf(character)) ? write(character) : character)).join('');
}

/** A part of a text: original text, or the code point of a character that would be misleading. */
export type MarkedPart = { readonly text: string; readonly isEscaped: boolean };

/** The same for a page that distinguishes such code points from text that spells them out; tabs stay. */
export function marked(text: string): MarkedPart[] {
  // The text cannot contain these two characters, because they are in the table.
  const parts = laidOut(text, (character) => `\u0001${braced(character)}\u0002`).split(
    /\u0001([^\u0001\u0002]*)\u0002/u,
  );
  return parts.flatMap((part, at) => (part === '' ? [] : [{ text: part, isEscaped: at % 2 === 1 }]));
}

/** Plain ASCII: every other character is written by its code point. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, braced);
}

/**
 * JSON, laid out in lines by this code and marked as external. Other line separators inside its strings must not look
 * like lines of the layout.
 */
export function quotedJson(json: string): string[] {
  return withBlanksShown(json)
    .split('\n')
    .map((line) => `${MARK}${visible(line)}`);
}

/** External lines, each with the mark. */
export function quoted(text: string): string[] {
  return text.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/).map((line) => `${MARK}${visible(line)}`);
}

const BRIEF_CHARACTERS = 64;

/** The part of a text that fits into two short terminal lines, in plain ASCII, with a remark if it is cut. */
export function brief(text: string): string[] {
  const shown = plain(text);
  if (shown.length <= BRIEF_CHARACTERS) return [`${MARK}${shown}`];
  // A cut escape would be another character.
  const kept = shown.slice(0, BRIEF_CHARACTERS).replace(/\\(?:u(?:\{[0-9a-f]*)?)?$/, '');
  return [`${MARK}${kept}`, `${REMARK}cut; ${shown.length} characters in all`];
}

/** A text in plain ASCII, never cut. */
export function wholeText(text: string): string[] {
  return [`${MARK}${plain(text)}`];
}

/**
 * A member of a call's arguments, or all of them, never cut: JSON in marked lines, with a line break after each escaped
 * line feed of a string.
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

/** A string as JSON, with a line break after each line feed. */
const feedsEnded = (text: string) =>
  `"${text
    .split(/(?<=\n)/)
    .map((line) => JSON.stringify(line).slice(1, -1))
    .join('\n')}"`;

const notAscii = (json: string) => `${REMARK}not ASCII: ${plain(json.trim())}`;

const VALUE_CHARACTERS = 240;
const LINES = 120;

const digestOf = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

/** A string as JSON, or its beginning, with remarks about it. */
function textOf(text: string, remarks: string[]): string {
  if (text.length <= VALUE_CHARACTERS) return JSON.stringify(text);
  remarks.push(`cut: a text of ${text.length} characters, sha256 ${digestOf(text)}`);
  const why = misleading(text);
  if (why !== undefined) remarks.push(`it ${why}`);
  return JSON.stringify(text.slice(0, VALUE_CHARACTERS).toWellFormed());
}

type Line = { readonly json: string; readonly remarks: readonly string[] };

/** The lines of {@link JSON.stringify} with an indentation of two, except for cut strings. */
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

/** Every string of a JSON value, including member names. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}

/**
 * The arguments of a call, in marked lines. A long string is cut, with its length and digest. A line with non-ASCII
 * characters is repeated in ASCII. After many lines, the rest is only counted.
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
  // Checked in the strings themselves, because JSON escapes control characters.
  const why = textsIn(args)
    .map(misleading)
    .find((found) => found !== undefined);
  return [
    ...[...shown, `${REMARK}${left} more lines; JSON of ${json.length} characters in all, sha256 ${digestOf(json)}`],
    ...(why === undefined ? [] : [`${REMARK}it ${why}`]),
  ];
}

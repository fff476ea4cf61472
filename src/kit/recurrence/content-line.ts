/** The content lines of RFC 5545, section 3.1: `NAME;PARAMETER=value:value`, folded over several lines. */
import { withoutTrailing } from '../../wire/text.ts';

/** A content line and where it is in its text. */
export type ContentLine = {
  /** In upper case. */
  readonly name: string;
  /** Names in upper case, values without quotation marks. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
  readonly value: string;
  /** Where the line begins, and the column of its value; both count from 1. */
  readonly line: number;
  readonly column: number;
};

const NAME = /^[A-Za-z0-9-]+/;
const PARAMETER = /;([A-Za-z0-9-]+)=("[^"]*"|[^";:,]*)((?:,(?:"[^"]*"|[^";:,]*))*)/y;

/** A line of another form, and where it fails. */
export type NoContentLine = { readonly line: number; readonly column: number; readonly text: string };

export const isContentLine = (read: ContentLine | NoContentLine): read is ContentLine => 'name' in read;

/** Reads the lines of a text; empty ones are omitted. */
export function* contentLines(text: string): Generator<ContentLine | NoContentLine> {
  // Some programs write CR CR LF, or CR alone.
  const physical = text.split('\n').flatMap((line) => withoutTrailing(line, '\r').split('\r'));
  for (let index = 0; index < physical.length; ) {
    const line = index + 1;
    let unfolded = physical[index++]!;
    while (index < physical.length && /^[ \t]/.test(physical[index]!)) unfolded += physical[index++]!.slice(1);
    if (unfolded.trim() !== '') yield readLine(unfolded, line);
  }
}

function readLine(text: string, line: number): ContentLine | NoContentLine {
  const name = NAME.exec(text)?.[0] ?? '';
  const parameters: [string, string][] = [];
  let at = name.length;
  PARAMETER.lastIndex = at;
  for (let match = PARAMETER.exec(text); match; match = PARAMETER.exec(text)) {
    parameters.push([match[1]!.toUpperCase(), match[2]!.replace(/^"(.*)"$/s, '$1')]);
    at += match[0].length;
  }
  if (name === '' || text[at] !== ':') return { line, column: at + 1, text };
  return { name: name.toUpperCase(), parameters, value: text.slice(at + 1).trim(), line, column: at + 2 };
}

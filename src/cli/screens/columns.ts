/** Text in columns of a terminal: width, shortening and alignment. */
import type { Output } from './output.ts';

/** Characters of one cell each. */
const PLAIN = /^[\x20-\x7e]*$/;

let segmenter: Intl.Segmenter | undefined;

/** The graphemes of a line. The segmenter is created on first use: creating it takes longer than a small command. */
function graphemesOf(line: string): Iterable<{ segment: string }> {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter.segment(line);
}

/** Code points with zero or two cells (Unicode UAX #11: East Asian Wide and Fullwidth, and emoji). */
const ZERO_WIDTH = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]/u;
const DOUBLE_WIDTH =
  /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}])/u;

function cellsOf(grapheme: string): number {
  if (ZERO_WIDTH.test(grapheme)) return 0;
  return DOUBLE_WIDTH.test(grapheme) || grapheme.includes('\ufe0f') ? 2 : 1;
}

/** The number of cells of a line without control characters. */
export function textWidth(line: string): number {
  if (PLAIN.test(line)) return line.length;
  let cells = 0;
  for (const { segment } of graphemesOf(line)) cells += cellsOf(segment);
  return cells;
}

/** The line, shortened to `width` cells with an ellipsis. */
export function fit(line: string, width: number): string {
  if (textWidth(line) <= width) return line;
  let kept = '';
  let cells = 0;
  for (const { segment } of graphemesOf(line)) {
    cells += cellsOf(segment);
    if (cells > width - 1) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

/** Text padded with blanks to `width` cells. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

const GAP = '  ';

/**
 * Aligns rows of cells. Each column is as wide as its widest cell. The last column takes the remaining `width` and is
 * shortened.
 *
 * @param rows cells of one line each, without control characters; the same number in every row
 * @param width cells of the whole line
 */
export function columns(rows: readonly (readonly string[])[], width: number): string[] {
  const last = (rows[0]?.length ?? 0) - 1;
  const widths = Array.from({ length: Math.max(0, last) }, (_, column) =>
    Math.max(...rows.map((row) => textWidth(row[column]!))),
  );
  const used = widths.reduce((sum, cells) => sum + cells + GAP.length, 0);
  return rows.map((row) => {
    const front = row.slice(0, last).map((cell, column) => pad(cell, widths[column]!));
    return [...front, fit(row[last]!, Math.max(8, width - used))].join(GAP).trimEnd();
  });
}

/** Rows under dim headings. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { width, paint }: { width: number; paint: Output['paint'] },
): string[] {
  const [heading, ...lines] = columns([headings, ...rows], width);
  return [paint('dim', heading!), ...lines];
}

/** A number of things: `1 alarm`, `2 alarms`. */
export const counted = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;

/** Wraps plain text at blanks; a word longer than a line stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && textWidth(line) + 1 + textWidth(word) > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

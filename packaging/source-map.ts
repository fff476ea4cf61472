/**
 * Source maps with one entry for each line, so that a stack trace names the line of the TypeScript source. The maps of
 * tsc have every token and are as large as the compiled code (format: ECMA-426).
 */
import { basename } from 'node:path';

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const CONTINUES = 32;

/** The numbers of a segment: base 64, five bits a digit, the lowest bit of a number is its sign. */
function decode(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const character of segment) {
    const digit = DIGITS.indexOf(character);
    value += (digit & (CONTINUES - 1)) << shift;
    shift += 5;
    if (digit & CONTINUES) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}

function encode(numbers: readonly number[]): string {
  const digits = (left: number): string =>
    left < CONTINUES ? DIGITS[left]! : DIGITS[(left & (CONTINUES - 1)) | CONTINUES]! + digits(left >> 5);
  return numbers.map((number) => digits(number < 0 ? (-number << 1) | 1 : number << 1)).join('');
}

/**
 * @param text a source map of one source, as tsc writes it
 * @returns the map of whole lines; its source is named as a neighbour of the compiled file
 */
export function mapByLine(text: string): string {
  const { version, file, sources, mappings } = JSON.parse(text) as Record<string, string> & { sources: string[] };
  // Lines and columns of the source count on from the segment before, of whatever line.
  let [line, column, keptLine, keptColumn] = [0, 0, 0, 0];
  const byLine = mappings!.split(';').map((segments) => {
    let kept = '';
    for (const segment of segments === '' ? [] : segments.split(',')) {
      const [, source, lines, columns] = decode(segment);
      if (source === undefined) continue;
      line += lines!;
      column += columns!;
      if (kept !== '') continue;
      kept = encode([0, 0, line - keptLine, column - keptColumn]);
      [keptLine, keptColumn] = [line, column];
    }
    return kept;
  });
  return JSON.stringify({
    version,
    file,
    sources: sources.map((path) => basename(path)),
    names: [],
    mappings: byLine.join(';'),
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { lineCutter } from './verbatim-stdio.ts';

function cut(maxBytes: number, chunks: readonly Buffer[]): (string | null)[] {
  const seen: (string | null)[] = [];
  const feed = lineCutter(maxBytes, { line: (bytes) => seen.push(bytes.toString()), tooLong: () => seen.push(null) });
  for (const chunk of chunks) feed(chunk);
  return seen;
}

test('lines are complete for any split of the bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat({ max: 40 })), (texts, cuts) => {
      const lines = texts.map((text) => text.replaceAll('\n', ''));
      let rest = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      const chunks = cuts.map((length) => {
        const chunk = rest.subarray(0, length);
        rest = rest.subarray(length);
        return chunk;
      });
      assert.deepEqual(cut(1000, [...chunks, rest]), lines);
    }),
  );
});

test('a line beyond the limit is reported once, and the next lines are read', () => {
  const long = Buffer.alloc(25, 'x');
  assert.deepEqual(cut(10, [Buffer.from('a\n'), long, long, Buffer.from('yy\nb\n')]), ['a', null, 'b']);
  assert.deepEqual(cut(10, [Buffer.from(`${'x'.repeat(11)}\n${'y'.repeat(10)}\n`)]), [null, 'y'.repeat(10)]);
});

test('text after the last line feed waits', () => {
  assert.deepEqual(cut(10, [Buffer.from('a\nb')]), ['a']);
});

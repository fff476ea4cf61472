import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readValues } from '../../src/executor/receipt/receipt-text.ts';
import { verifyReceipt } from '../../src/executor/receipt/verify-receipt.ts';
import { allVectors, type Expected, linesOf, type Vector } from './vectors.ts';

const FILES = ['valid.jsonl', 'broken.jsonl'] as const;
const textOf = (file: string) => readFileSync(join(import.meta.dirname, file), 'utf8');

/** What our verifier says, in the words of the vectors. */
function verdictOf({ text, key }: Vector): Expected {
  // As a file's bytes: a byte order mark at their beginning is no part of the text.
  const decoded = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text));
  const [read, ...more] = readValues(decoded);
  if (read === undefined || 'unreadable' in read || more.length > 0) return { valid: false, property: 'unreadable' };
  const report = verifyReceipt(read.value, { keys: key === undefined ? undefined : [key] });
  const { broken, story, envelopes } = report;
  if (!broken) return { valid: true, envelopes, ended: story.ending !== undefined, last_kind: String(story.lastKind) };
  const { seq, property, rule } = broken;
  return { valid: false, seq, property, ...(rule === undefined ? {} : { rule }) };
}

for (const file of FILES) {
  test(`the verifier says of each vector of ${file} what is expected`, () => {
    const vectors = textOf(file)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Vector);
    for (const vector of vectors) assert.deepEqual(verdictOf(vector), vector.expected, vector.name);
    assert.equal(new Set(vectors.map(({ name }) => name)).size, vectors.length);
  });
}

test('the checked-in vectors are those that the generator makes', () => {
  const made = allVectors();
  assert.deepEqual(Object.keys(made), [...FILES]);
  for (const file of FILES) assert.equal(textOf(file), linesOf(made[file]!), `${file}: run npm run receipt-vectors`);
});

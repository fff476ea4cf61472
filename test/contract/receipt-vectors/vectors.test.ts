import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { endOf } from '../../../src/executor/receipt/chain-state.ts';
import { readValues } from '../../../src/executor/receipt/receipt-text.ts';
import { type ReceiptReport, verifyReceipt, verifyReceipts } from '../../../src/executor/receipt/verify-receipt.ts';
import { allVectors, type Expected, linesOf, type Vector } from './vectors.ts';

const FILES = ['valid.jsonl', 'broken.jsonl'] as const;
const textOf = (file: string) => readFileSync(join(import.meta.dirname, file), 'utf8');

/** The verdict of this project's verifier, in the vocabulary of the vectors, by both of its methods. */
async function verdictsOf({ text, key, approver }: Vector): Promise<Expected[]> {
  // As a file's bytes: a byte order mark at their beginning is no part of the text.
  const decoded = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text));
  const given = {
    keys: key === undefined ? undefined : [key],
    approvers: approver === undefined ? undefined : [approver],
  };
  const read = [...readValues(decoded)];
  const here = read.map((each) => ('value' in each ? verifyReceipt(each.value, given) : undefined));
  const aside = (await Array.fromAsync(verifyReceipts(read, given))).map((each) =>
    'report' in each ? each.report : undefined,
  );
  assert.deepEqual(aside, here);
  return [here, aside].map(verdictOf);
}

function verdictOf([report, ...more]: (ReceiptReport | undefined)[]): Expected {
  if (report === undefined || more.length > 0) return { valid: false, property: 'unreadable' };
  const { broken, state, envelopes } = report;
  if (!broken) return { valid: true, envelopes, ended: endOf(state) !== undefined, last_kind: String(state.lastKind) };
  const { seq, property, rule } = broken;
  return { valid: false, seq, property, ...(rule === undefined ? {} : { rule }) };
}

for (const file of FILES) {
  test(`the verifier gives the expected verdict for each vector of ${file}, by both of its methods`, async () => {
    const vectors = textOf(file)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Vector);
    for (const vector of vectors)
      assert.deepEqual(await verdictsOf(vector), [vector.expected, vector.expected], vector.name);
    assert.equal(new Set(vectors.map(({ name }) => name)).size, vectors.length);
  });
}

test("the checked-in vectors match the generator's output", () => {
  const made = allVectors();
  assert.deepEqual(Object.keys(made), [...FILES]);
  for (const file of FILES) assert.equal(textOf(file), linesOf(made[file]!), `${file}: run npm run receipt-vectors`);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { condense, partsOf, withIdentifiers } from './summary.ts';
import { tokensOf } from './tokens.ts';

test('the validator adds identifiers that a summary dropped, once, and leaves a complete one unchanged', () => {
  const source =
    'Pay 0xAbC0000000000000000000000000000000dEf123 from /a/b.txt, then 0xAbC0000000000000000000000000000000dEf123.';
  const faithful = 'Paying 0xAbC0000000000000000000000000000000dEf123 out of /a/b.txt.';
  assert.equal(withIdentifiers(source, faithful), faithful);
  const mended = withIdentifiers(source, 'Paying somebody.');
  assert.match(mended, /^Paying somebody\.\n\nIdentifiers of the original .*verbatim:\n0xAbC\w+\n\/a\/b\.txt$/);
});

test('a signed address is kept up to the length that servers accept, a run of data is not', () => {
  const signed = `https://store.example/report.pdf?X-Token=${'a1B2'.repeat(600)}`;
  const data = 'a1B2'.repeat(600);
  assert.equal(withIdentifiers(`Get ${signed} and ${data}.`, 'Get it.').split('\n').at(-1), signed);
});

test('a text is cut into parts of the requested size, and none of it is lost', () => {
  const text = `${'word '.repeat(2000)}\n${'x'.repeat(5000)}\n\n${'𝒳é'.repeat(500)}`;
  const parts = partsOf(text, 300);
  assert.equal(parts.join(''), text);
  for (const part of parts) assert.ok(tokensOf(part) <= 310, String(tokensOf(part)));
});

test('a part that cannot be summarized is cut with a visible notice', async () => {
  const failures: unknown[] = [];
  const text = `begin ${'word '.repeat(1000)} end`;
  const shorter = await condense(
    text,
    () => Promise.reject(new Error('no')),
    1_000_000,
    (error) => failures.push(error),
  );
  assert.equal(failures.length, 1);
  assert.match(shorter, /^begin word.*\n\[\d+ characters could not be summarized and are left out\]\n.*word {2}end$/s);
});

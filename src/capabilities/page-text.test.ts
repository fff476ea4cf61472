import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../kit/clock/clock.ts';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { DEADLINE_MS, PageReader } from './page-text.ts';

const base = 'https://site.example/a/';
const signal = new AbortController().signal;

test('a page is converted to text, also with unclosed elements, up to 512 nested elements', async (t) => {
  const reader = new PageReader(systemClock);
  t.after(() => reader.close());
  assert.equal(
    await reader.read({ html: '<h1>Hi</h1><p>see <a href="../b">there</a>', base }, signal),
    'HI\n\nsee there [https://site.example/b]',
  );
  assert.equal((await reader.read({ html: '<p>x'.repeat(5000), base }, signal)).match(/x/g)?.length, 5000);
  const nested = (depth: number) => `${'<div>'.repeat(depth)}x`;
  assert.equal(await reader.read({ html: nested(199), base }, signal), 'x');
  assert.doesNotMatch(await reader.read({ html: nested(512), base }, signal), /left out/);
  // The parser's time grows with the square of the depth: 3.5 MB kept it busy for minutes, beyond the deadline.
  for (const depth of [513, 700_000])
    assert.match(
      await reader.read({ html: `<p>before${nested(depth)}`, base }, signal),
      /^before\n\n(?:\.\.\.\n\n)?\[The rest of the page is omitted: it has more than 512 nested elements; raw: true returns/,
    );
});

test('a conversion is ended at its deadline and when the call is cancelled, and the next page is read', async (t) => {
  const clock = new ManualClock();
  const reader = new PageReader(clock);
  t.after(() => reader.close());
  const large = { html: '<p>x'.repeat(1_000_000), base };
  const late = reader.read(large, signal);
  const given = new AbortController();
  const dropped = reader.read(large, given.signal);
  // The thread needs many turns of the event loop to start, so nothing else of it can end before.
  await new Promise(setImmediate);
  clock.advance(DEADLINE_MS);
  await assert.rejects(late, { code: 'unavailable', message: /took more than 15 s/ });
  given.abort();
  await assert.rejects(dropped, /the call was cancelled/);
  assert.equal(await reader.read({ html: '<p>next', base }, signal), 'next');
});

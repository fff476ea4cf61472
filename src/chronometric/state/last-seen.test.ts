import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { carriesOn, lastSeen } from './open-state.ts';
import { REAL_BREAK_MS } from './state.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** A day of epoch milliseconds that ends at its 28th hour, which is 04:00 on the next. */
const DAY_END = 28 * HOUR;
const call = (hour: number) => ({ at: hour * HOUR, dayEnd: DAY_END });
const span = (from: number, to: number) => ({ from: from * HOUR, to: to * HOUR });

test('a call is a sighting, and beats carry it on until a real break', () => {
  const spans = [span(8, 10), span(10.05, 11), span(11.5, 12)];
  assert.equal(lastSeen(call(9), spans, 13 * HOUR), 11 * HOUR, 'over three minutes, not over thirty');
  assert.equal(lastSeen(call(9), [], 13 * HOUR), 9 * HOUR, 'no beats');
  assert.equal(lastSeen(call(11.25), spans, 13 * HOUR), 11.25 * HOUR, 'a call in a break that went on');
  assert.equal(lastSeen(call(11.45), spans, 13 * HOUR), 12 * HOUR);
});

test('a gap of exactly five minutes is a break, and a millisecond less is none', () => {
  const until = 10 * HOUR;
  const next = (gap: number) => [span(8, 10), { from: until + gap, to: until + gap + HOUR }];
  assert.equal(lastSeen(call(9), next(REAL_BREAK_MS), 13 * HOUR), until);
  assert.equal(lastSeen(call(9), next(REAL_BREAK_MS - 1), 13 * HOUR), until + REAL_BREAK_MS - 1 + HOUR);
});

test('beats do not carry a session over the end of the logical day', () => {
  assert.equal(lastSeen(call(26), [span(20, 30)], 31 * HOUR), DAY_END);
});

test('a call after a break carries on what was open, one on the next morning does not', () => {
  const evening = [span(8, 12), span(13, 23)];
  assert.equal(carriesOn(call(11), evening, 14 * HOUR), true, 'after lunch');
  assert.equal(carriesOn(call(20), evening, 33 * HOUR), false, 'after a night');
  assert.equal(carriesOn(call(20), [...evening, span(32, 33)], 33 * HOUR), false, 'with beats in the morning');
  assert.equal(carriesOn(call(20), [span(8, 33)], 33 * HOUR), true, 'after a night without sleep');
});

test('a session is never seen after now or after the end of the day, and more beats never make it earlier', () => {
  const hour = fc.integer({ min: 0, max: 40 * 60 }).map((minute) => minute * MINUTE);
  const spans = fc
    .uniqueArray(hour, { maxLength: 12 })
    .map((hours) => hours.toSorted((one, other) => one - other))
    .map((hours) =>
      Array.from({ length: hours.length >> 1 }, (_, n) => ({ from: hours[2 * n]!, to: hours[2 * n + 1]! })),
    );
  fc.assert(
    fc.property(hour, spans, hour, fc.nat(5), (at, list, now, fewer) => {
      const made = { at, dayEnd: DAY_END };
      const seen = lastSeen(made, list, now);
      assert.ok(seen <= now && seen <= DAY_END);
      assert.ok(seen >= Math.min(at, now, DAY_END));
      assert.ok(lastSeen(made, list.slice(0, fewer), now) <= seen);
    }),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { continuesSession, lastSeen } from './open-state.ts';
import { REAL_BREAK_MS } from './state.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The end of the logical day in epoch milliseconds: hour 28, 04:00 on the next day. */
const DAY_END = 28 * HOUR;
const sign = (hour: number) => ({ at: hour * HOUR, dayEnd: DAY_END });
const span = (from: number, to: number) => ({ from: from * HOUR, to: to * HOUR });

test('a session continues with the presence on the day of its last sign, also over breaks', () => {
  const spans = [span(8, 10), span(10.05, 11), span(11.5, 12)];
  assert.equal(lastSeen(sign(9), spans, 13 * HOUR), 12 * HOUR);
  assert.equal(lastSeen(sign(9), [], 13 * HOUR), 9 * HOUR, 'no beats');
  assert.equal(lastSeen(sign(12.5), spans, 13 * HOUR), 12.5 * HOUR, 'no presence after the sign');
  assert.equal(lastSeen(sign(9), [span(8, 10), span(28.5, 30)], 31 * HOUR), 10 * HOUR, 'the day after');
});

test('for a prompt on the next day a gap of five minutes is a break, and a millisecond less is not', () => {
  const until = 27 * HOUR;
  const carried = (gap: number) => continuesSession(sign(20), [span(20, 27)], until + gap + HOUR);
  const stays = (gap: number) =>
    continuesSession(sign(20), [span(20, 27), { from: until + gap, to: 29 * HOUR }], 29 * HOUR);
  assert.equal(carried(HOUR), false);
  assert.equal(stays(REAL_BREAK_MS), false);
  assert.equal(stays(REAL_BREAK_MS - 1), true);
});

test('beats do not continue a session over the end of the logical day', () => {
  assert.equal(lastSeen(sign(26), [span(20, 30)], 31 * HOUR), DAY_END);
});

test('a prompt after a break continues the open session, and a prompt on the next morning does not', () => {
  const evening = [span(8, 12), span(13, 23)];
  assert.equal(continuesSession(sign(11), evening, 14 * HOUR), true, 'after lunch');
  assert.equal(continuesSession(sign(20), evening, 33 * HOUR), false, 'after a night');
  assert.equal(continuesSession(sign(20), [...evening, span(32, 33)], 33 * HOUR), false, 'with beats in the morning');
  assert.equal(continuesSession(sign(20), [span(8, 33)], 33 * HOUR), true, 'after a night without sleep');
});

test('the last sign is never after now or after the end of the day, and more beats never make it earlier', () => {
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

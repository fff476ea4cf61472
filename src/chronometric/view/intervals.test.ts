import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Session } from '../state/state.ts';
import { extentOf, intervalsOf, lengthOf, within } from './day-view.ts';

const MINUTE = 60_000;
const DAY = { from: 0, to: 1440 * MINUTE };

/** Intervals of minutes; some are before or after the day. */
const bounds = fc
  .tuple(fc.integer({ min: -300, max: 1800 }), fc.integer({ min: 0, max: 400 }))
  .map(([from, length]) => ({ from: from * MINUTE, to: (from + length) * MINUTE }));
const sessions = fc.array(bounds, { maxLength: 8 }).map((all) =>
  all.map(
    ({ from, to }, at): Session => ({
      id: String(at),
      intent: '',
      startedAt: from,
      lastSeenAt: to,
      ...(at % 3 === 0 ? {} : { endedAt: to, ending: 'ended' as const }),
      activeMs: 0,
      activeSinceBreakMs: 0,
    }),
  ),
);
const spans = fc.array(bounds, { maxLength: 12 });

test('intervals are adjacent, from the first to the last sign of presence within the day', () => {
  fc.assert(
    fc.property(sessions, spans, (known, active) => {
      const intervals = intervalsOf(DAY, known, active);
      const signs = [...known.map(extentOf), ...active]
        .map((sign) => within(DAY, sign))
        .filter((sign) => sign.to > sign.from);
      assert.equal(intervals.length === 0, signs.length === 0);
      if (intervals.length === 0) return;
      assert.equal(intervals[0]!.from, Math.min(...signs.map(({ from }) => from)));
      assert.equal(intervals.at(-1)!.to, Math.max(...signs.map(({ to }) => to)));
      for (const [at, interval] of intervals.entries()) {
        assert.ok(interval.to > interval.from);
        const next = intervals[at + 1];
        if (!next) continue;
        assert.equal(interval.to, next.from);
        assert.ok(interval.kind !== next.kind || interval.sessionId !== next.sessionId, 'neighbours differ');
      }
    }),
  );
});

test('every minute agrees with the spans and sessions that contain it, also with overlaps', () => {
  fc.assert(
    fc.property(sessions, spans, (known, active) => {
      const intervals = intervalsOf(DAY, known, active);
      const holds = (instant: number) => (part: { from: number; to: number }) =>
        part.from <= instant && instant < part.to;
      for (let minute = 0; minute < 1440; minute += 7) {
        const instant = (minute + 0.5) * MINUTE;
        const interval = intervals.find(holds(instant));
        const owners = known.filter((session) => holds(instant)(extentOf(session)));
        assert.equal(interval?.kind === 'active', active.some(holds(instant)));
        assert.equal(interval?.sessionId !== undefined, owners.length > 0);
        const owner = owners.find(({ id }) => id === interval?.sessionId);
        if (owner) assert.ok(owners.every(({ startedAt }) => Math.max(0, startedAt) <= Math.max(0, owner.startedAt)));
      }
    }),
    { numRuns: 60 },
  );
});

test('active time counts once, also with overlapping spans', () => {
  const span = { from: 60 * MINUTE, to: 90 * MINUTE };
  const intervals = intervalsOf(DAY, [], [span, { from: 70 * MINUTE, to: 80 * MINUTE }, span]);
  assert.deepEqual(intervals, [{ kind: 'active', ...span }]);
  assert.equal(lengthOf(intervals), 30 * MINUTE);
});

test('a day with 20,000 sessions and spans is cut quickly', () => {
  const many = Array.from({ length: 20_000 }, (_, at) => ({ from: at * 4000, to: at * 4000 + 2000 }));
  const known = many.map(
    ({ from, to }, at): Session => ({
      ...{ id: String(at), intent: '', startedAt: from, lastSeenAt: to, endedAt: to, ending: 'ended' },
      ...{ activeMs: 0, activeSinceBreakMs: 0 },
    }),
  );
  assert.equal(intervalsOf(DAY, known, many).length, 39_999);
});

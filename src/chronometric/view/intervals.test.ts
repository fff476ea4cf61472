import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Session } from '../state/state.ts';
import { extentOf, intervalsOf, lengthOf, within } from './intervals.ts';

const MINUTE = 60_000;
const DAY = { from: 0, to: 1440 * MINUTE };

/** Minutes, some of them before the day and after it. */
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

test('stretches follow one another without a gap, from the first sign of somebody to the last, inside the day', () => {
  fc.assert(
    fc.property(sessions, spans, (known, active) => {
      const stretches = intervalsOf(DAY, known, active);
      const signs = [...known.map(extentOf), ...active]
        .map((sign) => within(DAY, sign))
        .filter((sign) => sign.to > sign.from);
      assert.equal(stretches.length === 0, signs.length === 0);
      if (stretches.length === 0) return;
      assert.equal(stretches[0]!.from, Math.min(...signs.map(({ from }) => from)));
      assert.equal(stretches.at(-1)!.to, Math.max(...signs.map(({ to }) => to)));
      for (const [at, stretch] of stretches.entries()) {
        assert.ok(stretch.to > stretch.from);
        const next = stretches[at + 1];
        if (!next) continue;
        assert.equal(stretch.to, next.from);
        assert.ok(stretch.kind !== next.kind || stretch.sessionId !== next.sessionId, 'neighbours differ');
      }
    }),
  );
});

test('every minute is what the spans and the sessions say of it, whatever lies over what', () => {
  fc.assert(
    fc.property(sessions, spans, (known, active) => {
      const stretches = intervalsOf(DAY, known, active);
      const holds = (instant: number) => (part: { from: number; to: number }) =>
        part.from <= instant && instant < part.to;
      for (let minute = 0; minute < 1440; minute += 7) {
        const instant = (minute + 0.5) * MINUTE;
        const stretch = stretches.find(holds(instant));
        const owners = known.filter((session) => holds(instant)(extentOf(session)));
        assert.equal(stretch?.kind === 'active', active.some(holds(instant)));
        assert.equal(stretch?.sessionId !== undefined, owners.length > 0);
        const owner = owners.find(({ id }) => id === stretch?.sessionId);
        if (owner) assert.ok(owners.every(({ startedAt }) => Math.max(0, startedAt) <= Math.max(0, owner.startedAt)));
      }
    }),
    { numRuns: 60 },
  );
});

test('active time is counted once, however many spans there are of it', () => {
  const span = { from: 60 * MINUTE, to: 90 * MINUTE };
  const stretches = intervalsOf(DAY, [], [span, { from: 70 * MINUTE, to: 80 * MINUTE }, span]);
  assert.deepEqual(stretches, [{ kind: 'active', ...span }]);
  assert.equal(lengthOf(stretches), 30 * MINUTE);
});

test('a day full of the shortest sessions and spans is cut in no time', () => {
  const many = Array.from({ length: 20_000 }, (_, at) => ({ from: at * 4000, to: at * 4000 + 2000 }));
  const known = many.map(
    ({ from, to }, at): Session => ({
      ...{ id: String(at), intent: '', startedAt: from, lastSeenAt: to, endedAt: to, ending: 'ended' },
      ...{ activeMs: 0, activeSinceBreakMs: 0 },
    }),
  );
  assert.equal(intervalsOf(DAY, known, many).length, 39_999);
});

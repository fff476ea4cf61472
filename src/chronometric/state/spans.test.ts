import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import {
  type ActiveSpan,
  ASLEEP_AFTER_MS,
  activeBetween,
  activeSinceBreak,
  BEAT_MS,
  knownAt,
  REAL_BREAK_MS,
} from './state.ts';
import { stateBench } from './testing/state-bench.ts';

const MINUTE = 60_000;
const START = new ManualClock().now();

/** The same by brute force: sorted, and joined when they are close. */
function joinedSpans(intervals: readonly ActiveSpan[]): ActiveSpan[] {
  const spans: { from: number; to: number }[] = [];
  for (const { from, to } of intervals.toSorted((one, other) => one.from - other.from)) {
    const last = spans.at(-1);
    if (last && from - last.to <= ASLEEP_AFTER_MS) last.to = Math.max(last.to, to);
    else spans.push({ from, to });
  }
  return spans;
}

/** Beats of a few hours, in seconds; most of them cover no time before the beat. */
const interval = fc
  .tuple(fc.integer({ min: 0, max: 10_000 }), fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })))
  .map(([at, back]) => ({ from: START + (at - back) * 1000, to: START + at * 1000 }));

test('beats of several processes add up to the same spans in any order, repeated, and with a clock that jumps', (t) => {
  const { state } = stateBench(t);
  let day = 0;
  fc.assert(
    fc.property(fc.array(interval, { maxLength: 40 }), (intervals) => {
      // Separate days in one file, far apart.
      const offset = day++ * 48 * 60 * MINUTE;
      const moved = intervals.map(({ from, to }) => ({ from: from + offset, to: to + offset }));
      for (const { from, to } of [...moved, ...moved.slice(0, 5)]) state.beat(to, from);
      const from = START + offset - 60 * MINUTE;
      assert.deepEqual(state.spansBetween(from, from + 24 * 60 * MINUTE), joinedSpans(moved));
    }),
    { numRuns: 60 },
  );
});

const spans = fc.array(interval, { maxLength: 30 }).map(joinedSpans);
const instant = fc.integer({ min: -1000, max: 11_000 }).map((second) => START + second * 1000);

test('active time equals a count second by second', () => {
  fc.assert(
    fc.property(spans, instant, instant, (list, from, to) => {
      let seconds = 0;
      for (let at = from; at < to; at += 1000) if (list.some((span) => span.from <= at && at < span.to)) seconds++;
      assert.equal(activeBetween(list, from, to), seconds * 1000);
    }),
    { numRuns: 60 },
  );
});

test('active time adds up over any cut, is never negative, and never longer than the interval', () => {
  fc.assert(
    fc.property(spans, instant, instant, instant, (list, ...instants) => {
      const [from, middle, to] = instants.toSorted((one, other) => one - other) as [number, number, number];
      const whole = activeBetween(list, from, to);
      assert.equal(activeBetween(list, from, middle) + activeBetween(list, middle, to), whole);
      assert.ok(whole >= 0 && whole <= to - from);
      assert.ok(to === from || activeBetween(list, to, from) === 0, 'the wrong way round');
    }),
  );
});

test('the count since a break is the active time since the last gap of five minutes, and no shorter gap resets it', () => {
  fc.assert(
    fc.property(spans, instant, instant, (list, one, other) => {
      const [from, to] = one < other ? [one, other] : [other, one];
      // The last instant of which the five minutes that follow are all without a span.
      let began = from;
      const ends = list.map((span) => span.to).filter((end) => end >= from && end <= to);
      for (const end of [from, ...ends]) {
        const next = Math.min(to, ...list.map((span) => span.from).filter((at) => at > end));
        const covered = list.some((span) => span.from <= end && span.to > end);
        if (!covered && next - end >= REAL_BREAK_MS) began = Math.max(began, next);
      }
      assert.equal(activeSinceBreak(list, from, to), activeBetween(list, began, to));
    }),
  );
});

test('eight hours of sleep are not active, and a lock of four minutes resets nothing', () => {
  const at = (minutes: number) => START + minutes * MINUTE;
  const night = [
    { from: at(0), to: at(60) },
    { from: at(540), to: at(570) },
  ];
  assert.equal(activeBetween(night, at(0), at(570)), 90 * MINUTE);
  assert.equal(activeSinceBreak(night, at(0), at(570)), 30 * MINUTE);
  const locked = [
    { from: at(0), to: at(50) },
    { from: at(54), to: at(70) },
  ];
  assert.equal(activeSinceBreak(locked, at(0), at(70)), 66 * MINUTE);
  assert.equal(activeSinceBreak(locked, at(0), at(75)), 0, 'on a break');
});

test('the time since the last beat counts while the next one is due, and the future does not', () => {
  const spans = [{ from: START, to: START + MINUTE }];
  const late = START + MINUTE + 2 * BEAT_MS;
  assert.deepEqual(knownAt(late, spans), [{ from: START, to: late }]);
  assert.deepEqual(knownAt(late + 1, spans), spans);
  assert.deepEqual(knownAt(START + 1, spans), [{ from: START, to: START + 1 }]);
  assert.deepEqual(knownAt(START - 1, spans), []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSchedule } from '../../../src/chronos/alarm/schedule.ts';
import type { AlarmCreateBody } from '../../../src/chronos/client.ts';
import { definitionOf } from './answers.ts';
import { names, targetsOf } from './targets.ts';

const NOON = Date.UTC(2026, 2, 28, 12);
const HOUR = 3_600_000;

const asked = (body: object) => definitionOf({ wake_message: 'w', ...body } as AlarmCreateBody);
const series = (cron_expr: string, more: object = {}) => asked({ kind: 'cron', cron_expr, ...more });
const instants = (definition: ReturnType<typeof asked>, until: number) =>
  targetsOf(definition, NOON, until).map(({ at }) => at);

test('a single alarm has one target: its time, or its delay after the create', () => {
  const at = { at: NOON + 90_500, spreadMs: 0 };
  assert.deepEqual(targetsOf(asked({ kind: 'once', delay_seconds: 90.5 }), NOON, NOON), [at]);
  assert.deepEqual(targetsOf(asked({ kind: 'once', fire_at: new Date(at.at).toISOString() }), 0, 0), [at]);
});

test('an interval counts from the create, for all spellings of its duration', () => {
  for (const expression of ['@every 90m', '@every 1h30m', '@EVERY 1.5h', ' @every  5400s ', '@every 5400000ms'])
    assert.deepEqual(instants(series(expression), NOON + 4 * HOUR), [NOON + 1.5 * HOUR, NOON + 3 * HOUR], expression);
});

test('an expression is passed to the oracle, in its zone and across a clock change', () => {
  const berlin = series('30 2 * * *', { timezone: 'Europe/Berlin' });
  // On the night of 29 March 2026 there is no 02:30: it is due in the first minute after the gap.
  assert.deepEqual(instants(berlin, NOON + 48 * HOUR), [Date.UTC(2026, 2, 29, 1), Date.UTC(2026, 2, 30, 0, 30)]);
  assert.deepEqual(instants(series('@Daily'), NOON + 24 * HOUR), [Date.UTC(2026, 2, 29)]);
});

test("the product's schedules are equal to the oracle's", () => {
  for (const expression of ['*/7 3-9 * * *', '15 10 * * 1-5', '@hourly', '@every 17m', '0 0 29 2 *']) {
    const { next } = compileSchedule(expression, 'America/New_York', NOON);
    const expected: number[] = [];
    for (let at = next(NOON); at !== undefined && at <= NOON + 72 * HOUR; at = next(at)) expected.push(at);
    assert.deepEqual(instants(series(expression, { timezone: 'America/New_York' }), NOON + 72 * HOUR), expected);
  }
});

test('jitter widens a target, but not beyond the next one', () => {
  const wide = targetsOf(series('@every 1m', { jitter_seconds: 90 }), NOON, NOON + 120_000);
  assert.deepEqual(
    wide.map(({ spreadMs }) => spreadMs),
    [60_000, 90_000],
  );
});

test('no target is due after the end of a series', () => {
  const ends_at = new Date(NOON + HOUR).toISOString();
  assert.deepEqual(instants(series('@every 30m', { ends_at }), NOON + 9 * HOUR), [NOON + HOUR / 2, NOON + HOUR]);
});

test('a definition names the times on its targets, counted from anywhere within a span', () => {
  const noon = { from: NOON, until: NOON };
  const around = { from: NOON, until: NOON + 500 };
  const single = asked({ kind: 'once', delay_seconds: 60 });
  assert.deepEqual(
    [59_999, 60_000, 60_500, 60_501].map((ms) => names(single, around, NOON + ms)),
    [false, true, true, false],
  );
  const fixed = asked({ kind: 'once', fire_at: new Date(NOON + 60_000).toISOString(), jitter_seconds: 1 });
  assert.deepEqual(
    [59_999, 60_000, 61_000, 61_001].map((ms) => names(fixed, noon, NOON + ms)),
    [false, true, true, false],
  );
  const interval = series('@every 1m');
  assert.deepEqual(
    [0, 500, 60_000, 60_501, 119_999, 180_250].map((ms) => names(interval, around, NOON + ms)),
    [false, false, true, false, false, true],
  );
  const nightly = series('0 0 * * *', { jitter_seconds: 10 });
  const midnight = Date.UTC(2026, 2, 29);
  assert.deepEqual(
    [-1, 0, 10_000, 10_001].map((ms) => names(nightly, noon, midnight + ms)),
    [false, true, true, false],
  );
});

test('a time is named exactly when it is within a target', () => {
  const definitions = [series('*/10 * * * *'), series('@every 7m', { jitter_seconds: 30 }), series('5 13 * * *')];
  for (const definition of definitions) {
    const targets = targetsOf(definition, NOON, NOON + 3 * HOUR);
    for (let at = NOON + 60_000; at < NOON + 2 * HOUR; at += 5_000) {
      const within = targets.some(
        (target) => at >= target.at && at <= target.at + (definition.jitterSeconds ?? 0) * 1000,
      );
      assert.equal(names(definition, { from: NOON, until: NOON }, at), within, new Date(at).toISOString());
    }
  }
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Occurrence } from './alarm.ts';
import { type AlarmTiming, catchUp, isScheduledFor, nextOccurrence, onlyOccurrence } from './series.ts';
import { ALARM_ID, type Body, NOW, setAlarm } from './testing/alarm-state.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const series = (more: Body = {}): AlarmTiming => setAlarm({ kind: 'cron', cron_expr: '0 * * * *', ...more }).alarm;
const instant = (ms: number) => new Date(ms).toISOString();

function first(alarm: AlarmTiming): Occurrence {
  const occurrence = nextOccurrence(alarm, NOW);
  assert.ok(occurrence);
  return occurrence;
}

describe('the next occurrence', () => {
  test('it is strictly after, at the instants of the expression, with the fire id of its instant', () => {
    const occurrence = first(series());
    assert.equal(occurrence.scheduledFor, NOW + 50 * MINUTE);
    assert.equal(occurrence.fireId, `${ALARM_ID}@${NOW + 50 * MINUTE}`);
    assert.equal(nextOccurrence(series(), occurrence.nominal)?.nominal, NOW + 110 * MINUTE);
  });

  test('ends_at belongs to the series, the instant after it does not', () => {
    const alarm = series({ ends_at: instant(NOW + 110 * MINUTE) });
    assert.equal(nextOccurrence(alarm, NOW + HOUR)?.nominal, NOW + 110 * MINUTE);
    assert.equal(nextOccurrence(alarm, NOW + 110 * MINUTE), undefined);
  });

  test('max_fires counts what the schedule has delivered', () => {
    const alarm = series({ max_fires: 2 });
    assert.ok(nextOccurrence({ ...alarm, scheduledFires: 1 }, NOW));
    assert.equal(nextOccurrence({ ...alarm, scheduledFires: 2 }, NOW), undefined);
  });

  test('@every counts from the anchor, whatever the given instant', () => {
    const alarm = series({ cron_expr: '@every 90s' });
    assert.equal(nextOccurrence(alarm, NOW + 100_000)?.nominal, NOW + 180_000);
  });
});

const expressions = fc.constantFrom(
  '* * * * *',
  '*/7 * * * *',
  '0 9 * * 1-5',
  '@every 10s',
  '@every 1h30m',
  '@daily',
  '15,45 */2 * * *',
);
const zones = fc.constantFrom('UTC', 'Europe/Dublin', 'Australia/Lord_Howe', 'America/Santiago');
const timings = fc
  .record({
    cronExpr: expressions,
    timezone: zones,
    jitterSeconds: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3600 })),
    from: fc.integer({ min: 0, max: 400 * 24 * 60 }).map((minutes) => NOW + minutes * MINUTE),
  })
  .map(({ from, cronExpr, ...timing }) => ({
    alarm: { ...series({ cron_expr: cronExpr }), ...timing, anchor: from },
    from,
  }));

/** The first occurrences of a series after an instant. */
function occurrences(alarm: AlarmTiming, from: number, count: number): Occurrence[] {
  const found: Occurrence[] = [];
  let nominal = from;
  while (found.length < count) {
    const next = nextOccurrence(alarm, nominal);
    if (!next) break;
    found.push(next);
    nominal = next.nominal;
  }
  return found;
}

test('jitter never reorders a series: instants strictly increase, none is early, each names one occurrence', () => {
  fc.assert(
    fc.property(timings, ({ alarm, from }) => {
      const found = occurrences(alarm, from, 20);
      assert.equal(found.length, 20);
      assert.equal(new Set(found.map(({ fireId }) => fireId)).size, 20);
      found.forEach(({ nominal, scheduledFor }, index) => {
        assert.ok(scheduledFor >= nominal && scheduledFor < nominal + alarm.jitterSeconds * 1000 + 1);
        if (index > 0) assert.ok(scheduledFor > found[index - 1]!.scheduledFor);
        assert.ok(isScheduledFor(alarm, scheduledFor));
        if (scheduledFor !== nominal) assert.ok(!isScheduledFor(alarm, nominal));
      });
    }),
    { numRuns: 200 },
  );
});

test('the instant of a single alarm moves by its jitter and counts as scheduled', () => {
  const { alarm } = setAlarm({ kind: 'once', delay_seconds: 60, jitter_seconds: 3600 });
  const { scheduledFor, nominal } = onlyOccurrence(alarm);
  assert.equal(nominal, NOW + MINUTE);
  assert.ok(scheduledFor >= nominal && scheduledFor < nominal + HOUR);
  assert.ok(isScheduledFor(alarm, scheduledFor));
  assert.ok(!isScheduledFor(alarm, scheduledFor + 1));
});

describe('after downtime', () => {
  test('the latest occurrence replaces the passed ones and counts them', () => {
    const alarm = series();
    const late = catchUp(alarm, first(alarm), NOW + 5 * HOUR);
    assert.equal(late?.scheduledFor, NOW + 4 * HOUR + 50 * MINUTE);
    assert.equal(late?.missedCount, 4);
  });

  test('an occurrence that has only just passed is the latest itself', () => {
    const alarm = series();
    assert.equal(catchUp(alarm, first(alarm), NOW + 109 * MINUTE), undefined);
    assert.equal(catchUp(alarm, first(alarm), NOW + 110 * MINUTE)?.missedCount, 1);
  });

  test('misses add up over two outages', () => {
    const alarm = series();
    const once = catchUp(alarm, first(alarm), NOW + 3 * HOUR)!;
    assert.equal(once.missedCount, 2);
    assert.equal(catchUp(alarm, once, NOW + 5 * HOUR)?.missedCount, 4);
  });

  test('a series that ended meanwhile fires once more, for its last occurrence', () => {
    const alarm = series({ ends_at: instant(NOW + 2 * HOUR) });
    const late = catchUp(alarm, first(alarm), NOW + 9 * HOUR);
    assert.deepEqual([late?.scheduledFor, late?.missedCount], [NOW + 110 * MINUTE, 1]);
  });

  test('single alarms and triggers need no catch-up', () => {
    const { alarm, occurrences } = setAlarm({ kind: 'once', delay_seconds: 60 });
    assert.equal(catchUp(alarm, occurrences[0]!, NOW + HOUR), undefined);
    assert.equal(catchUp(series(), { ...first(series()), source: 'trigger' }, NOW + 9 * HOUR), undefined);
  });

  test('wide jitter on a short interval does not fire missed occurrences one by one', () => {
    const alarm = series({ cron_expr: '@every 10s', jitter_seconds: 3600 });
    const late = catchUp(alarm, first(alarm), NOW + 30 * MINUTE)!;
    assert.ok(late.scheduledFor > NOW + 30 * MINUTE - 20_000);
    assert.ok(late.missedCount >= 177);
  });

  test('agrees with an iteration over the series: the last due occurrence and the number before it', () => {
    fc.assert(
      fc.property(
        timings,
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: -1, max: 1 }),
        ({ alarm, from }, n, off) => {
          const walked = occurrences(alarm, from, 62);
          const now = walked[n]!.scheduledFor + off;
          const come = walked.filter(({ scheduledFor }) => scheduledFor <= now);
          const late = catchUp(alarm, walked[0]!, now);
          if (come.length <= 1) assert.equal(late, undefined);
          else assert.deepEqual(late, { ...come.at(-1)!, missedCount: come.length - 1 });
        },
      ),
      { numRuns: 200 },
    );
  });
});

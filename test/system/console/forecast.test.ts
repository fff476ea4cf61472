/** The forecast of the console with its real schedule engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CALENDARS } from '../../../src/chronos/alarm/holidays.ts';
import { compileSchedule } from '../../../src/chronos/alarm/schedule.ts';
import { scheduleEngine } from '../../../src/cli/access/console-backend.ts';
import type { SeriesOf } from '../../../src/console/backend.ts';
import { forecast as forecastOf } from '../../../src/console/forecast.ts';
import type { AlarmView } from '../../../src/wire/alarm.ts';
import type { Budget } from '../../../src/wire/budget.ts';

const DAY_MS = 86_400_000;
const ZONE = 'Europe/Berlin';
/** A Tuesday; the clock goes back on the Sunday after it. */
const NOW = Date.parse('2026-10-20T10:07:00+02:00');
const UNTIL = NOW + 7 * DAY_MS;

/** The members of an alarm that the forecast reads. */
function alarm(id: string, cron: string, more: Partial<AlarmView> = {}): AlarmView {
  const next = compileSchedule(cron, ZONE, NOW).next(NOW)!;
  const read = { id, cron_expr: cron, timezone: ZONE, next_fire_at: new Date(next).toISOString(), fire_count: 0 };
  return { ...read, urgent: false, ...more } as AlarmView;
}
const { seriesOf } = scheduleEngine(NO_CALENDARS);
const forecast = (alarms: readonly AlarmView[], budget?: Budget, engine = seriesOf) =>
  forecastOf({ alarms, now: NOW, until: UNTIL, zone: ZONE, budget, seriesOf: engine });

test('every fire of a dense series is in the cells of its days, and the figures are their sums', () => {
  const { cells, total, perDay, deferred } = forecast([alarm('a', '*/15 * * * *'), alarm('b', '0 9 * * *')]);
  // 7 days of 96, the repeated hour of Sunday is within them; and 7 mornings.
  assert.equal(total, 7 * 96 + 7);
  assert.deepEqual(perDay, [55, 97, 97, 97, 97, 101, 97, 38]);
  assert.equal(
    cells.reduce((sum, { count }) => sum + count, 0),
    total,
  );
  assert.equal(deferred, 0);
});

for (const [what, cron, more] of [
  ['every minute', '* * * * *', {}],
  ['in working hours', '*/2 9-17 * * 1-5', {}],
  ['by an interval', '@every 7m', {}],
  ['with an end', '* * * * *', { ends_at: '2026-10-23T12:30:30Z' }],
  ['so many times', '* * * * *', { max_fires: 5000, fire_count: 1 }],
] as const)
  test(`counted per cell is the same as simulated one by one: ${what}`, () => {
    const one = forecast([alarm('a', cron, more)]);
    assert.notEqual(one.deferred, undefined);
    const many = Array.from({ length: 15 }, (_, n) => alarm(`a${n}`, cron, more));
    const all = forecast([...many, alarm('dense', '@every 10s')], { wakes_per_hour: 1 });
    assert.equal(all.deferred, undefined, 'too many to simulate');
    const first = all.cells.filter(({ alarm: { id } }) => id === 'a0');
    const outline = ({ day, first: from, last, count }: (typeof first)[number]) => [day, from, last, count];
    const repeatedHour = (cells: typeof first) => cells.filter(({ day }) => day !== 5).map(outline);
    assert.deepEqual(repeatedHour(first), repeatedHour([...one.cells]));
    assert.equal(
      first.reduce((sum, { count }) => sum + count, 0),
      one.total,
    );
  });

test('a thousand dense alarms are counted in full with a bounded number of questions to the engine', () => {
  let asked = 0;
  const counting: SeriesOf = (schedule) => {
    const series = seriesOf(schedule);
    return {
      next: (after) => {
        asked++;
        return series.next(after);
      },
      latest: (after, until) => {
        asked++;
        return series.latest(after, until);
      },
    };
  };
  const alarms = Array.from({ length: 1000 }, (_, n) => alarm(`a${n}`, '*/15 * * * *'));
  const { total, perDay, cellsAre, cells } = forecast(alarms, undefined, counting);
  assert.equal(total, 672_000);
  assert.deepEqual(
    perDay,
    [55, 96, 96, 96, 96, 100, 96, 37].map((count) => count * 1000),
  );
  assert.equal(cellsAre, 'days');
  assert.equal(cells.length, 8000);
  assert.ok(asked < 20_000, `${asked} questions`);
});

test('rules and holidays are forecast, a rule from its own start', () => {
  const day = Date.parse('2026-10-22') / DAY_MS;
  const days = [day];
  const calendars = { daysOf: (name: string) => (name === 'office' ? days : undefined), names: () => ['office'] };
  const { seriesOf: engine } = scheduleEngine(calendars);
  const perDay = (of: AlarmView) => forecast([of], undefined, engine).perDay;
  const rule = (rrule: string, more: Partial<AlarmView> = {}) => {
    const series = engine({ rrule, zone: ZONE, anchor: NOW, start: NOW, holidays: more.holidays });
    const times = { starts_at: new Date(NOW).toISOString(), next_fire_at: new Date(series.next(NOW)!).toISOString() };
    return { ...alarm('r', '@daily'), kind: 'rrule', cron_expr: undefined, rrule, ...times, ...more } as AlarmView;
  };
  const everyOtherDay = 'FREQ=DAILY;INTERVAL=2;BYHOUR=12;BYMINUTE=0;BYSECOND=0';
  assert.deepEqual(perDay(rule(everyOtherDay)), [1, 0, 1, 0, 1, 0, 1, 0]);
  assert.deepEqual(perDay(rule(everyOtherDay, { holidays: 'office' })), [1, 0, 0, 0, 1, 0, 1, 0]);
  assert.equal(forecast([rule('FREQ=MINUTELY;INTERVAL=10;COUNT=9')]).total, 9);
  assert.equal(forecast([{ ...alarm('c', '0 9 * * *'), holidays: 'office' }], undefined, engine).total, 6);
});

test('the budget defers by quiet hours, by wakes an hour and a day, and by the gap between two', () => {
  const reasons = (budget: Budget, cron = '*/15 * * * *') => {
    const counts = new Map<string, number>();
    for (const { conflicts } of forecast([alarm('a', cron)], budget).cells)
      for (const { why, count } of conflicts) counts.set(why, (counts.get(why) ?? 0) + count);
    return Object.fromEntries(counts);
  };
  // 22:00 to 7:00 in the zone: 36 fires a night, 40 in the night with the repeated hour.
  assert.deepEqual(reasons({ quiet: { from: '22:00', to: '07:00', timezone: ZONE } }), { 'quiet hours': 7 * 36 + 4 });
  assert.deepEqual(reasons({ wakes_per_hour: 3 }), { 'more than 3 wakes in an hour': 168 });
  assert.deepEqual(reasons({ wakes_per_day: 10 }, '0 * * * *'), { 'more than 10 wakes in a day': 168 - 70 });
  assert.deepEqual(reasons({ min_gap_seconds: 1000 }), { 'less than 1000 s after another wake': 336 });
});

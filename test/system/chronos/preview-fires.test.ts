/** A preview names the instants at which the alarm then fires. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Calendars } from '../../../src/chronos/alarm/holidays.ts';
import { previewAlarm } from '../../../src/chronos/alarm/preview.ts';
import { LIMITS } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { alarmPreviewRequestSchema } from '../../../src/wire/alarm.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { type Dice, diceOf, rounds } from '../../support/random/random.ts';
import { createBench } from './dispatch-bench.ts';

const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const FIRES = 4;

const ZONES = [
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'Pacific/Apia'],
  ...['America/Santiago', 'Africa/Cairo'],
];
const PHRASES = [
  ...['every weekday at 9:15 and 17:40', 'every other monday at 10', 'last friday of the month at 17:00'],
  ...['every 2 hours between 9 and 17 on weekdays', 'every day at 2:30', 'every hour at :15', 'every 45 minutes'],
  ...[
    'in 20 minutes',
    'end of next month at 9:00',
    'first weekday of every quarter at 9:05 and 16:50',
    'every morning',
  ],
];

const pick = <T>(dice: Dice, list: readonly T[]): T => list[dice(list.length)]!;
const some = (dice: Dice, most: number, size: number, from = 0) =>
  [...new Set(Array.from({ length: 1 + dice(most) }, () => from + dice(size)))]
    .sort((one, other) => one - other)
    .join();

function cronOf(dice: Dice): string {
  if (dice(5) === 0) return `@every ${1 + dice(200)}m`;
  const minute = pick(dice, ['*/15', '30', some(dice, 3, 60)]);
  const hour = pick(dice, ['*', '2', '*/3', some(dice, 4, 24)]);
  return `${minute} ${hour} ${pick(dice, ['*', '*', some(dice, 3, 28, 1)])} * ${pick(dice, ['*', '1-5', '0,6'])}`;
}

function ruleOf(dice: Dice): string {
  const frequency = pick(dice, ['MINUTELY', 'HOURLY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']);
  const isShort = frequency === 'MINUTELY' || frequency === 'HOURLY';
  const days = pick(dice, ['', '', ';BYDAY=MO,TH', ';BYDAY=SU', ...(isShort ? [] : [';BYMONTH=3,10,11'])]);
  const times = isShort && dice(2) === 0 ? '' : `;BYHOUR=${some(dice, 3, 24)};BYMINUTE=${some(dice, 2, 60)}`;
  const count = pick(dice, ['', '', `;COUNT=${1 + dice(6)}`]);
  return `RRULE:FREQ=${frequency};INTERVAL=${1 + dice(isShort ? 90 : 3)}${days}${times};BYSECOND=0${count}`;
}

function scheduleOf(dice: Dice): Record<string, unknown> {
  const timezone = pick(dice, ZONES);
  const holidays = dice(3) === 0 ? { holidays: 'office' } : {};
  const kind = dice(3);
  if (kind === 0) return { kind: 'cron', cron_expr: cronOf(dice), timezone, ...holidays };
  if (kind === 1) {
    const rules = Array.from({ length: 1 + dice(2) }, () => ruleOf(dice));
    return { kind: 'rrule', rrule: rules.join('\n'), timezone, ...holidays };
  }
  return { when: pick(dice, PHRASES), timezone };
}

test('a preview names the instants at which the alarm then fires, for random schedules', async (t) => {
  const dice = diceOf(t);
  // Every third or fourth day for forty years.
  const days = Array.from({ length: 4_000 }, (_, n) => Date.UTC(2026, 0, 1) / DAY + n * 4 + dice(2));
  const calendars: Calendars = {
    daysOf: (name) => (name === 'office' ? days : undefined),
    names: () => ['office'],
  };
  const bench = await createBench(t, { calendars });
  const { clock, waker } = bench;
  let checked = 0;
  for (let left = rounds(150, 500); left > 0; ) {
    // Clock changes are in these months, so time often moves to their days.
    if (dice(3) === 0) clock.jump(dice(20) * DAY + dice(86_400) * SECOND);
    const schedule = scheduleOf(dice);
    const request = parseOrThrow(alarmPreviewRequestSchema, { ...schedule, count: FIRES });
    const about = JSON.stringify({ ...schedule, now: new Date(clock.now()).toISOString() });
    let previewed: string[];
    try {
      const { occurrences, reading } = previewAlarm(request, { now: clock.now(), limits: LIMITS, calendars });
      previewed = occurrences.map(({ at }) => at);
      const locals = occurrences.map(({ local }) => local);
      assert.deepEqual(reading.next, locals.slice(0, 3), about);
    } catch (error) {
      assert.ok(error instanceof ReveilleError, about);
      await assert.rejects(bench.set(schedule), { message: error.message }, about);
      continue;
    }
    left--;
    const isOnce = previewed.length === 1 && schedule.when !== undefined;
    const { id } = await bench.set(isOnce ? schedule : { ...schedule, max_fires: FIRES });
    const before = waker.wakes.length;
    for (const at of previewed) {
      const due = Date.parse(at);
      if (due - clock.now() > SECOND) clock.jump(due - clock.now() - SECOND);
      await clock.advance(due - clock.now() + SECOND);
    }
    const wakes = waker.wakes.slice(before);
    const fired = wakes.map(({ claim }) => new Date(claim.occurrence.scheduledFor).toISOString());
    assert.deepEqual(fired, previewed, about);
    for (const { claim, at } of wakes)
      assert.ok(at >= claim.occurrence.scheduledFor && at <= claim.occurrence.scheduledFor + SECOND, about);
    assert.equal((await bench.state(id)).alarm.status, 'fired', about);
    checked += fired.length;
  }
  t.diagnostic(`${checked} fires as previewed`);
});

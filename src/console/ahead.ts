/** What lies ahead: when the agent will be woken, and what stands against it. Pure. */
import { quietUntil } from '../kit/clock/quiet-hours.ts';
import { dayAt } from '../kit/clock/wall-clock.ts';
import type { AlarmView } from '../wire/alarm.ts';
import type { Budget } from '../wire/budget.ts';
import { instantOf } from './alarm-words.ts';
import type { RingsOf } from './desk.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Of one series; more often than that, the rest is counted with what was seen. */
const MOST_OF_ONE = 700;

export type AheadRing = {
  readonly at: number;
  readonly alarm: AlarmView;
  /** Why it will not ring then, and when it may, epoch ms. */
  readonly conflict?: { readonly why: string; readonly until?: number };
};

export type Ahead = {
  readonly rings: readonly AheadRing[];
  /** Days of the reader's calendar, the first one today; how many rings each has. */
  readonly perDay: readonly number[];
  /** Series that ring too often to be laid out whole. */
  readonly cut: readonly AlarmView[];
};

function ringsOfOne(alarm: AlarmView, until: number, ringsOf: RingsOf): number[] {
  const first = instantOf(alarm.next_fire_at);
  if (first === undefined || first > until) return [];
  if (alarm.cron_expr === undefined) return [first];
  const left = alarm.max_fires === undefined ? MOST_OF_ONE : Math.max(0, alarm.max_fires - alarm.fire_count);
  const end = Math.min(until, instantOf(alarm.ends_at) ?? until);
  const atMost = Math.min(MOST_OF_ONE, left) - 1;
  const schedule = { cron: alarm.cron_expr, zone: alarm.timezone ?? 'UTC', after: first, until: end, atMost };
  return [first, ...(atMost > 0 ? ringsOf(schedule) : [])];
}

/** How many of `taken` lie within `span` before an instant. */
const within = (taken: readonly number[], at: number, span: number) => taken.filter((one) => one > at - span).length;

/** What the budget says of a wake, when those in `taken` came before it. */
function conflictOf(at: number, { urgent }: AlarmView, taken: readonly number[], budget: Budget | undefined) {
  if (budget === undefined) return undefined;
  const { quiet, wakes_per_hour: hourly, wakes_per_day: daily, min_gap_seconds: gap } = budget;
  const until = quiet && !urgent ? quietUntil(quiet, at) : undefined;
  if (until !== undefined) return { why: 'quiet hours', until };
  if (hourly !== undefined && within(taken, at, HOUR_MS) >= hourly)
    return { why: `more than ${hourly} wakes in an hour` };
  if (daily !== undefined && within(taken, at, DAY_MS) >= daily) return { why: `more than ${daily} wakes in a day` };
  const last = taken.at(-1);
  if (gap !== undefined && last !== undefined && at - last < gap * 1000)
    return { why: `less than ${gap} s after another wake`, until: last + gap * 1000 };
  return undefined;
}

/** @param alarms those that ring before `until`, the one that rings first first */
export function lookAhead(given: {
  alarms: readonly AlarmView[];
  now: number;
  until: number;
  zone: string;
  budget: Budget | undefined;
  ringsOf: RingsOf;
}): Ahead {
  const { alarms, now, until, zone, budget, ringsOf } = given;
  const cut: AlarmView[] = [];
  const all = alarms.flatMap((alarm) => {
    const rings = ringsOfOne(alarm, until, ringsOf);
    if (rings.length >= MOST_OF_ONE) cut.push(alarm);
    return rings.map((at) => ({ at, alarm }));
  });
  all.sort((one, other) => one.at - other.at);
  const taken: number[] = [];
  const rings = all.map(({ at, alarm }): AheadRing => {
    const conflict = conflictOf(at, alarm, taken, budget);
    if (conflict) return { at, alarm, conflict };
    taken.push(at);
    return { at, alarm };
  });
  const today = dayAt(zone, now);
  const days = dayAt(zone, until) - today + 1;
  const perDay = Array.from({ length: days }, () => 0);
  for (const { at } of rings) perDay[Math.max(0, dayAt(zone, at) - today)]!++;
  return { rings, perDay, cut };
}

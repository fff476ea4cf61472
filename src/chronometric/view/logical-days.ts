/** Logical days: they start with the user's day and have the date of their start. Pure. */
import { dayAt, dayBeganAt, nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import { DAYS, type Day } from '../../wire/chronometric-words.ts';
import type { MinuteOfDay } from '../profile/profile.ts';
import type { Bounds } from './stretches.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export type LogicalDate = Bounds & {
  /** `2026-06-15` */
  readonly date: string;
  readonly day: Day;
};

/** The start of days: IANA zone and minute. */
export type DayRule = { readonly timezone: string; readonly begins: MinuteOfDay };

/** The logical day of an instant. */
export function dayOf({ timezone, begins }: DayRule, instant: number): LogicalDate {
  const number = dayAt(timezone, instant, begins);
  return {
    date: new Date(number * DAY_MS).toISOString().slice(0, 10),
    // 1 January 1970 was a Thursday.
    day: DAYS[(((number + 3) % 7) + 7) % 7]!,
    from: dayBeganAt(timezone, instant, begins),
    to: nextDayAfter(timezone, instant, begins),
  };
}

/** An instant in the middle of the logical day of a date; `undefined` for a date that the zone does not have. */
export function instantOf({ timezone, begins }: DayRule, date: string): number | undefined {
  const midnight = Date.parse(`${date}T00:00:00Z`);
  // The 30th of February rolls over into March.
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return undefined;
  const wall = midnight + begins * MINUTE_MS + DAY_MS / 2;
  const instant = wall - offsetAt(timezone, wall);
  return dayAt(timezone, instant, begins) === midnight / DAY_MS ? instant : undefined;
}

/** The logical day of an instant and the days before it, oldest first. */
export function daysUntil(rule: DayRule, instant: number, count: number): readonly LogicalDate[] {
  const days = [dayOf(rule, instant)];
  while (days.length < count) days.unshift(dayOf(rule, days[0]!.from - 1));
  return days;
}

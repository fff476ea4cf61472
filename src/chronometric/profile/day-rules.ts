/** A profile at a moment of the wall clock: the logical day, the zone, and protection. Pure. */
import { wallReading } from '../../kit/clock/wall-clock.ts';
import { DAYS, type Day, type EnergyZone } from '../../wire/chronometric-vocabulary.ts';
import { type DayRules, MINUTES_OF_DAY, type MinuteOfDay, type Profile, type ProtectedWindow } from './profile.ts';
import { dayBefore, windowBegan, windowContains } from './time-of-day.ts';

/** A weekday of the calendar, and its minute. */
export type LocalTime = { readonly day: Day; readonly minute: MinuteOfDay };

/**
 * @param timezone IANA
 * @param instant epoch milliseconds
 * @throws RangeError for an unknown zone
 */
export function localTimeAt(timezone: string, instant: number): LocalTime {
  const { weekday, minuteOfDay } = wallReading(timezone, instant);
  return { day: DAYS[weekday]!, minute: minuteOfDay };
}

export type LogicalDay = {
  /** The weekday whose rules apply: at half past midnight that of the evening before. */
  readonly day: Day;
  readonly rules: DayRules;
  /** From the end of day until the logical day ends; absent without a declared end of day. */
  readonly pastEndOfDay?: boolean;
};

/** Minutes of the logical day at a minute of the calendar day. */
const sinceStart = (start: MinuteOfDay, minute: MinuteOfDay) => (minute - start + MINUTES_OF_DAY) % MINUTES_OF_DAY;

export function logicalDay(profile: Profile, { day: calendarDay, minute }: LocalTime): LogicalDay {
  const start = profile.logicalDayStart;
  const day = minute < start ? dayBefore(calendarDay) : calendarDay;
  const rules = profile.rulesOf(day);
  if (rules.endOfDay === undefined) return { day, rules };
  return { day, rules, pastEndOfDay: sinceStart(start, minute) >= sinceStart(start, rules.endOfDay.value) };
}

/**
 * The energy zone of a moment, by the rules of its logical day.
 *
 * @param day the calendar day
 * @returns `unknown` in a gap of the profile's own zones
 */
export function zoneAt(profile: Profile, day: Day, minute: MinuteOfDay): EnergyZone {
  const { zones } = logicalDay(profile, { day, minute }).rules;
  return zones.find((zone) => windowContains(zone, minute))?.zone ?? 'unknown';
}

/**
 * The first protected window of a moment.
 *
 * @param day the calendar day; a window past midnight belongs to the day on which it started
 */
export function protectedWindowAt(profile: Profile, day: Day, minute: MinuteOfDay): ProtectedWindow | undefined {
  return profile.protectedWindows.find((window) => {
    const began = windowBegan(window, day, minute);
    return began !== undefined && (window.days?.includes(began) ?? true);
  });
}

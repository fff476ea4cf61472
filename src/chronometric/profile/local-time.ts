/** An instant on a user's wall clock. Pure. */
import { wallReading } from '../../kit/clock/wall-clock.ts';
import { DAYS, type Day } from '../../wire/chronometric-words.ts';
import type { MinuteOfDay } from './profile.ts';

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

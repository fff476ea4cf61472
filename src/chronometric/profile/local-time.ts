/** An instant as a person's wall clock shows it. Pure. */
import { wallReading } from '../../kit/clock/wall-clock.ts';
import { DAYS, type Day } from '../../wire/chronometric-words.ts';
import type { MinuteOfDay } from './profile.ts';

/** A weekday of the calendar, and how far it has gone. */
export type LocalTime = { readonly day: Day; readonly minute: MinuteOfDay };

/**
 * @param timezone IANA
 * @param instant epoch milliseconds
 * @throws RangeError for a zone that does not exist
 */
export function localTimeAt(timezone: string, instant: number): LocalTime {
  const { weekday, minuteOfDay } = wallReading(timezone, instant);
  return { day: DAYS[weekday]!, minute: minuteOfDay };
}

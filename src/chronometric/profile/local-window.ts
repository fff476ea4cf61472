/** Windows of the wall clock: what lies in one, and on which day it began. Pure. */
import { DAYS, type Day } from '../../wire/chronometric-words.ts';
import type { LocalWindow, MinuteOfDay } from './profile.ts';

/** Whether a minute of the day lies in a half-open window, which may wrap midnight. */
export function windowContains({ from, to }: LocalWindow, minute: MinuteOfDay): boolean {
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

/** The day before another. */
export function dayBefore(day: Day): Day {
  return DAYS[(DAYS.indexOf(day) + DAYS.length - 1) % DAYS.length]!;
}

/** The day on which the window that `minute` of `day` lies in began; `undefined` when it lies in none. */
export function windowBegan(window: LocalWindow, day: Day, minute: MinuteOfDay): Day | undefined {
  if (!windowContains(window, minute)) return undefined;
  return minute >= window.from ? day : dayBefore(day);
}

/** Wall-clock times and windows as a profile writes them. Pure. */
import { DAYS, type Day } from '../../wire/chronometric-vocabulary.ts';
import { type LocalWindow, MINUTES_OF_DAY, type MinuteOfDay } from './profile.ts';

/** Whether a half-open window, which may wrap midnight, contains a minute of the day. */
export function windowContains({ from, to }: LocalWindow, minute: MinuteOfDay): boolean {
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

export function dayBefore(day: Day): Day {
  return DAYS[(DAYS.indexOf(day) + DAYS.length - 1) % DAYS.length]!;
}

/** The day on which the window that contains `minute` of `day` began; `undefined` when the window does not contain it. */
export function windowBegan(window: LocalWindow, day: Day, minute: MinuteOfDay): Day | undefined {
  if (!windowContains(window, minute)) return undefined;
  return minute >= window.from ? day : dayBefore(day);
}

const TIME = /^([01]\d|2[0-3]):([0-5]\d)$/;
const WINDOW = /^(\S+?) *- *(\S+)$/;
/** Other ways to write a time: `500`, `0500`, `5:00`, `18.30`, `18h30`, `6 pm`, `6:30pm`. */
const NEARLY = /^(\d{1,2})(?:[:.h]?(\d{2}))?(?::00)?\s*(?:([ap])\.?m\.?)?$/i;

/** Reads exactly the form `18:30`. */
export function readTimeOfDay(text: string): MinuteOfDay | undefined {
  const match = TIME.exec(text);
  return match ? Number(match[1]) * 60 + Number(match[2]) : undefined;
}

/** As {@link readTimeOfDay}; `24:00` is the midnight at the end of a day. */
export function readWindowEnd(text: string): MinuteOfDay | undefined {
  return text === '24:00' ? MINUTES_OF_DAY : readTimeOfDay(text);
}

export const formatTimeOfDay = (minute: MinuteOfDay): string =>
  [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':');

/** `19:30-05:00`; a window up to midnight ends at `24:00`. */
export const formatWindow = ({ from, to }: LocalWindow): string =>
  `${formatTimeOfDay(from)}-${formatTimeOfDay(to || MINUTES_OF_DAY)}`;

/** The time that was probably meant. */
export function meantTime(text: string): string | undefined {
  if (/^24[:.h]?00$/.test(text)) return '00:00';
  const match = NEARLY.exec(text.trim());
  if (!match) return undefined;
  const [, hours = '', minutes, half] = match;
  // A number alone is ambiguous.
  if (minutes === undefined && half === undefined) return undefined;
  const given = Number(hours);
  if (half !== undefined && (given < 1 || given > 12)) return undefined;
  const hour = half === undefined ? given : (given % 12) + (half.toLowerCase() === 'p' ? 12 : 0);
  const meant = `${String(hour).padStart(2, '0')}:${minutes ?? '00'}`;
  return readTimeOfDay(meant) === undefined ? undefined : meant;
}

/**
 * Two ends as a window.
 *
 * @param to at most {@link MINUTES_OF_DAY}
 * @returns `undefined` for equal ends: an empty window, or the whole day not written as `00:00-24:00`
 */
export function windowOf(from: MinuteOfDay, to: MinuteOfDay): LocalWindow | undefined {
  return from === to ? undefined : { from, to: to % MINUTES_OF_DAY };
}

/** @returns the window, or a problem with its remedy */
export function readWindow(text: string): LocalWindow | { problem: string } {
  const form = 'must be a window such as "22:00-06:30"';
  const match = WINDOW.exec(text);
  if (!match) return { problem: form };
  const [from, to] = [readTimeOfDay(match[1]!), readWindowEnd(match[2]!)];
  if (from === undefined || to === undefined) {
    const meant = [
      from === undefined ? meantTime(match[1]!) : match[1],
      to === undefined ? meantTime(match[2]!) : match[2],
    ];
    return { problem: meant.includes(undefined) ? form : `must be a window; write "${meant.join('-')}"` };
  }
  return windowOf(from, to) ?? { problem: 'must not end when it begins; the whole day is "00:00-24:00"' };
}

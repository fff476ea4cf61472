/** Computes the next occurrence of an alarm from its schedule, its jitter and the end of its series. */

import { createHash } from 'node:crypto';
import { fireIdOf } from '../../wire/fire-id.ts';
import { type Alarm, NOT_DEFERRED, type Occurrence } from './alarm.ts';
import { deadlineOf, nextOfEvents } from './events.ts';
import { type Calendars, NO_CALENDARS, withoutHolidays } from './holidays.ts';
import type { Schedule } from './occurrence.ts';
import { optionsOf } from './options.ts';
import { compileRule, compileSchedule } from './schedule.ts';

/**
 * How long after its due instant an occurrence may start. It depends only on the alarm and the occurrence, so that
 * every replica and every restart agrees.
 *
 * @param jitterSeconds width of the spread in seconds; 0 means none
 * @returns whole milliseconds in [0, jitterSeconds · 1000)
 */
export function jitterMs(alarmId: string, dueEpochMs: number, jitterSeconds: number): number {
  if (jitterSeconds <= 0) return 0;
  // 32 bits over at most 3.6 million milliseconds: the bias of the scaling is below one in a thousand.
  const draw = createHash('sha256').update(fireIdOf(alarmId, dueEpochMs)).digest().readUInt32BE(0) / 2 ** 32;
  return Math.floor(draw * jitterSeconds * 1000);
}

/** The zone of an alarm without `timezone`. */
export const DEFAULT_TIMEZONE = 'UTC';

/** The members of an alarm that determine when it fires. */
export type AlarmTiming = Pick<
  Alarm,
  | 'id'
  | 'owner'
  | 'kind'
  | 'fireAt'
  | 'cronExpr'
  | 'timezone'
  | 'anchor'
  | 'jitterSeconds'
  | 'endsAt'
  | 'maxFires'
  | 'scheduledFires'
  | 'options'
>;

/** The series of an alarm that repeats. @param calendars for its `holidays`, here and below */
export function seriesOf(alarm: AlarmTiming, calendars = NO_CALENDARS): Schedule {
  const timezone = alarm.timezone ?? DEFAULT_TIMEZONE;
  if (alarm.options === null) return compileSchedule(alarm.cronExpr!, timezone, alarm.anchor);
  const { rrule, holidays } = optionsOf(alarm);
  const series =
    alarm.kind === 'rrule'
      ? compileRule(rrule!, timezone, alarm.anchor)
      : compileSchedule(alarm.cronExpr!, timezone, alarm.anchor);
  return holidays === undefined ? series : withoutHolidays(series, { calendar: holidays, timezone, calendars });
}

/**
 * The jitter of one occurrence. In a series it stays below the gap to the next occurrence, so that the instants of a
 * series strictly increase.
 */
function jitterOf(alarm: AlarmTiming, nominal: number, calendars: Calendars): number {
  if (alarm.jitterSeconds === 0) return 0;
  if (alarm.kind === 'once') return jitterMs(alarm.id, nominal, alarm.jitterSeconds);
  const following = seriesOf(alarm, calendars).next(nominal);
  const gapSeconds = following === undefined ? alarm.jitterSeconds : (following - nominal) / 1000;
  return jitterMs(alarm.id, nominal, Math.min(alarm.jitterSeconds, gapSeconds));
}

/** The occurrence of an alarm's schedule at a nominal instant. */
export function occurrenceAt(
  alarm: AlarmTiming,
  nominal: number,
  missedCount: number,
  calendars = NO_CALENDARS,
): Occurrence {
  const scheduledFor = nominal + jitterOf(alarm, nominal, calendars);
  return {
    fireId: fireIdOf(alarm.id, scheduledFor),
    alarmId: alarm.id,
    owner: alarm.owner,
    source: 'schedule',
    scheduledFor,
    nominal,
    dueAt: scheduledFor,
    attempt: 0,
    missedCount,
    fence: 0,
    claimedAt: null,
    ...NOT_DEFERRED,
    cause: null,
  };
}

/** The only occurrence of a `once` alarm. */
export function onlyOccurrence(alarm: AlarmTiming): Occurrence {
  return occurrenceAt(alarm, alarm.fireAt!, 0, NO_CALENDARS);
}

/**
 * The first occurrence of a series after an instant, or `undefined` when the series has ended: no further match, past
 * `ends_at`, or `max_fires` delivered.
 *
 * @param after epoch ms; the nominal instant of the previous occurrence, or the current time when a series starts
 */
export function nextOccurrence(alarm: AlarmTiming, after: number, calendars = NO_CALENDARS): Occurrence | undefined {
  if (alarm.kind === 'event') return nextOfEvents(alarm, after);
  if (alarm.maxFires !== null && alarm.scheduledFires >= alarm.maxFires) return undefined;
  const nominal = seriesOf(alarm, calendars).next(after);
  if (nominal === undefined || (alarm.endsAt !== null && nominal > alarm.endsAt)) return undefined;
  return occurrenceAt(alarm, nominal, 0, calendars);
}

/**
 * Whether the alarm's own schedule has an occurrence at this instant: a triggered occurrence would share its fire id.
 */
export function isScheduledFor(alarm: AlarmTiming, instant: number, calendars = NO_CALENDARS): boolean {
  if (alarm.kind === 'once') return onlyOccurrence(alarm).scheduledFor === instant;
  if (alarm.kind === 'event') return instant === deadlineOf(alarm);
  // Jitter stays below the gap, so only the latest nominal instant can have been moved to this one.
  const last = seriesOf(alarm, calendars).latest(instant - alarm.jitterSeconds * 1000 - 1, instant);
  return last !== undefined && last.at + jitterOf(alarm, last.at, calendars) === instant;
}

/**
 * The latest occurrence of a series up to an instant, if it is later than an overdue one. It replaces the overdue one and
 * has the number of replaced ones. `policies.ts` decides where that happens; by default after downtime, up to the
 * present.
 *
 * An occurrence whose jitter has not elapsed yet is not the latest: it fires separately. An occurrence whose day has
 * become a holiday is replaced by the next one, which may be in the future.
 */
export function catchUp(
  alarm: AlarmTiming,
  overdue: Occurrence,
  now: number,
  calendars = NO_CALENDARS,
): Occurrence | undefined {
  if (alarm.kind === 'once' || alarm.kind === 'event' || overdue.source !== 'schedule') return undefined;
  const series = seriesOf(alarm, calendars);
  let missed = series.latest(overdue.nominal, Math.min(now, alarm.endsAt ?? Number.POSITIVE_INFINITY));
  if (missed && missed.at + jitterOf(alarm, missed.at, calendars) > now)
    missed = series.latest(overdue.nominal, missed.at - 1);
  if (missed) return occurrenceAt(alarm, missed.at, overdue.missedCount + missed.count, calendars);
  return isExcludedNow(alarm, overdue, calendars) ? nextOccurrence(alarm, overdue.nominal, calendars) : undefined;
}

/** Whether the calendar of an alarm has gained the day of an occurrence after the occurrence was computed. */
function isExcludedNow(alarm: AlarmTiming, { nominal }: Occurrence, calendars: Calendars): boolean {
  if (alarm.options === null || optionsOf(alarm).holidays === undefined) return false;
  return seriesOf(alarm, calendars).next(nominal - 1) !== nominal;
}

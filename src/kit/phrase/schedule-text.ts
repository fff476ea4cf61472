/** The schedule of an alarm in words, for lists. Pure. */
import type { AlarmView } from '../../wire/alarm.ts';
import { type NameOfAlarm, waitText } from './condition-text.ts';
import type { Conditions } from './conditions.ts';
import type { Repetition } from './reading.ts';
import { repetitionText, shortRepetitionText } from './reading-text.ts';
import { usesWallClock } from './series-text.ts';

export type Scheduled = Pick<AlarmView, 'kind' | 'cron_expr' | 'rrule' | 'timezone'> & Conditions;

export const repetitionOf = ({ cron_expr: cron = '', rrule }: Scheduled): Repetition =>
  rrule === undefined ? { cron } : { rrule };

/** ` in Europe/Berlin`; empty where no zone matters, or the reader has the same. */
export function zoneOfSchedule({ cron_expr = '', rrule, timezone = 'UTC' }: Scheduled, zone?: string): string {
  return timezone === zone || !usesWallClock(rrule ?? cron_expr) ? '' : ` in ${timezone}`;
}

/**
 * `every weekday at 09:00 in Europe/Berlin`, `once`, `waits for webhook`, `after the turn of "nightly"`.
 *
 * @param options.zone of the reader, which is not named
 * @param options.nameOf names of the alarms that others follow; by default their ids
 * @param options.isShort for a narrow column: `weekdays 09:00`
 */
export function scheduleText(
  alarm: Scheduled,
  { zone, nameOf, isShort = false }: { zone?: string; nameOf?: NameOfAlarm | undefined; isShort?: boolean } = {},
): string {
  if (alarm.kind === 'event') return waitText(alarm, nameOf);
  if (alarm.kind === 'once') return 'once';
  const repetition = repetitionOf(alarm);
  const text = isShort ? shortRepetitionText(repetition) : repetitionText(repetition);
  return `${text}${zoneOfSchedule(alarm, zone)}`;
}

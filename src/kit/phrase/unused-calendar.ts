import type { AlarmView } from '../../wire/alarm.ts';

/**
 * A calendar that excludes nothing, because it is missing or has ended: `office is missing: it fires on all days`.
 *
 * @returns `undefined` for any other
 */
export function unusedCalendar({
  holidays,
  holidays_missing: isMissing,
  holidays_ended: ended,
}: Pick<AlarmView, 'holidays' | 'holidays_missing' | 'holidays_ended'>): string | undefined {
  if (holidays === undefined || (!isMissing && ended === undefined)) return undefined;
  return `${holidays} ${isMissing ? 'is missing' : `has ended, its last day was ${ended}`}: it fires on all days`;
}

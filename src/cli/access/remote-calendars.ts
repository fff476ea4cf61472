/** The calendars of a chronosd elsewhere, for a program that computes schedules of its alarms. */
import type { Calendars } from '../../chronos/alarm/holidays.ts';
import type { ChronosClient } from '../../chronos/client.ts';
import type { ConsoleBackend } from '../../console/backend.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

const DAY_MS = 86_400_000;
/** How long the days of a calendar are used before they are read again. */
const KEPT_MS = 60_000;
/** More are read again each time. */
const MOST_KEPT = 200;

type Days = readonly number[] | undefined;

/** @returns the lookup, which knows the calendars of the alarms that were read before */
export function remoteCalendars(
  client: Pick<ChronosClient, 'getCalendar'>,
  clock: Pick<Clock, 'monotonic'>,
): { lookup: Pick<Calendars, 'daysOf'>; readCalendars: NonNullable<ConsoleBackend['readCalendars']> } {
  const known = new Map<string, { readonly readAt: number; readonly days: Days }>();
  const keyOf = (name: string, timezone: string) => `${name} ${timezone.toLowerCase()}`;

  async function daysOf(name: string, timezone: string): Promise<Days> {
    try {
      const { days } = await client.getCalendar(name, { timezone });
      return days.map((date) => Date.parse(date) / DAY_MS);
    } catch (thrown) {
      // The series of a missing calendar fires on its days too.
      if (thrown instanceof ReveilleError && thrown.code === 'not_found') return undefined;
      throw thrown;
    }
  }

  async function read(name: string, timezone: string): Promise<void> {
    const key = keyOf(name, timezone);
    const before = known.get(key);
    const readAt = clock.monotonic();
    if (before && readAt - before.readAt < KEPT_MS) return;
    const found = await daysOf(name, timezone);
    // The same list while nothing changes: the series without its days is computed once.
    const days = String(found) === String(before?.days) ? before?.days : found;
    known.delete(key);
    known.set(key, { readAt, days });
    if (known.size > MOST_KEPT) known.delete(known.keys().next().value!);
  }

  return {
    lookup: { daysOf: (name, timezone) => known.get(keyOf(name, timezone))?.days },
    async readCalendars(alarms) {
      const named = alarms.flatMap(({ holidays: name, timezone = 'UTC' }) =>
        name === undefined ? [] : [[keyOf(name, timezone), { name, timezone }] as const],
      );
      for (const { name, timezone } of new Map(named).values()) await read(name, timezone);
    },
  };
}

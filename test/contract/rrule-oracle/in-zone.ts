/**
 * The instants of wall times in a zone, and the occurrences of rules that follow real time. It reads zones through
 * Temporal and shares no code with the product.
 *
 * The contract: a fixed wall time is due once, at its first reading, or at the first instant after the gap that skips
 * it. A rule by hours, minutes or seconds without BYHOUR counts them as they pass, and reads its other parts from the
 * wall clock.
 */
import { Temporal } from 'temporal-polyfill';
import type { DrawnRule } from './generator.ts';

const UNITS: Partial<Record<string, number>> = { HOURLY: 3_600_000, MINUTELY: 60_000, SECONDLY: 1_000 };
/** Units that are looked at for one question. */
const MOST_UNITS = 30_000;
const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

export const followsRealTime = ({ frequency, parts }: DrawnRule): boolean =>
  UNITS[frequency] !== undefined && parts.BYHOUR === undefined;

function plainOf(wall: number): Temporal.PlainDateTime {
  return Temporal.Instant.fromEpochMilliseconds(wall).toZonedDateTimeISO('UTC').toPlainDateTime();
}

/** When a wall time is due. */
export function instantOf(wall: number, timezone: string): number {
  const plain = plainOf(wall);
  // In a gap, "compatible" is later than the gap by as much as the time was later than its start.
  const zoned = plain.toZonedDateTime(timezone, { disambiguation: 'compatible' });
  if (zoned.toPlainDateTime().equals(plain)) return zoned.epochMilliseconds;
  return zoned.add({ milliseconds: 1 }).getTimeZoneTransition('previous')!.epochMilliseconds;
}

const numbers = (list: string | undefined) => list?.split(',').map(Number);

/** Whether a reading has the parts of a rule that restrict it. */
function allows(parts: DrawnRule['parts'], at: Temporal.ZonedDateTime): boolean {
  const within = (name: string, value: number, length?: number) => {
    const list = numbers(parts[name]);
    return !list || list.includes(value) || (length !== undefined && list.includes(value - length - 1));
  };
  return (
    within('BYMONTH', at.month) &&
    within('BYMONTHDAY', at.day, at.daysInMonth) &&
    within('BYYEARDAY', at.dayOfYear, at.daysInYear) &&
    (parts.BYDAY === undefined || parts.BYDAY.split(',').includes(WEEKDAYS[at.dayOfWeek - 1]!))
  );
}

/**
 * The first `take` occurrences of a rule that follows real time, counted from its start; `undefined` when it takes too
 * long to find them. Zones whose changes are no whole hours are not supported for hours.
 */
export function realTimeOccurrences(
  { frequency, parts }: DrawnRule,
  start: number,
  timezone: string,
  { after, take }: { after: number; take: number },
): number[] | undefined {
  const unitMs = UNITS[frequency]!;
  const began = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(timezone);
  const beganUnit =
    start -
    (frequency === 'HOURLY'
      ? (began.minute * 60 + began.second) * 1_000
      : frequency === 'MINUTELY'
        ? began.second * 1_000
        : 0);
  const minutes = frequency === 'HOURLY' ? (numbers(parts.BYMINUTE) ?? [began.minute]) : [0];
  const seconds = frequency === 'SECONDLY' ? [0] : (numbers(parts.BYSECOND) ?? [began.second]);
  const inUnit = minutes
    .flatMap((minute) => seconds.map((second) => (minute * 60 + second) * 1_000))
    .sort((a, b) => a - b);
  const positions = numbers(parts.BYSETPOS)?.map((position) =>
    position > 0 ? position - 1 : inUnit.length + position,
  );
  const offsets = positions ? inUnit.filter((_, index) => positions.includes(index)) : inUnit;
  const step = unitMs * Number(parts.INTERVAL ?? 1);
  const count = parts.COUNT === undefined ? Number.POSITIVE_INFINITY : Number(parts.COUNT);
  const found: number[] = [];
  let counted = 0;
  // COUNT counts from the start; other rules are entered just before the instant in question.
  const skipped = parts.COUNT === undefined ? Math.max(0, Math.floor((after - beganUnit) / step) - 1) : 0;
  for (let index = skipped; found.length < take && counted < count; index++) {
    if (index - skipped > MOST_UNITS) return undefined;
    for (const offset of offsets) {
      const instant = beganUnit + index * step + offset;
      const at = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
      const isAllowed =
        allows(parts, at) &&
        (frequency === 'HOURLY' || !parts.BYMINUTE || numbers(parts.BYMINUTE)!.includes(at.minute)) &&
        (frequency !== 'SECONDLY' || !parts.BYSECOND || numbers(parts.BYSECOND)!.includes(at.second));
      if (!isAllowed || instant < start || counted >= count) continue;
      counted++;
      if (instant > after) found.push(instant);
    }
  }
  return found.slice(0, take);
}

/**
 * A backfill of a series: one fire for each of its instants in a part of the past. The waiting instants are stored as
 * ranges in the alarm's options, and only the oldest is a pending occurrence. So the fires follow one another, in
 * order, and a long backfill neither fills the store nor hides the owner's other alarms. Pure.
 */
import { readCause, storedCause } from '../../wire/cause.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Alarm, type AlarmState, isClaimed, type Occurrence } from './alarm.ts';
import { lesserCause } from './cause.ts';
import { isEventFire } from './events.ts';
import { type Calendars, NO_CALENDARS } from './holidays.ts';
import { encodeOptions, optionsOf } from './options.ts';
import { occurrenceAt, seriesOf } from './series.ts';

/** The largest number of fires of one backfill. */
export const BACKFILL_MAX = 10_000;
/** Ranges that wait at most; instants that have fired already divide a range. */
const RANGES_MAX = 500;

/** Nominal instants of a series, from the first to the last. */
type Range = { readonly first: number; readonly last: number };

function rangesOf(alarm: Pick<Alarm, 'options'>): Range[] {
  return (optionsOf(alarm).backfill ?? []).map((text) => {
    const [first, last] = text.split('/').map(Number);
    return { first: first!, last: last! };
  });
}

/** The instants of a backfill that still wait, from the first to the last; `undefined` without one. */
export function waitingBackfill(alarm: Pick<Alarm, 'options'>): Range | undefined {
  const ranges = rangesOf(alarm);
  if (ranges.length === 0) return undefined;
  return { first: Math.min(...ranges.map((one) => one.first)), last: Math.max(...ranges.map((one) => one.last)) };
}

function withRanges(alarm: Alarm, ranges: readonly Range[]): Alarm {
  const backfill = ranges.length === 0 ? null : ranges.map(({ first, last }) => `${first}/${last}`);
  return { ...alarm, options: encodeOptions({ ...optionsOf(alarm), backfill }) };
}

/** Whether an occurrence is the pending one of a backfill. */
export function isBackfill(alarm: Pick<Alarm, 'options'>, { source, nominal }: Occurrence): boolean {
  return source === 'trigger' && alarm.options !== null && rangesOf(alarm)[0]?.first === nominal;
}

/** Whether an occurrence beside the schedule is one of the alarm's own: of a backfill, or with events. */
export const isOwnTrigger = (alarm: Pick<Alarm, 'kind' | 'options'>, occurrence: Occurrence): boolean =>
  isBackfill(alarm, occurrence) || isEventFire(alarm, occurrence);

/** The occurrence for an instant of a backfill. Its jitter may not have elapsed yet. */
function backfilled(
  alarm: Alarm,
  nominal: number,
  { dueAt, cause }: Pick<Occurrence, 'dueAt' | 'cause'>,
  calendars: Calendars,
): Occurrence {
  const occurrence = occurrenceAt(alarm, nominal, 0, calendars);
  return {
    ...occurrence,
    source: 'trigger',
    dueAt: dueAt === null ? null : Math.max(dueAt, occurrence.scheduledFor),
    cause,
  };
}

/** The occurrences of a series with a nominal instant in [from, to), the oldest first. */
export function* occurrencesBetween(
  alarm: Alarm,
  from: number,
  to: number,
  calendars = NO_CALENDARS,
): Generator<Occurrence> {
  const series = seriesOf(alarm, calendars);
  for (let at = series.next(from - 1); at !== undefined && at < to; at = series.next(at))
    yield occurrenceAt(alarm, at, 0, calendars);
}

/** Consecutive instants as ranges; a skipped instant divides them. */
function rangesFrom(alarm: Alarm, instants: readonly number[], calendars: Calendars): Range[] {
  const series = seriesOf(alarm, calendars);
  const ranges: Range[] = [];
  for (const at of instants) {
    const last = ranges.at(-1);
    if (last && series.next(last.last) === at) ranges[ranges.length - 1] = { first: last.first, last: at };
    else ranges.push({ first: at, last: at });
  }
  return ranges;
}

/** What a backfill adds. */
export type Backfill = {
  /** The alarm that the instants were computed from. */
  readonly alarm: Alarm;
  /** The occurrences of the requested part that were not delivered. */
  readonly occurrences: readonly Occurrence[];
};

/** Members whose change makes {@link Backfill} outdated. */
const BASIS = ['cronExpr', 'timezone', 'anchor', 'jitterSeconds', 'options', 'fireCount', 'status'] as const;

/**
 * Adds a backfill. Instants that wait already are not added again. Of two causes of one backfill, the one with fewer
 * rights counts for its remaining fires.
 *
 * @param cause whose request it is (`storedCause`)
 * @returns the state, and the number of added fires; `undefined` when the alarm has changed since it was read
 * @throws ReveilleError `conflict` when too many separate parts would wait
 */
export function addBackfill(
  state: AlarmState,
  { alarm: basis, occurrences: wanted }: Backfill,
  now: number,
  calendars = NO_CALENDARS,
  cause = 'agent',
): { state: AlarmState; added: readonly Occurrence[] } | undefined {
  const { alarm } = state;
  if (BASIS.some((member) => alarm[member] !== basis[member])) return undefined;
  const waiting = rangesOf(alarm);
  // A running attempt at the same instant may have another fire id, because the jitter was different.
  const pending = new Set(state.occurrences.map(({ nominal }) => nominal));
  const waits = ({ nominal }: Occurrence) =>
    pending.has(nominal) || waiting.some(({ first, last }) => first <= nominal && nominal <= last);
  const added = wanted.filter((occurrence) => !waits(occurrence));
  if (added.length === 0) return { state, added };
  const ranges = [
    ...waiting,
    ...rangesFrom(
      alarm,
      added.map(({ nominal }) => nominal),
      calendars,
    ),
  ];
  if (ranges.length > RANGES_MAX)
    throw new ReveilleError(
      'conflict',
      `the backfill would have ${ranges.length} separate parts, more than ${RANGES_MAX}, because fires between them were delivered; choose a shorter time`,
    );
  const after = withRanges(alarm, ranges);
  const first = waiting.length > 0 ? [] : [backfilled(after, ranges[0]!.first, { dueAt: now, cause }, calendars)];
  const kept = state.occurrences.map((one) =>
    isBackfill(alarm, one)
      ? { ...one, cause: storedCause(lesserCause(readCause(one.cause ?? 'agent'), readCause(cause))) }
      : one,
  );
  return { state: { alarm: after, occurrences: [...kept, ...first] }, added };
}

/**
 * The state after an occurrence beside the schedule has ended: the next instant of its backfill becomes pending.
 *
 * @param others the other pending occurrences
 */
export function afterTrigger(
  alarm: Alarm,
  settled: Occurrence,
  others: readonly Occurrence[],
  calendars: Calendars,
): AlarmState {
  if (!isBackfill(alarm, settled)) return { alarm, occurrences: others };
  const [current, ...rest] = rangesOf(alarm);
  const next = seriesOf(alarm, calendars).next(current!.first);
  const left = next !== undefined && next <= current!.last ? [{ first: next, last: current!.last }, ...rest] : rest;
  const ends = left.length === 0 || alarm.status === 'cancelled' || alarm.status === 'failed';
  if (ends) return { alarm: withRanges(alarm, []), occurrences: others };
  const after = withRanges(alarm, left);
  const dueAt = alarm.status === 'paused' ? null : settled.dueAt;
  const { cause } = settled;
  return { alarm: after, occurrences: [...others, backfilled(after, left[0]!.first, { dueAt, cause }, calendars)] };
}

/** Ends a waiting backfill: its instants are those of a schedule that is replaced. */
export function withoutBackfill({ alarm, occurrences }: AlarmState): AlarmState {
  if (optionsOf(alarm).backfill === undefined) return { alarm, occurrences };
  const kept = occurrences.filter((one) => !isBackfill(alarm, one) || isClaimed(one));
  return {
    alarm: withRanges(alarm, []),
    occurrences: kept.map((one) => (isBackfill(alarm, one) ? { ...one, dueAt: null } : one)),
  };
}

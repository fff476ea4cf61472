/**
 * The forecast: fires of the next days per alarm and hour, with the fires that the budget defers. Pure.
 *
 * Chart, list and figures of the screen use the same cells, so they agree. The work is bounded. Up to `MAX_SIMULATED`
 * fires are simulated one by one against the budget. Beyond that they are counted per cell without iterating, and a cell
 * covers a day instead of an hour before there are more than `MAX_CELLS`.
 */
import { quietUntil } from '../kit/clock/quiet-hours.ts';
import { dayAt, nextDayAfter } from '../kit/clock/wall-clock.ts';
import { offsetAt } from '../kit/clock/zone.ts';
import type { AlarmView } from '../wire/alarm.ts';
import type { Budget } from '../wire/budget.ts';
import { instantOf, rhythmOf } from './alarm-text.ts';
import type { Series, SeriesOf } from './backend.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const MAX_SIMULATED = 20_000;
const MAX_CELLS = 20_000;

/** Why fires are deferred, their number, and until when the last one waits (epoch ms). */
export type Conflict = { readonly why: string; count: number; until: number | undefined };

/** The fires of one alarm in one hour of the user's calendar, or in one day where there are too many hours. */
export type Cell = {
  readonly alarm: AlarmView;
  /** Days from today. */
  readonly day: number;
  /** Epoch ms. */
  readonly first: number;
  last: number;
  count: number;
  /** Whether the budget defers the first fire, and the last one. */
  readonly defersFirst: boolean;
  defersLast: boolean;
  readonly conflicts: Conflict[];
};

export type Forecast = {
  /** Ordered by their first fires. */
  readonly cells: readonly Cell[];
  readonly total: number;
  /** Fires that the budget defers; `undefined` beyond `MAX_SIMULATED` fires. */
  readonly deferred: number | undefined;
  /** Fires per day of the user's calendar, from today on. */
  readonly perDay: readonly number[];
  readonly cellsAre: 'hours' | 'days';
};

export const deferredIn = ({ conflicts }: Cell): number => conflicts.reduce((sum, { count }) => sum + count, 0);

/** The fires of one alarm up to an instant. */
type Fires = {
  readonly alarm: AlarmView;
  readonly first: number;
  readonly series: Series;
  readonly count: number;
  readonly end: number;
};

const ONCE: Series = { next: () => undefined, latest: () => undefined };

function firesOf(alarm: AlarmView, until: number, seriesOf: SeriesOf): Fires[] {
  const first = instantOf(alarm.next_fire_at);
  // An alarm with events fires at a time only if none comes.
  if (first === undefined || first > until || alarm.kind === 'event') return [];
  const { max_fires: most, fire_count: fired } = alarm;
  if (alarm.kind === 'once') return [{ alarm, first, series: ONCE, count: 1, end: until }];
  const left = most === undefined ? Number.POSITIVE_INFINITY : most - fired;
  if (left <= 0) return [];
  const series = seriesOf({ ...rhythmOf(alarm), anchor: first });
  const end = Math.min(until, instantOf(alarm.ends_at) ?? until);
  const more = series.latest(first, end)?.count ?? 0;
  return [{ alarm, first, series, count: Math.min(left, 1 + more), end }];
}

/** Days from today, and hours of the user's clock since 1970. */
function hourOf(zone: string, today: number, at: number) {
  const hour = Math.floor((at + offsetAt(zone, at)) / HOUR_MS);
  return { hour, day: Math.max(0, Math.floor(hour / 24) - today) };
}

/** Checks fires in order; each check counts the fires that the budget admitted before. */
function budgetCheck(budget: Budget | undefined) {
  const { quiet, wakes_per_hour: hourly, wakes_per_day: daily, min_gap_seconds: gap } = budget ?? {};
  const admitted: number[] = [];
  const begins = { hour: 0, day: 0 };
  const within = (span: 'hour' | 'day', after: number) => {
    while (begins[span] < admitted.length && admitted[begins[span]]! <= after) begins[span]++;
    return admitted.length - begins[span];
  };
  const conflictOf = (at: number, { urgent }: AlarmView): { why: string; until?: number } | undefined => {
    const until = quiet && !urgent ? quietUntil(quiet, at) : undefined;
    if (until !== undefined) return { why: 'quiet hours', until };
    if (hourly !== undefined && within('hour', at - HOUR_MS) >= hourly)
      return { why: `more than ${hourly} wakes in an hour` };
    if (daily !== undefined && within('day', at - DAY_MS) >= daily) return { why: `more than ${daily} wakes in a day` };
    const last = admitted.at(-1);
    if (gap !== undefined && last !== undefined && at - last < gap * 1000)
      return { why: `less than ${gap} s after another wake`, until: last + gap * 1000 };
    return undefined;
  };
  return (at: number, alarm: AlarmView) => {
    const conflict = conflictOf(at, alarm);
    if (!conflict) admitted.push(at);
    return conflict;
  };
}

/** Checks every fire in order against the budget. */
function simulated(all: readonly Fires[], today: number, zone: string, budget: Budget | undefined): Cell[] {
  const fires = all.flatMap(({ alarm, first, series, count }) => {
    const instants = [first];
    while (instants.length < count) instants.push(series.next(instants.at(-1)!)!);
    return instants.map((at) => ({ at, alarm }));
  });
  fires.sort((one, other) => one.at - other.at);
  const check = budgetCheck(budget);
  const cells = new Map<string, Cell>();
  for (const { at, alarm } of fires) {
    const conflict = check(at, alarm);
    const isDeferred = conflict !== undefined;
    const { day, hour } = hourOf(zone, today, at);
    const key = `${alarm.id} ${hour}`;
    const known = cells.get(key);
    const cell = known ?? {
      alarm,
      day,
      first: at,
      last: at,
      count: 0,
      defersFirst: isDeferred,
      defersLast: false,
      conflicts: [],
    };
    if (!known) cells.set(key, cell);
    cell.last = at;
    cell.count++;
    cell.defersLast = isDeferred;
    if (conflict) addConflict(cell.conflicts, { why: conflict.why, count: 1, until: conflict.until });
  }
  return [...cells.values()];
}

/** Adds a conflict to the one with the same reason. */
export function addConflict(conflicts: Conflict[], { why, count, until }: Conflict): void {
  const known = conflicts.find((one) => one.why === why);
  if (!known) conflicts.push({ why, count, until });
  else {
    known.count += count;
    known.until = until;
  }
}

/** Counts per cell, without a context to each fire. */
function counted(all: readonly Fires[], today: number, zone: string, cellsAre: Forecast['cellsAre']): Cell[] {
  const endOf = (at: number) =>
    cellsAre === 'days' ? nextDayAfter(zone, at) : at + HOUR_MS - ((at + offsetAt(zone, at)) % HOUR_MS);
  const cells = all.flatMap(({ alarm, first, series, count, end }) => {
    const found: Cell[] = [];
    let left = count;
    for (let at: number | undefined = first; at !== undefined && left > 0; ) {
      const rest = series.latest(at, Math.min(endOf(at) - 1, end));
      const here = Math.min(left, 1 + (rest?.count ?? 0));
      const isWhole = here === 1 + (rest?.count ?? 0);
      const last: number = here === 1 ? at : isWhole ? rest!.at : nth(series, at, here - 1);
      const { day } = hourOf(zone, today, at);
      found.push({ alarm, day, first: at, last, count: here, defersFirst: false, defersLast: false, conflicts: [] });
      left -= here;
      at = left > 0 ? series.next(last) : undefined;
    }
    return found;
  });
  return cells.sort((one, other) => one.first - other.first);
}

function nth(series: Series, after: number, n: number): number {
  let at = after;
  for (let step = 0; step < n; step++) at = series.next(at)!;
  return at;
}

/** @param given.alarms alarms that fire before `until` */
export function forecast(given: {
  alarms: readonly AlarmView[];
  now: number;
  until: number;
  zone: string;
  budget: Budget | undefined;
  seriesOf: SeriesOf;
}): Forecast {
  const { alarms, now, until, zone, budget, seriesOf } = given;
  const all = alarms.flatMap((alarm) => firesOf(alarm, until, seriesOf));
  const total = all.reduce((sum, { count }) => sum + count, 0);
  const hours = Math.ceil((until - now) / HOUR_MS) + 1;
  const cellsByHour = all.reduce((sum, { count }) => sum + Math.min(count, hours), 0);
  const cellsAre = total <= MAX_SIMULATED || cellsByHour <= MAX_CELLS ? 'hours' : 'days';
  const today = dayAt(zone, now);
  const isSimulated = total <= MAX_SIMULATED;
  const cells = isSimulated ? simulated(all, today, zone, budget) : counted(all, today, zone, cellsAre);
  const { quiet, wakes_per_hour: hourly, wakes_per_day: daily, min_gap_seconds: gap } = budget ?? {};
  const isUnbound = [quiet, hourly, daily, gap].every((bound) => bound === undefined);
  const deferred = isSimulated ? cells.reduce((sum, cell) => sum + deferredIn(cell), 0) : isUnbound ? 0 : undefined;
  const perDay = Array.from({ length: dayAt(zone, until) - today + 1 }, () => 0);
  for (const { day, count } of cells) perDay[day]! += count;
  return { cells, total, deferred, perDay, cellsAre };
}

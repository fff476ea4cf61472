/**
 * The wall times of a recurrence rule, on a calendar without zones: its days by its times of day. A wall time is
 * written as the milliseconds of the same reading in UTC.
 *
 * No question iterates from the start of the rule. A rule takes one of three forms:
 *
 * - `timesOfDay`: allowed days with the same times each; most rules.
 * - `counted`: hours, minutes or seconds at an interval that is no part of a day.
 * - `selected`: weeks, months or years of which BYSETPOS selects.
 */
import type { Rule } from '../../kit/recurrence/recurrence.ts';
import { HORIZON_YEARS } from './calendar.ts';
import type { WallTimes } from './occurrence.ts';
import { alignedFrom, type RuleDays, ruleDays } from './rule-days.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const HORIZON_MS = HORIZON_YEARS * 366 * DAY_MS;

/** Times of day of a rule: one a minute, and some more. Longer lists take memory in the cache of compiled rules. */
const MOST_TIMES = 1_500;

/** After so many steps a search looks whether it can end. */
const MANY_STEPS = 500;

const UNIT_MS: Partial<Record<Rule['frequency'], number>> = {
  HOURLY: HOUR_MS,
  MINUTELY: MINUTE_MS,
  SECONDLY: SECOND_MS,
};

/** A rule whose list of times of day would be too long. */
export class TooManyTimes extends Error {
  constructor(times: number) {
    super(`BYHOUR, BYMINUTE and BYSECOND name ${times} times of a day; name at most ${MOST_TIMES}`);
  }
}

/** A compiled rule. */
export type RuleTimes = WallTimes & {
  /** Steps of the search that the last call of `next` has made: its work. */
  readonly steps: number;
};

type Bounds = {
  /** The wall time at which the rule begins: its intervals count from it. */
  readonly start: number;
  /** The first wall time of a rule with fixed times. */
  readonly first: number;
  /** The offset of the zone at the start. Rules that follow real time count from it. */
  readonly offset: number;
  /** The last wall time of a rule with fixed times. */
  readonly last: number;
};

/** The numbers from 0 below `end`. */
const below = (end: number): readonly number[] => Array.from({ length: end }, (_, index) => index);
const HOURS = below(24);
const SIXTY = below(60);

/** How many entries of a sorted list are at most `value`. */
export function countUpTo(list: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The values of a part, and the smallest distance between them, all in milliseconds. */
type Level = { readonly values: readonly number[]; readonly unitMs: number };

/** The sums of one entry of each list. Sorted, because each list is sorted and finer than the one before. */
const sums = (levels: readonly Level[]) =>
  levels.reduce<readonly number[]>(
    (found, { values }) => found.flatMap((sum) => values.map((value) => sum + value)),
    [0],
  );

/** The positions of a set of `size` that BYSETPOS selects, sorted, from 0. */
function positionsOf(bySetPos: readonly number[], size: number): number[] {
  const positions = bySetPos.map((position) => (position > 0 ? position - 1 : size + position));
  return [...new Set(positions.filter((position) => position >= 0 && position < size))].sort((a, b) => a - b);
}

/** The first time of day of at least `time` whose hour, minute and second are in the levels, which are sorted. */
function timeOfDayFrom(levels: readonly Level[], time: number, at = 0): number | undefined {
  const level = levels[at];
  if (!level) return 0;
  const { values, unitMs } = level;
  const index = countUpTo(values, time - unitMs);
  if (index === values.length) return undefined;
  const rest = timeOfDayFrom(levels, time - values[index]!, at + 1);
  if (rest !== undefined) return values[index]! + rest;
  return index + 1 < values.length ? values[index + 1]! + timeOfDayFrom(levels, 0, at + 1)! : undefined;
}

const scaled = (values: readonly number[], unitMs: number) => values.map((value) => value * unitMs);

/** The hour, minute or second that a wall time shows, which may be before 1970. */
const partOf = (wallTime: number, unitMs: number, size: number) =>
  Math.floor((wallTime - Math.floor(wallTime / DAY_MS) * DAY_MS) / unitMs) % size;

/** Whether the hours, minutes or seconds of a rule are counted in real time: no hour of the wall clock is named. */
export const followsRealTime = ({ frequency, byHour }: Rule): boolean =>
  UNIT_MS[frequency] !== undefined && byHour === undefined;

/** The wall times of a rule between bounds. */
export function ruleTimes(rule: Rule, bounds: Bounds): RuleTimes {
  const days = ruleDays(rule, Math.floor(bounds.start / DAY_MS));
  const unitMs = UNIT_MS[rule.frequency];
  if (unitMs !== undefined) return timesWithinDay(rule, unitMs, days, bounds);
  const hours = rule.byHour ?? [partOf(bounds.start, HOUR_MS, 24)];
  const minutes = rule.byMinute ?? [partOf(bounds.start, MINUTE_MS, 60)];
  const seconds = rule.bySecond ?? [partOf(bounds.start, SECOND_MS, 60)];
  if (hours.length * minutes.length * seconds.length > MOST_TIMES)
    throw new TooManyTimes(hours.length * minutes.length * seconds.length);
  const times = sums([
    { values: scaled(hours, HOUR_MS), unitMs: HOUR_MS },
    { values: scaled(minutes, MINUTE_MS), unitMs: MINUTE_MS },
    { values: scaled(seconds, SECOND_MS), unitMs: SECOND_MS },
  ]);
  if (rule.bySetPos === undefined)
    return bounded(
      timesOfDay(days, () => times),
      bounds,
      false,
    );
  if (rule.frequency !== 'DAILY') return bounded(selected(days, times, rule.bySetPos), bounds, false);
  const chosen = positionsOf(rule.bySetPos, times.length).map((position) => times[position]!);
  return bounded(
    timesOfDay(days, () => chosen),
    bounds,
    false,
  );
}

/** A form of a rule. It has no bounds. */
type Form = {
  next(after: number, until: number, offset: number): number | undefined;
  count(after: number, until: number, offset: number): number;
  readonly steps: number;
};

/** Restricts a form to its bounds. Those of a rule that follows real time are instants, so they are not known here. */
function bounded(form: Form, { first, last }: Bounds, isRealTime: boolean): RuleTimes {
  if (isRealTime)
    return {
      followsRealTime: true,
      next: form.next,
      count: form.count,
      get steps() {
        return form.steps;
      },
    };
  return {
    followsRealTime: false,
    next(after, _until, offset) {
      if (after >= last) return undefined;
      const found = form.next(Math.max(after, first - 1), Number.POSITIVE_INFINITY, offset);
      return found !== undefined && found <= last ? found : undefined;
    },
    count: (after, until, offset) => form.count(Math.max(after, first - 1), Math.min(until, last), offset),
    get steps() {
      return form.steps;
    },
  };
}

/** Allowed days, each with the same times, sorted milliseconds since midnight. */
function timesOfDay(days: RuleDays, timesAt: (offset: number) => readonly number[]): Form {
  const countOf = (until: number, times: readonly number[], day: number) =>
    days.count(day, day + 1) * countUpTo(times, until - day * DAY_MS);
  return {
    next(after, _until, offset) {
      const times = timesAt(offset);
      if (times.length === 0) return undefined;
      const today = Math.floor(after / DAY_MS);
      const first = days.next(today);
      if (first !== today) return first === undefined ? undefined : first * DAY_MS + times[0]!;
      const index = countUpTo(times, after - today * DAY_MS);
      if (index < times.length) return today * DAY_MS + times[index]!;
      const following = days.next(today + 1);
      return following === undefined ? undefined : following * DAY_MS + times[0]!;
    },
    count(after, until, offset) {
      if (after >= until) return 0;
      const times = timesAt(offset);
      const [from, to] = [Math.floor(after / DAY_MS), Math.floor(until / DAY_MS)];
      return days.count(from, to) * times.length + countOf(until, times, to) - countOf(after, times, from);
    },
    get steps() {
      return days.looked;
    },
  };
}

/** Rules with FREQ=HOURLY, MINUTELY or SECONDLY. */
function timesWithinDay(rule: Rule, unitMs: number, days: RuleDays, bounds: Bounds): RuleTimes {
  const { interval } = rule;
  const startUnit = Math.floor(bounds.start / unitMs);
  const isRealTime = followsRealTime(rule);
  /** A unit that the interval selects, as far as the wall clock has moved against real time since the start. */
  const baseAt = (offset: number) =>
    isRealTime ? startUnit + Math.floor(offset / unitMs) - Math.floor(bounds.offset / unitMs) : startUnit;
  const minutes = rule.byMinute ?? (unitMs === HOUR_MS ? [partOf(bounds.start, MINUTE_MS, 60)] : SIXTY);
  const seconds = rule.bySecond ?? (unitMs === SECOND_MS ? SIXTY : [partOf(bounds.start, SECOND_MS, 60)]);
  const all: readonly Level[] = [
    { values: scaled(rule.byHour ?? HOURS, HOUR_MS), unitMs: HOUR_MS },
    { values: scaled(minutes, MINUTE_MS), unitMs: MINUTE_MS },
    { values: scaled(seconds, SECOND_MS), unitMs: SECOND_MS },
  ];
  // Parts of the unit or longer say which units are allowed; shorter ones are times within each.
  const levels = all.filter((level) => level.unitMs >= unitMs);
  const inUnit = sums(all.filter((level) => level.unitMs < unitMs));
  // BYSETPOS selects from the times of a unit, and all units have the same.
  const within = rule.bySetPos ? positionsOf(rule.bySetPos, inUnit.length).map((at) => inUnit[at]!) : inUnit;
  const perDay = DAY_MS / unitMs;
  const allowed = levels.reduce((product, { values }) => product * values.length, 1);
  const isEveryUnit = allowed === perDay;
  const form = counted(days, { unitMs, interval, levels, isEveryUnit, within, baseAt });
  const isSameEveryDay = perDay % interval === 0 && (allowed / interval) * within.length <= MOST_TIMES;
  if (!isSameEveryDay || (isEveryUnit && days.isEvery)) return bounded(form, bounds, isRealTime);
  // Days with the same times are counted without iterating.
  const lists = new Map<number, readonly number[]>();
  const timesAt = (offset: number) => {
    const base = ((baseAt(offset) % interval) + interval) % interval;
    let list = lists.get(base);
    if (!list) {
      const units = [...selectedUnits(levels, unitMs, { base, step: interval })];
      list = units.flatMap((time) => within.map((more) => time + more));
      lists.set(base, list);
    }
    return list;
  };
  const { count } = timesOfDay(days, timesAt);
  const combined: Form = {
    next: form.next,
    count,
    get steps() {
      return form.steps;
    },
  };
  return bounded(combined, bounds, isRealTime);
}

/** The times of day that the levels allow, of every `step` units; `step` divides the units of a day. */
function* selectedUnits(levels: readonly Level[], unitMs: number, { base, step }: { base: number; step: number }) {
  for (let unit = ((base % step) + step) % step; unit * unitMs < DAY_MS; ) {
    const allowed = timeOfDayFrom(levels, unit * unitMs);
    if (allowed === undefined) return;
    if (allowed === unit * unitMs) yield allowed;
    unit = alignedFrom(Math.max(unit + 1, allowed / unitMs), base, step);
  }
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other);
}

type Counting = {
  readonly unitMs: number;
  readonly interval: number;
  /** The units of a day that are allowed. */
  readonly levels: readonly Level[];
  readonly isEveryUnit: boolean;
  /** The times of a unit. */
  readonly within: readonly number[];
  readonly baseAt: (offset: number) => number;
};

/** Every `interval` units, restricted to allowed days and units of the day. */
function counted(days: RuleDays, { unitMs, interval, levels, isEveryUnit, within, baseAt }: Counting): Form {
  const isUnrestricted = isEveryUnit && days.isEvery;
  let steps = 0;

  const possible = new Map<number, boolean>();
  /** Whether the interval ever meets an allowed unit of a day. */
  function isPossible(base: number): boolean {
    const step = greatestDivisor(interval, DAY_MS / unitMs);
    const rest = ((base % step) + step) % step;
    let known = possible.get(rest);
    if (known === undefined) {
      known = !selectedUnits(levels, unitMs, { base, step }).next().done;
      possible.set(rest, known);
    }
    return known;
  }

  /** The start of the first allowed unit of at least `unit`, both selected by the interval. */
  function allowedFrom(unit: number, until: number, base: number): number | undefined {
    for (let at = alignedFrom(unit, base, interval); at * unitMs <= until; steps++) {
      if (steps === MANY_STEPS && !isPossible(base)) return undefined;
      const time = at * unitMs;
      const today = Math.floor(time / DAY_MS);
      const day = days.isEvery ? today : days.next(today);
      if (!days.isEvery) steps += days.looked;
      if (day === undefined) return undefined;
      if (day === today && isEveryUnit) return time;
      const timeOfDay = timeOfDayFrom(levels, day === today ? time - today * DAY_MS : 0);
      // After the last unit of a day the next day is looked at.
      const allowed = day * DAY_MS + (timeOfDay ?? DAY_MS);
      if (allowed === time) return time;
      at = alignedFrom(allowed / unitMs, base, interval);
    }
    return undefined;
  }

  function next(after: number, until: number, offset: number): number | undefined {
    if (within.length === 0) return undefined;
    steps = 0;
    const base = baseAt(offset);
    const unit = Math.floor(after / unitMs);
    const horizon = Math.min(until, after + HORIZON_MS);
    const first = allowedFrom(unit, horizon, base);
    if (first !== unit * unitMs) return first === undefined ? undefined : first + within[0]!;
    const index = countUpTo(within, after - first);
    if (index < within.length) return first + within[index]!;
    const following = allowedFrom(unit + 1, horizon, base);
    return following === undefined ? undefined : following + within[0]!;
  }

  return {
    next,
    count(after, until, offset) {
      if (after >= until) return 0;
      if (!isUnrestricted) {
        let count = 0;
        for (let at = next(after, until, offset); at !== undefined && at <= until; at = next(at, until, offset))
          count++;
        return count;
      }
      const base = baseAt(offset);
      const upTo = (wallTime: number) => {
        const unit = Math.floor(wallTime / unitMs);
        const passed = Math.ceil((unit - base) / interval);
        const isSelected = base + passed * interval === unit;
        return passed * within.length + (isSelected ? countUpTo(within, wallTime - unit * unitMs) : 0);
      };
      return upTo(until) - upTo(after);
    },
    get steps() {
      return steps;
    },
  };
}

/** Weeks, months or years, of each of which BYSETPOS selects. */
function selected(days: RuleDays, times: readonly number[], bySetPos: readonly number[]): Form {
  let steps = 0;
  let recent: { index: number; times: readonly number[] } = { index: -1, times: [] };

  function timesOf(index: number): readonly number[] {
    if (recent.index === index) return recent.times;
    const inPeriod = days.inPeriod(index);
    const found = positionsOf(bySetPos, inPeriod.length * times.length).map(
      (position) => inPeriod[Math.floor(position / times.length)]! * DAY_MS + times[position % times.length]!,
    );
    recent = { index, times: found };
    return found;
  }

  return {
    next(after) {
      steps = 0;
      for (let index = days.periodAt(Math.floor(after / DAY_MS)); ; index++) {
        const found = timesOf(index);
        const later = countUpTo(found, after);
        if (later < found.length) return found[later];
        if (days.startOf(index) > after / DAY_MS + HORIZON_YEARS * 366) return undefined;
        steps++;
      }
    },
    count(after, until) {
      if (after >= until) return 0;
      const last = days.periodAt(Math.floor(until / DAY_MS));
      let count = 0;
      for (let index = days.periodAt(Math.floor(after / DAY_MS)); index <= last; index++) {
        const found = timesOf(index);
        count += countUpTo(found, until) - countUpTo(found, after);
      }
      return count;
    },
    get steps() {
      return steps;
    },
  };
}

/**
 * Reads the words of a series independently of the product, and compares what they state with the instants of the
 * series. It knows the calendar; it knows neither cron nor recurrence rules.
 */
import assert from 'node:assert/strict';
import { offsetAt } from '../../../src/kit/clock/zone.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const UNIT_MS = { second: 1000, minute: MINUTE_MS, hour: 60 * MINUTE_MS } as const;
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = 'January February March April May June July August September October November December'.split(' ');

const list = (text: string): string[] => text.split(/, | and /);
const minutesOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
const isMondayToFriday = (day: number) => ![0, 6].includes(new Date(day).getUTCDay());

/** A number in `the 2nd last`, `the last`, `the 3rd`; from the end if negative. */
function ordinal(text: string): number {
  if (text === 'the last') return -1;
  const [, size, last] = /^the (\d+)(?:st|nd|rd|th)( last)?$/.exec(text) ?? [];
  assert.ok(size, `not an ordinal: ${text}`);
  return last ? -Number(size) : Number(size);
}

/** Whether a day is the nth of those of its month. */
function isNth(day: number, nth: number, isCounted: (day: number) => boolean): boolean {
  if (!isCounted(day)) return false;
  const step = nth < 0 ? DAY_MS : -DAY_MS;
  let position = 0;
  for (let at = day; new Date(at).getUTCMonth() === new Date(day).getUTCMonth(); at += step)
    if (isCounted(at)) position++;
  return position === Math.abs(nth);
}

type DayTest = (day: number) => boolean;

/** One of `Monday`, `weekday`, `the last Friday`, `day 15`, `the 2nd last day`, `March 3`. */
function oneDay(text: string): DayTest {
  if (text === 'day') return () => true;
  if (/^weekdays?$/.test(text)) return isMondayToFriday;
  if (DAYS.includes(text)) return (day) => DAYS[new Date(day).getUTCDay()] === text;
  const date = /^(?:day )?(\d+)$/.exec(text)?.[1];
  if (date !== undefined) return (day) => new Date(day).getUTCDate() === Number(date);
  const [, month, ofMonth] = /^([A-Z][a-z]+) (\d+)$/.exec(text) ?? [];
  if (month !== undefined)
    return (day) => MONTHS[new Date(day).getUTCMonth()] === month && new Date(day).getUTCDate() === Number(ofMonth);
  const [, nth, of] = /^(the .+) (day|weekday|[A-Z][a-z]+day)$/.exec(text) ?? [];
  assert.ok(nth && of, `not a day: ${text}`);
  return (day) => isNth(day, ordinal(nth), oneDay(of));
}

const anyDay = (text: string): DayTest => {
  const tests = list(text).map(oneDay);
  return (day) => tests.some((isDay) => isDay(day));
};

/** Whether a day is in a period of `every 3 weeks`, counted from a day. */
function inPeriod(unit: string, interval: number, start: number): DayTest {
  const [from, months] = [
    new Date(start),
    (day: number) => new Date(day).getUTCFullYear() * 12 + new Date(day).getUTCMonth(),
  ];
  const week = (day: number) => Math.floor((day / DAY_MS + 3) / 7);
  const year = (day: number) => new Date(day).getUTCFullYear();
  const number = {
    day: (day: number) => day / DAY_MS,
    week,
    month: months,
    quarter: months,
    year,
  }[unit as 'day'];
  assert.ok(number, `not a unit: ${unit}`);
  return (day) => (number(day) - number(from.getTime())) % interval === 0;
}

/** What the words of a series state. */
type Claims = {
  readonly onDay: DayTest;
  /** Minutes of each of these days; undefined for a series in real time. */
  readonly minutes?: readonly number[];
  /** The distance of a series in real time; a multiple of it, if it does not fire on all days. */
  readonly everyMs?: number;
  readonly isEachDay?: boolean;
  readonly start?: number;
  readonly end?: number;
  readonly count?: number;
  readonly exceptions: number;
};

const range = (from: number, to: number, step: number) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, at) => from + at * step);
const allHours = range(0, 23, 1);

/** @param anchor the day on which the series was set, as a wall time, for what counts from there */
function claimsOf(words: string, anchor: number, zone: string): Claims {
  let rest = words;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    const found = pattern.exec(rest);
    if (found === null) return undefined;
    rest = rest.slice(0, found.index) + rest.slice(found.index + found[0].length);
    return found;
  };
  const exceptions = Number(take(/, except (\d+) dates?$/)?.[1] ?? 0);
  const weekStart = take(/, weeks beginning on (\w+)$/)?.[1];
  const count = take(/, (\d+) times?$/)?.[1];
  const [, until, untilTime, untilUtc] = take(/ until (\d{4}-\d\d-\d\d)(?: (\d\d:\d\d(?::\d\d)?))?( UTC)?$/) ?? [];
  const wallOf = (date: string | undefined, time: string, utc: string | undefined) => {
    if (date === undefined) return undefined;
    const written = Date.parse(`${date}T${time}Z`);
    return utc === undefined ? written : written + offsetAt(zone, written);
  };
  const end = wallOf(until, untilTime ?? '23:59:59', untilUtc);
  const [, from, fromTime, fromUtc] = take(/ from (\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?( UTC)?$/) ?? [];
  const start = wallOf(from, fromTime ?? '00:00', fromUtc);
  const begun = Math.floor((start ?? anchor) / DAY_MS) * DAY_MS;
  const only = take(/ in (?:months that have (?:it|them)|years that have it|leap years)$/);
  const common = {
    exceptions,
    ...(start !== undefined && { start }),
    ...(end !== undefined && { end }),
    ...(count !== undefined && { count: Number(count) }),
  };
  const duration = /^every((?: \d+ (?:h|min|s))+)$/.exec(rest)?.[1];
  if (duration !== undefined) {
    const parts = [...duration.matchAll(/(\d+) (h|min|s)/g)];
    const unitMs = { h: UNIT_MS.hour, min: UNIT_MS.minute, s: UNIT_MS.second };
    return {
      ...common,
      onDay: () => true,
      isEachDay: true,
      everyMs: parts.reduce((sum, [, size, unit]) => sum + Number(size) * unitMs[unit as 'h'], 0),
    };
  }
  const onEach = take(/ on each (.+)$/)?.[1];
  const onDay = onEach === undefined ? () => true : anyDay(onEach);
  const past = (text: string) => list(text).map((minute) => Number(minute.slice(1)));
  const times = (minutes: readonly number[], hours = allHours) =>
    hours.flatMap((hour) => minutes.map((at) => hour * 60 + at));
  if (rest === 'every minute') return { ...common, onDay, minutes: range(0, 1439, 1) };
  let found = /^every (\d+) minutes from :(\d\d)$/.exec(rest);
  if (found) {
    const minutes = range(Number(found[2]), 1439, Number(found[1]));
    // It is as far from the last one to the first one of the next day.
    assert.equal((1440 + minutes[0]! - minutes.at(-1)!) % 1440, Number(found[1]) % 1440, words);
    return { ...common, onDay, minutes };
  }
  found = /^every (?:(\d+) )?hours? at (:.+)$/.exec(rest);
  if (found) {
    assert.equal(24 % Number(found[1] ?? 1), 0, words);
    return { ...common, onDay, minutes: times(past(found[2]!), range(0, 23, Number(found[1] ?? 1))) };
  }
  found = /^at (:.+) of the hours (.+)$/.exec(rest);
  if (found) return { ...common, onDay, minutes: times(past(found[1]!), list(found[2]!).map(Number)) };
  found = /^every (?:(\d+) )?(minute|hour)s? from (\d\d:\d\d) to (\d\d:\d\d)$/.exec(rest);
  if (found) {
    const step = Number(found[1] ?? 1) * (found[2] === 'hour' ? 60 : 1);
    const minutes = range(minutesOf(found[3]!), minutesOf(found[4]!), step);
    assert.equal(minutes.at(-1), minutesOf(found[4]!), `${words}: the last one`);
    return { ...common, onDay, minutes };
  }
  const inMonths = take(
    / in ((?:(?:January|February|March|April|May|June|July|August|September|October|November|December)(?:, | and )?)+)(?= at |$)/,
  )?.[1];
  const isMonth: DayTest = (day) =>
    inMonths === undefined || list(inMonths).includes(MONTHS[new Date(day).getUTCMonth()]!);
  const [, timesText] = take(/ at (\d\d:\d\d.*)$/) ?? [];
  found = /^every (?:(\d+) )?(second|minute|hour)s?(?: on (.+))?$/.exec(rest);
  if (found) {
    const isDay = found[3] === undefined ? () => true : anyDay(found[3]);
    const everyMs = Number(found[1] ?? 1) * UNIT_MS[found[2] as 'hour'];
    return { ...common, onDay: (day) => isMonth(day) && isDay(day), isEachDay: !found![3] && !inMonths, everyMs };
  }
  found = /^every (?:(\d+) )?(day|week|month|quarter|year)s?(?: on (.+))?$/.exec(rest);
  const [unit, interval] = [found?.[2] ?? 'week', Number(found?.[1] ?? 1)];
  const days = found ? found[3] : /^every (.+)$/.exec(rest)?.[1];
  assert.ok(found || days, `not understood: ${words}`);
  assert.ok(unit === 'day' || days !== undefined, `no days: ${words}`);
  const isDay = days === undefined ? () => true : anyDay(days.replace(/^on /, ''));
  // The words must say when a month or a year is left out.
  const dates =
    unit === 'week' || days === undefined ? [] : [...days.matchAll(/(\d+)/g)].map(([number]) => Number(number));
  if (/\bday (?:29|3\d)|February 29/.test(days ?? '') && dates.length > 0)
    assert.ok(only !== undefined || inMonths !== undefined, `does not say that it leaves out months: ${words}`);
  const nthMonth = (day: number) => new Date(day).getUTCMonth() % 3;
  const quarter: DayTest = (day) => unit !== 'quarter' || nthMonth(day) === (/last/.test(days ?? '') ? 2 : 0);
  const week0 = DAYS.indexOf(weekStart ?? 'Monday');
  // A week that begins on another day is compared as if it began on Monday.
  const shift = weekStart === undefined ? 0 : (8 - week0) % 7;
  const isPeriod = inPeriod(unit, interval, unit === 'week' ? begun + shift * DAY_MS : begun);
  return {
    ...common,
    onDay: (day) =>
      isDay(day) && isMonth(day) && quarter(day) && isPeriod(unit === 'week' ? day + shift * DAY_MS : day),
    minutes: timesText === undefined ? [] : list(timesText).map(minutesOf),
  };
}

/**
 * @param instants the next ones of the series after `now`, at which it was set
 * @throws AssertionError if the words are not true of them
 */
export function assertTrue(
  words: string,
  { instants, now, zone }: { instants: readonly number[]; now: number; zone: string },
): void {
  const wallOf = (at: number) => at + offsetAt(zone, at);
  const { onDay, minutes, everyMs, isEachDay, start, end, count, exceptions } = claimsOf(words, wallOf(now), zone);
  const walls = instants.map(wallOf);
  // The engine does not look for the end of a rule beyond a century.
  const counted = instants.filter((at) => at - now < 90 * 366 * DAY_MS);
  if (count !== undefined) assert.ok(counted.length <= count, `${words}: ${counted.length} times`);
  for (const wall of walls) {
    if (start !== undefined) assert.ok(wall >= start, `${words}: before its start`);
    if (end !== undefined) assert.ok(wall <= end, `${words}: after its end`);
  }
  const dayOf = (wall: number) => Math.floor(wall / DAY_MS) * DAY_MS;
  // What a clock change does to a day is in words elsewhere (docs/concepts/alarms.md).
  const isPlain = (day: number) => offsetAt(zone, day - DAY_MS) === offsetAt(zone, day + 2 * DAY_MS);
  if (everyMs !== undefined) {
    for (const [at, instant] of instants.entries()) {
      if (isPlain(dayOf(walls[at]!)))
        assert.ok(onDay(dayOf(walls[at]!)), `${words}: ${new Date(walls[at]!).toISOString()}`);
      const isMoved = at === 0 || offsetAt(zone, instants[at - 1]!) !== offsetAt(zone, instant);
      const distance: number = isMoved ? everyMs : instant - instants[at - 1]!;
      assert.equal(isEachDay ? distance : distance % everyMs, isEachDay ? everyMs : 0, words);
    }
    return;
  }
  const shown = (wall: number) => new Date(wall).toISOString();
  const plain = walls.filter((wall) => isPlain(dayOf(wall)));
  if (minutes!.length === 0) {
    for (const wall of plain) assert.ok(onDay(dayOf(wall)), `${words}: ${shown(wall)}`);
    return;
  }
  const last = walls.at(-1) ?? wallOf(now);
  const stated: number[] = [];
  for (let day = dayOf(wallOf(now)); day <= last; day += DAY_MS) {
    if (!onDay(day) || !isPlain(day)) continue;
    for (const minute of minutes!) {
      const wall = day + minute * MINUTE_MS;
      if (
        wall > wallOf(now) &&
        wall <= last &&
        (start === undefined || wall >= start) &&
        (end === undefined || wall <= end)
      )
        stated.push(wall);
    }
  }
  const has = new Set(stated);
  for (const wall of plain) assert.ok(has.has(wall), `${words}: fires at ${shown(wall)}`);
  const fires = new Set(plain);
  const missing = stated.filter((wall) => !fires.has(wall));
  assert.ok(
    missing.length <= exceptions * (minutes!.length || 1),
    `${words}: does not fire at ${missing.slice(0, 3).map(shown).join()}`,
  );
}

/**
 * The wall clock readings of a zone in every real minute, read from `Intl` and stored day by day. Shares no code with
 * the product.
 */

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MINUTES_PER_DAY = 1440;
const QUARTER = 15;

/** A wall clock reading as the number yyyymmddhhmm, so that later readings are larger numbers. */
export type Reading = number;

/**
 * One real minute: the clock's reading, whether it is shown for the first time, and the readings that the clock has
 * just jumped over.
 */
export type WallMinute = { instant: number; reading: Reading; isFirst: boolean; skipped: readonly Reading[] };

/** One zone's wall clock, a UTC day at a time. */
export type WallDays = {
  /** The 1440 minutes of a UTC day, counted from the epoch. */
  day(dayNumber: number): readonly WallMinute[];
};

const NOTHING: readonly Reading[] = [];

/** The reading one minute later on an undisturbed clock. */
export function minuteLater(reading: Reading): Reading {
  let [year, month, day, hour, minute] = partsOf(reading);
  minute++;
  if (minute === 60) {
    minute = 0;
    hour++;
  }
  if (hour === 24) {
    hour = 0;
    day++;
  }
  if (day > daysIn(year, month)) {
    day = 1;
    month++;
  }
  if (month === 13) {
    month = 1;
    year++;
  }
  return readingOf(year, month, day, hour, minute);
}

export function readingOf(year: number, month: number, day: number, hour: number, minute: number): Reading {
  return (((year * 100 + month) * 100 + day) * 100 + hour) * 100 + minute;
}

/** Year, month, day, hour, minute. */
export function partsOf(reading: Reading): [number, number, number, number, number] {
  const date = Math.floor(reading / 10_000);
  return [
    Math.floor(date / 10_000),
    Math.floor(date / 100) % 100,
    date % 100,
    Math.floor(reading / 100) % 100,
    reading % 100,
  ];
}

export function daysIn(year: number, month: number): number {
  if (month === 2) return year % 400 === 0 || (year % 4 === 0 && year % 100 !== 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/**
 * The wall clock of a zone. Valid for instants since 1973: from then on the offset of every zone is a whole number of
 * minutes.
 *
 * @param keptDays number of cached days
 */
export function wallDaysOf(timezone: string, keptDays = 4_000): WallDays {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  const days = new Map<number, readonly WallMinute[]>();

  function read(instant: number): Reading {
    const match = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+)$/.exec(format.format(instant));
    if (!match) throw new Error(`cannot read ${format.format(instant)}`);
    return readingOf(Number(match[3]), Number(match[1]), Number(match[2]), Number(match[4]), Number(match[5]));
  }

  /** The readings of a UTC day. A quarter of an hour that also takes fifteen minutes on the wall clock is filled in. */
  function readings(dayNumber: number): Reading[] {
    const start = dayNumber * DAY_MS;
    const result: Reading[] = [];
    let reading = read(start);
    for (let from = 0; from < MINUTES_PER_DAY; from += QUARTER) {
      const filled = [reading];
      while (filled.length < QUARTER) filled.push(minuteLater(filled.at(-1)!));
      const end = read(start + (from + QUARTER) * MINUTE_MS);
      const isUndisturbed = minuteLater(filled.at(-1)!) === end;
      if (isUndisturbed) result.push(...filled);
      else for (let minute = from; minute < from + QUARTER; minute++) result.push(read(start + minute * MINUTE_MS));
      reading = end;
    }
    return result;
  }

  function isUndisturbed(of: readonly Reading[]): boolean {
    return of.every((reading, index) => index === 0 || reading === minuteLater(of[index - 1]!));
  }

  function build(dayNumber: number): WallMinute[] {
    const before = readings(dayNumber - 1);
    const today = readings(dayNumber);
    const isPlain = isUndisturbed([...before, ...today]);
    const shown = new Set<Reading>(isPlain ? [] : before);
    return today.map((reading, minute) => {
      const instant = dayNumber * DAY_MS + minute * MINUTE_MS;
      if (isPlain) return { instant, reading, isFirst: true, skipped: NOTHING };
      const skipped: Reading[] = [];
      const previous = minute === 0 ? before.at(-1)! : today[minute - 1]!;
      for (let between = minuteLater(previous); between < reading; between = minuteLater(between)) {
        if (!shown.has(between)) skipped.push(between);
      }
      const isFirst = !shown.has(reading);
      shown.add(reading);
      return { instant, reading, isFirst, skipped };
    });
  }

  return {
    day(dayNumber) {
      let minutes = days.get(dayNumber);
      if (!minutes) {
        minutes = build(dayNumber);
        if (days.size >= keptDays) days.delete(days.keys().next().value!);
        days.set(dayNumber, minutes);
      }
      return minutes;
    },
  };
}

/** Random recurrence rules from a seed, and the instants at which they are asked about. */
import { below, pick, type Random } from '../cron-oracle/generator.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const FREQUENCIES = ['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY', 'SECONDLY'] as const;
export type Frequency = (typeof FREQUENCIES)[number];

const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

/** One rule and what the oracles need to know of it without reading it. */
export type DrawnRule = {
  readonly text: string;
  readonly frequency: Frequency;
  readonly parts: Readonly<Record<string, string>>;
};

/**
 * How far from the start the rules of a frequency are asked about. The libraries iterate from the start, so it is
 * short for frequent ones.
 */
const SPANS: Record<Frequency, number> = {
  YEARLY: 40 * 366 * DAY_MS,
  MONTHLY: 12 * 366 * DAY_MS,
  WEEKLY: 10 * 366 * DAY_MS,
  DAILY: 3 * 366 * DAY_MS,
  HOURLY: 40 * DAY_MS,
  MINUTELY: 2 * DAY_MS,
  SECONDLY: HOUR_MS,
};

const UNITS: Record<Frequency, number> = {
  YEARLY: 366 * DAY_MS,
  MONTHLY: 31 * DAY_MS,
  WEEKLY: 7 * DAY_MS,
  DAILY: DAY_MS,
  HOURLY: HOUR_MS,
  MINUTELY: MINUTE_MS,
  SECONDLY: SECOND_MS,
};

export function drawGap(random: Random, frequency: Frequency): number {
  return Math.floor(random() ** 2 * SPANS[frequency]);
}

function list(random: Random, most: number, draw: () => number): string {
  const length = random() < 0.5 ? 1 : 1 + below(random, most);
  return [...new Set(Array.from({ length }, draw))].join(',');
}

const signed = (random: Random, most: number) => () => {
  const value = 1 + below(random, most);
  return random() < 0.3 ? -value : value;
};

/** `20260615T100000` */
export const readingText = (wall: number): string => new Date(wall).toISOString().replace(/[-:]|\.\d+Z$/g, '');

function drawWeekdays(random: Random, frequency: Frequency, isByWeek: boolean): string {
  const hasNumbers = (frequency === 'MONTHLY' || frequency === 'YEARLY') && !isByWeek && random() < 0.5;
  const most = frequency === 'YEARLY' && random() < 0.5 ? 52 : 5;
  const days = Array.from({ length: random() < 0.4 ? 1 : 1 + below(random, 5) }, () => {
    const number = hasNumbers ? String(signed(random, most)()) : '';
    return number + pick(random, WEEKDAYS);
  });
  return [...new Set(days)].join(',');
}

/** A rule that RFC 5545 allows. @param isFrequent it fires about once a day or more often, also at night */
export function drawRule(random: Random, start: number, isFrequent = false): DrawnRule {
  const frequency = pick(random, isFrequent ? (['DAILY', 'HOURLY', 'MINUTELY'] as const) : FREQUENCIES);
  const parts: Record<string, string> = { FREQ: frequency };
  const may = (share: number) => random() < (isFrequent ? share / 4 : share);
  const isDaily = ['HOURLY', 'MINUTELY', 'SECONDLY'].includes(frequency);
  if (may(0.5)) {
    const plain = 1 + below(random, 6);
    const longer =
      1 +
      below(
        random,
        { YEARLY: 6, MONTHLY: 15, WEEKLY: 30, DAILY: 100, HOURLY: 100, MINUTELY: 3000, SECONDLY: 9000 }[frequency],
      );
    parts.INTERVAL = String(may(0.7) ? plain : longer);
  }
  if (may(isDaily ? 0.15 : 0.3)) parts.BYMONTH = list(random, 4, () => 1 + below(random, 12));
  if (frequency === 'YEARLY' && may(0.15)) parts.BYWEEKNO = list(random, 4, signed(random, 53));
  if ((frequency === 'YEARLY' || isDaily) && may(frequency === 'YEARLY' ? 0.2 : 0.05))
    parts.BYYEARDAY = list(random, 6, signed(random, 366));
  if (frequency !== 'WEEKLY' && may(isDaily ? 0.1 : 0.35)) parts.BYMONTHDAY = list(random, 5, signed(random, 31));
  // Without it, libraries disagree about the days of a week by number.
  if (parts.BYWEEKNO !== undefined || may(isDaily ? 0.2 : 0.45))
    parts.BYDAY = drawWeekdays(random, frequency, parts.BYWEEKNO !== undefined);
  if (random() < (isDaily && !isFrequent ? 0.25 : 0.4))
    parts.BYHOUR = list(random, 4, () => below(random, isFrequent ? 5 : 24));
  if (may(0.3)) parts.BYMINUTE = list(random, 4, () => below(random, 60));
  if (may(0.2)) parts.BYSECOND = list(random, 3, () => below(random, 60));
  if (may(0.2) && Object.keys(parts).some((name) => name.startsWith('BY')))
    parts.BYSETPOS = list(random, 3, signed(random, may(0.7) ? 4 : 30));
  if (may(0.2)) parts.WKST = pick(random, WEEKDAYS);
  const limit = random();
  if (limit < 0.15) parts.COUNT = String(1 + below(random, may(0.7) ? 12 : 300));
  else if (limit < 0.3)
    parts.UNTIL = readingText(start + Math.floor(random() * 40 * UNITS[frequency] * Number(parts.INTERVAL ?? 1)));
  const text = Object.entries(parts)
    .map(([name, value]) => `${name}=${value}`)
    .join(';');
  return { text, frequency, parts };
}

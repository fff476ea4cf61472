/** Compares the product's recurrence engine with the libraries and, in zones, with a plain reading of the contract. */
import { compileRule } from '../../../src/chronos/alarm/schedule.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { drawPlaces, pick, type Random, randomOf } from '../cron-oracle/generator.ts';
import { type DrawnRule, drawGap, drawRule, readingText } from './generator.ts';
import { followsRealTime, instantOf, realTimeOccurrences } from './in-zone.ts';
import { type Answer, dateutil, type Question, rruleTemporal } from './libraries.ts';

const DAY_MS = 86_400_000;
const TAKEN = 6;
/** The product looks this far ahead; a library may look farther. */
const HORIZON_MS = 47 * 366 * DAY_MS;
const EARLIEST = Date.UTC(1990, 0, 1);
const LATEST = Date.UTC(2040, 0, 1);

const ZONES = [
  'UTC',
  'America/New_York',
  'Europe/Berlin',
  'Europe/Dublin',
  'America/Santiago', // changes at midnight
  'Africa/Casablanca', // back for Ramadan
  'Asia/Kathmandu',
  'Pacific/Apia', // no 30 December 2011
  'Australia/Adelaide',
  'Australia/Lord_Howe', // half an hour
];

/** How often the product agreed, and with whom. */
export type Tally = {
  rules: number;
  occurrences: number;
  /** Rules that no library answers in time, or that never fire. */
  unanswered: number;
  never: number;
  agreedByAll: number;
  /** Differences of one library, by their known reason; the other library agrees with the product. */
  explained: Map<string, number>;
  zoned: number;
  /** Unions without an independent answer. */
  skipped: number;
  zonedOccurrences: number;
  realTime: number;
  movedOrRepeated: number;
};

export type Mismatch = { text: string; timezone: string; after: number; expected: string; actual: string };

export const emptyTally = (): Tally => ({
  ...{ rules: 0, occurrences: 0, unanswered: 0, never: 0, agreedByAll: 0, explained: new Map() },
  ...{ zoned: 0, skipped: 0, zonedOccurrences: 0, realTime: 0, movedOrRepeated: 0 },
});

const show = (instants: readonly number[] | undefined) =>
  instants?.map((at) => new Date(at).toISOString().replace('.000Z', 'Z')).join(' ') || 'none';

/** The next occurrences of a text; `undefined` for one that the product refuses. */
function actualOf(text: string, timezone: string, after: number): { next: number[]; count: number } | undefined {
  try {
    const schedule = compileRule(text, timezone, 0);
    const next: number[] = [];
    for (let at = schedule.next(after); at !== undefined && next.length < TAKEN; at = schedule.next(at)) next.push(at);
    const last = next.at(-1);
    const latest = last === undefined ? undefined : schedule.latest(after, last);
    if (latest && latest.at !== last) return { next, count: Number.NaN };
    return { next, count: latest?.count ?? 0 };
  } catch (error) {
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

/** Whether two expansions are the same as far as the product looks ahead. */
function isSame(actual: readonly number[], answer: Answer, after: number): boolean {
  const known: number[] = [];
  for (const at of answer ?? []) {
    if (at - (known.at(-1) ?? after) > HORIZON_MS) break;
    known.push(at);
  }
  return (
    answer !== undefined &&
    actual.slice(0, known.length).join() === known.join() &&
    (known.length === TAKEN || actual.length <= known.length || known.length < answer.length)
  );
}

/** Why a library differs from RFC 5545; read in its source or its issues. */
function reasonOf(library: 'dateutil' | 'rrule-temporal', { frequency, parts }: DrawnRule): string | undefined {
  const days = parts.BYDAY?.split(',') ?? [];
  const hasNumbers = days.some((day) => day.length > 2);
  if (library === 'dateutil') {
    if (parts.BYWEEKNO !== undefined) return 'dateutil: week numbers at the turn of a year';
    if (hasNumbers && days.some((day) => day.length === 2))
      return 'dateutil: BYDAY with and without numbers must both match';
    if (frequency === 'WEEKLY' && parts.BYSETPOS !== undefined)
      return 'dateutil: BYSETPOS counts the days of the first week from DTSTART on';
    return undefined;
  }
  if (frequency !== 'YEARLY') return undefined;
  if (parts.BYYEARDAY !== undefined && (parts.BYDAY ?? parts.BYMONTHDAY) !== undefined)
    return 'rrule-temporal: BYYEARDAY ignores BYDAY and BYMONTHDAY';
  if (hasNumbers) return 'rrule-temporal: numbered BYDAY of a year ignores BYMONTHDAY';
  if (parts.BYWEEKNO !== undefined && parts.BYMONTHDAY !== undefined)
    return 'rrule-temporal: BYWEEKNO ignores BYMONTHDAY';
  // The product, like dateutil, counts a day in the year of its date.
  if (parts.BYWEEKNO !== undefined && (parts.BYSETPOS ?? parts.INTERVAL) !== undefined)
    return 'rrule-temporal: INTERVAL and BYSETPOS count a week in the year of its number';
  return undefined;
}

/** Compares rules without a zone. The libraries iterate from the start, so questions are asked near it. */
function* compareRules(random: Random, count: number, tally: Tally): Generator<Mismatch> {
  const drawn = Array.from({ length: count }, () => {
    const start = Math.floor((EARLIEST + random() * (LATEST - EARLIEST)) / 1_000) * 1_000;
    const rule = drawRule(random, start);
    return { rule, question: { rule: rule.text, start, after: start + drawGap(random, rule.frequency), take: TAKEN } };
  });
  const answersOfDateutil = dateutil(drawn.map(({ question }): Question => question));
  for (const [index, { rule, question }] of drawn.entries()) {
    const text = `DTSTART:${readingText(question.start)}\nRRULE:${rule.text}`;
    const actual = actualOf(text, 'UTC', question.after);
    tally.rules++;
    const answers = [
      ['rrule-temporal', rruleTemporal(question)],
      ['dateutil', answersOfDateutil?.[index]],
    ] as const;
    const given = answers.filter(([, answer]) => answer !== undefined);
    if (given.length === 0) {
      if (actual?.next.length === 0) tally.never++;
      else tally.unanswered++;
      continue;
    }
    const found = actual?.next ?? [];
    const differing = given.filter(([, answer]) => !isSame(found, answer, question.after));
    const reasons = differing.map(([library]) => reasonOf(library, rule));
    if (actual && actual.count === found.length && differing.length === 0) {
      tally.agreedByAll++;
      tally.occurrences += found.length;
    } else if (actual && actual.count === found.length && differing.length === 1 && reasons[0] !== undefined)
      tally.explained.set(reasons[0], (tally.explained.get(reasons[0]) ?? 0) + 1);
    else
      yield {
        ...{ text, timezone: 'UTC', after: question.after },
        expected: given.map(([name, answer]) => `${name}: ${show(answer)}`).join('\n    '),
        actual: `${show(found)}, ${actual?.count} in all`,
      };
  }
}

/** Compares unions of rules, RDATE and EXDATE in zones, mostly near clock changes. */
function* compareInZones(random: Random, count: number, tally: Tally): Generator<Mismatch> {
  const places = new Map(ZONES.map((timezone) => [timezone, drawPlaces(random, timezone, 40)]));
  for (let drawn = 0; drawn < count; drawn++) {
    const timezone = pick(random, ZONES);
    const place = pick(random, places.get(timezone)!);
    const start = Math.floor(Math.min(LATEST, Math.max(EARLIEST, place - random() * 2 * DAY_MS)) / 1_000) * 1_000;
    const rules = Array.from({ length: random() < 0.7 ? 1 : 2 }, () => drawRule(random, start, random() < 0.6));
    const after = start + Math.floor(random() < 0.6 ? random() * 2 * DAY_MS : drawGap(random, rules[0]!.frequency));
    const expansions = rules.map((rule) => expansionOf(rule, { start, after, timezone }));
    if (expansions.some((expansion) => expansion === undefined)) {
      tally.skipped++;
      continue;
    }
    const ends = expansions.flatMap((expansion) => (expansion!.length < TAKEN ? [] : [expansion!.at(-1)!]));
    const end = Math.min(...ends, after + HORIZON_MS);
    const union = [...new Set(expansions.flatMap((expansion) => expansion!))]
      .filter((at) => at <= end)
      .sort((a, b) => a - b);
    const readings = union.map((at) => readingText(at + offsetOf(timezone, at)));
    const excluded = readings.filter(() => random() < 0.15);
    const added = Array.from(
      { length: random() < 0.2 ? 2 : 0 },
      () => Math.floor((after + random() * 3_600_000) / 1_000) * 1_000,
    );
    const lines = [
      `DTSTART:${readingText(start)}`,
      ...rules.map(({ text }) => `RRULE:${text}`),
      ...(excluded.length === 0 ? [] : [`EXDATE:${excluded.join(',')}`]),
      ...(added.length === 0 ? [] : [`RDATE:${added.map((at) => `${readingText(at)}Z`).join(',')}`]),
    ];
    // The first reading of a time that is repeated is excluded.
    const gone = new Set(excluded.map((reading) => instantOf(parseReading(reading), timezone)));
    const expected = [...new Set([...union, ...added])]
      .filter((at) => at > after && at <= end && !gone.has(at))
      .sort((a, b) => a - b)
      .slice(0, TAKEN);
    const text = lines.join('\n');
    const actual = actualOf(text, timezone, after);
    const found = actual?.next.filter((at) => at <= end).slice(0, expected.length + 1) ?? [];
    tally.zoned++;
    if (rules.some(followsRealTime)) tally.realTime++;
    tally.zonedOccurrences += expected.length;
    tally.movedOrRepeated += expected.filter(
      (at) => offsetOf(timezone, at - DAY_MS / 8) !== offsetOf(timezone, at),
    ).length;
    const isEqual =
      expected.join() === found.slice(0, expected.length).join() &&
      (expected.length === TAKEN || found.length === expected.length);
    if (!isEqual || actual!.count !== actual!.next.length)
      yield {
        ...{ text, timezone, after },
        expected: show(expected),
        actual: `${show(found)}, ${actual?.count} of ${actual?.next.length} in all`,
      };
  }
}

const parseReading = (text: string) =>
  Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)$/, '$1-$2-$3T$4:$5:$6Z'));

const formats = new Map<string, Intl.DateTimeFormat>();
/** The offset of a zone, from `Intl`. */
function offsetOf(timezone: string, at: number): number {
  let format = formats.get(timezone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' });
    formats.set(timezone, format);
  }
  const [, sign = '+', hours = '0', minutes = '0'] = /GMT(?:([+-])(\d\d):(\d\d))?$/.exec(format.format(at)) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/** The first occurrences of a rule after an instant; `undefined` without an independent answer. */
function expansionOf(
  rule: DrawnRule,
  { start, after, timezone }: { start: number; after: number; timezone: string },
): number[] | undefined {
  // A start that the clock skips, or UNTIL and COUNT near a change, are tested by examples.
  const begin = instantOf(start, timezone);
  if (begin + offsetOf(timezone, begin) !== start || rule.parts.UNTIL !== undefined) return undefined;
  if (followsRealTime(rule)) {
    if (timezone === 'Australia/Lord_Howe') return undefined;
    return realTimeOccurrences(rule, begin, timezone, { after, take: TAKEN });
  }
  const from = after + offsetOf(timezone, after) - 2 * DAY_MS;
  const question = { rule: rule.text, start, after: Math.max(from, start - 1_000), take: 8 * TAKEN };
  // Only rules about whose wall times all agree: the rest is compared without zones.
  const walls = rruleTemporal(question);
  const known = actualOf(`DTSTART:${readingText(start)}\nRRULE:${rule.text}`, 'UTC', question.after);
  if (walls === undefined || !known || !isSame(known.next, walls.slice(0, TAKEN), question.after)) return undefined;
  const instants = [...new Set(walls.map((wall) => instantOf(wall, timezone)))].filter((at) => at > after);
  // A list that is cut short must not look like the end of the rule.
  if (walls.length === question.take && instants.length < TAKEN) return undefined;
  return instants.slice(0, TAKEN);
}

/**
 * Compares `count` rules without zones, and as many unions in zones.
 *
 * @returns the tally, and the first mismatches
 */
export function run(
  seed: number,
  count: number,
  { most = 10, report = () => {} }: { most?: number; report?: (tally: Tally) => void } = {},
): { tally: Tally; mismatches: Mismatch[] } {
  const random = randomOf(seed);
  const tally = emptyTally();
  const mismatches: Mismatch[] = [];
  for (let done = 0; done < count && mismatches.length < most; done += 1_000) {
    const batch = Math.min(1_000, count - done);
    mismatches.push(...compareRules(random, batch, tally), ...compareInZones(random, batch, tally));
    report(tally);
  }
  return { tally, mismatches: mismatches.slice(0, most) };
}

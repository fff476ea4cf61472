/**
 * Reads recurrence rules: the content lines RRULE, DTSTART, RDATE and EXDATE of RFC 5545, sections 3.3.10 and 3.8.5.
 * Pure.
 *
 * Stricter than most readers: a part that RFC 5545 forbids for a frequency is an error, because implementations disagree
 * about its meaning.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { type ContentLine, contentLines, isContentLine } from './content-line.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

export const FREQUENCIES = ['SECONDLY', 'MINUTELY', 'HOURLY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY'] as const;
export type Frequency = (typeof FREQUENCIES)[number];

export const WEEKDAYS = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'] as const;

/** A date, or a date and time, as written. */
export type Moment = {
  /** The reading, as the milliseconds of the same reading in UTC. */
  readonly reading: number;
  /** Written without a time of day. */
  readonly isDate: boolean;
  /** The zone of the reading: `UTC` for a `Z`, the value of TZID, `undefined` for the zone of the series. */
  readonly zone: string | undefined;
  /** The length of a period. */
  readonly lengthMs?: number;
};

/** A weekday, Monday 0. `nth` is its number within the month or year, from the end if negative; 0 means each. */
export type Weekday = { readonly weekday: number; readonly nth: number };

/** One RRULE. An absent list does not restrict. */
export type Rule = {
  readonly frequency: Frequency;
  readonly interval: number;
  readonly count: number | undefined;
  readonly until: Moment | undefined;
  /** The first day of a week, Monday 0. */
  readonly weekStart: number;
  readonly bySecond: readonly number[] | undefined;
  readonly byMinute: readonly number[] | undefined;
  readonly byHour: readonly number[] | undefined;
  readonly byDay: readonly Weekday[] | undefined;
  readonly byMonthDay: readonly number[] | undefined;
  readonly byYearDay: readonly number[] | undefined;
  readonly byWeekNo: readonly number[] | undefined;
  readonly byMonth: readonly number[] | undefined;
  readonly bySetPos: readonly number[] | undefined;
};

export type Recurrence = {
  readonly rules: readonly Rule[];
  readonly start: Moment | undefined;
  readonly added: readonly Moment[];
  readonly excluded: readonly Moment[];
};

/** Rules of one recurrence: each costs time at every step. */
export const MOST_RULES = 16;
/** The end of a counted rule is found by counting, so the number is bounded. */
const MOST_COUNTED = 10_000;
const LARGEST_INTERVAL = 1_000_000;

type NumberPart = {
  readonly member:
    | 'bySecond'
    | 'byMinute'
    | 'byHour'
    | 'byMonthDay'
    | 'byYearDay'
    | 'byWeekNo'
    | 'byMonth'
    | 'bySetPos';
  readonly least: number;
  readonly most: number;
  /** Negative values count from the end. */
  readonly isSigned: boolean;
  /** The frequencies for which RFC 5545 forbids the part. */
  readonly notFor: readonly Frequency[];
};

const NOT_YEARLY = FREQUENCIES.filter((frequency) => frequency !== 'YEARLY');

const NUMBER_PARTS: Readonly<Record<string, NumberPart>> = {
  BYSECOND: { member: 'bySecond', least: 0, most: 59, isSigned: false, notFor: [] },
  BYMINUTE: { member: 'byMinute', least: 0, most: 59, isSigned: false, notFor: [] },
  BYHOUR: { member: 'byHour', least: 0, most: 23, isSigned: false, notFor: [] },
  BYMONTHDAY: { member: 'byMonthDay', least: 1, most: 31, isSigned: true, notFor: ['WEEKLY'] },
  BYYEARDAY: { member: 'byYearDay', least: 1, most: 366, isSigned: true, notFor: ['DAILY', 'WEEKLY', 'MONTHLY'] },
  BYWEEKNO: { member: 'byWeekNo', least: 1, most: 53, isSigned: true, notFor: NOT_YEARLY },
  BYMONTH: { member: 'byMonth', least: 1, most: 12, isSigned: false, notFor: [] },
  BYSETPOS: { member: 'bySetPos', least: 1, most: 366, isSigned: true, notFor: [] },
};

/** Parts of RFC 7529 with the values that change nothing. */
const NEUTRAL_PARTS: Readonly<Record<string, string>> = { RSCALE: 'GREGORIAN', SKIP: 'OMIT' };

const PART_NAMES = ['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'WKST', 'BYDAY', ...Object.keys(NUMBER_PARTS)];
const LINE_NAMES = ['RRULE', 'DTSTART', 'RDATE', 'EXDATE'];

const EXAMPLE = 'RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO';

/** Throws with a sentence about the problem; {@link parseRecurrence} adds the field and the text. */
function refuse(problem: string): never {
  throw new ReveilleError('invalid_request', problem);
}

/**
 * Parses content lines. Lines are separated by line breaks and may be folded as in an iCalendar file. A text that
 * begins with `FREQ=` is one rule.
 *
 * @throws ReveilleError `invalid_request` that names the line, the part, the value and the remedy
 */
export function parseRecurrence(text: string): Recurrence {
  const read = new RecurrenceLines();
  const lines = [...contentLines(/^\s*FREQ=/i.test(text) ? `RRULE:${text.trim()}` : text)];
  for (const line of lines) {
    try {
      if (!isContentLine(line) || !read.add(line))
        refuse(`a line must begin with ${LINE_NAMES.join(', ')}; write a line such as ${EXAMPLE}`);
    } catch (error) {
      if (!(error instanceof ReveilleError)) throw error;
      throw recurrenceError(text, lines.length > 1 ? `line ${line.line}: ${error.message}` : error.message);
    }
  }
  if (read.rules.length === 0 && read.added.length === 0)
    throw recurrenceError(text, `a rule is missing; write a line such as ${EXAMPLE}`);
  return read;
}

/** Collects the lines of one recurrence. */
export class RecurrenceLines implements Recurrence {
  readonly rules: Rule[] = [];
  start: Moment | undefined;
  readonly added: Moment[] = [];
  readonly excluded: Moment[] = [];

  /**
   * @returns false if the line does not belong to a recurrence
   * @throws ReveilleError `invalid_request` with a sentence about the line
   */
  add({ name, parameters, value }: ContentLine): boolean {
    switch (name) {
      case 'RRULE':
        if (this.rules.length === MOST_RULES) refuse(`at most ${MOST_RULES} RRULE lines are allowed`);
        this.rules.push(parseRule({ name, parameters, value }));
        return true;
      case 'DTSTART':
        if (this.start) refuse('DTSTART occurs more than once; write one');
        this.start = parseMoments({ name, parameters, value })[0];
        return true;
      case 'RDATE':
        this.added.push(...parseMoments({ name, parameters, value }));
        return true;
      case 'EXDATE':
        this.excluded.push(...parseMoments({ name, parameters, value }));
        return true;
      default:
        return false;
    }
  }
}

/** An error about the field `rrule`: what is wrong with it, and its text. */
export function recurrenceError(text: string, problem: string): ReveilleError {
  return new ReveilleError('invalid_request', `rrule: ${problem} (got ${showValue(text)})`);
}

/**
 * The rule of RRULE or a line of its form.
 *
 * @throws ReveilleError `invalid_request` with a sentence about the line
 */
export function parseRule({ name: line, parameters, value }: Pick<ContentLine, 'name' | 'parameters' | 'value'>): Rule {
  // Section 3.8.5.3 allows any other parameter.
  for (const [key, setting] of parameters)
    if (key === 'VALUE' && !/^RECUR$/i.test(setting)) refuse(`${line} takes VALUE=RECUR (it has VALUE=${setting})`);
  const parts = new Map<string, string>();
  for (const part of value.split(';')) {
    // Some programs end a rule with a semicolon.
    if (part === '') continue;
    const [, name = '', list = ''] = /^([^=]*)=?(.*)/s.exec(part)!;
    const key = name.trim().toUpperCase();
    if (NEUTRAL_PARTS[key] === list.trim().toUpperCase()) continue;
    if (!PART_NAMES.includes(key))
      refuse(`${showValue(part)} is no part of a rule; parts are ${PART_NAMES.join(', ')}`);
    if (parts.has(key)) refuse(`${key} occurs twice; write it once, with a list such as ${key}=1,15`);
    parts.set(key, list.trim().toUpperCase());
  }
  const frequency = FREQUENCIES.find((known) => known === parts.get('FREQ'));
  if (frequency === undefined)
    refuse(`FREQ must be one of ${FREQUENCIES.join(', ')} (it is ${showValue(parts.get('FREQ'))})`);
  const number = (name: string, most: number) => {
    const text = parts.get(name);
    if (text === undefined) return undefined;
    if (!/^\d{1,9}$/.test(text) || Number(text) < 1 || Number(text) > most)
      refuse(`${name} must be a whole number from 1 to ${most} (it is ${showValue(text)})`);
    return Number(text);
  };
  const numbers: Partial<Record<NumberPart['member'], number[]>> = {};
  for (const [name, part] of Object.entries(NUMBER_PARTS)) {
    const list = parts.get(name);
    if (list === undefined) continue;
    if (part.notFor.includes(frequency))
      refuse(
        `${name} is not for FREQ=${frequency}; use ${FREQUENCIES.filter((one) => !part.notFor.includes(one)).join(' or ')}`,
      );
    numbers[part.member] = parseNumbers(name, part, list);
  }
  const count = number('COUNT', MOST_COUNTED);
  const until = parts.get('UNTIL');
  if (count !== undefined && until !== undefined) refuse('COUNT and UNTIL exclude each other; keep one');
  const weekStart = parts.get('WKST') ?? 'MO';
  if (!(WEEKDAYS as readonly string[]).includes(weekStart))
    refuse(`WKST must be one of ${WEEKDAYS.join(', ')} (it is ${showValue(weekStart)})`);
  const byDay = parts.has('BYDAY')
    ? parseWeekdays(parts.get('BYDAY')!, frequency, numbers.byWeekNo !== undefined)
    : undefined;
  if (numbers.bySetPos !== undefined && byDay === undefined && Object.keys(numbers).length === 1)
    refuse('BYSETPOS selects from the days or times of other parts; add one such as BYDAY');
  return {
    frequency,
    interval: number('INTERVAL', LARGEST_INTERVAL) ?? 1,
    count,
    until: until === undefined ? undefined : parseMoment('UNTIL', until, undefined),
    weekStart: (WEEKDAYS as readonly string[]).indexOf(weekStart),
    bySecond: numbers.bySecond,
    byMinute: numbers.byMinute,
    byHour: numbers.byHour,
    byDay,
    byMonthDay: numbers.byMonthDay,
    byYearDay: numbers.byYearDay,
    byWeekNo: numbers.byWeekNo,
    byMonth: numbers.byMonth,
    bySetPos: numbers.bySetPos,
  };
}

function parseNumbers(name: string, { least, most, isSigned }: NumberPart, list: string): number[] {
  const values = list.split(',').map((text) => {
    const value = Number(text);
    if (!/^[+-]?\d{1,3}$/.test(text) || Math.abs(value) < least || Math.abs(value) > most || (value < 0 && !isSigned)) {
      const range = isSigned ? `${least} to ${most} or -${most} to -${least}` : `${least} to ${most}`;
      refuse(`${name} takes whole numbers from ${range}, separated by commas (it is ${showValue(list)})`);
    }
    // No negative zero.
    return value + 0;
  });
  return [...new Set(values)].sort((one, other) => one - other);
}

function parseWeekdays(list: string, frequency: Frequency, hasWeeks: boolean): Weekday[] {
  return list.split(',').map((text) => {
    const match = /^([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)$/.exec(text);
    const nth = Number(match?.[1] ?? 0);
    if (!match || (match[1] !== undefined && (nth === 0 || Math.abs(nth) > 53)))
      refuse(`BYDAY takes ${WEEKDAYS.join(', ')}, or with a number such as 1MO and -1FR (it is ${showValue(list)})`);
    if (nth !== 0 && frequency !== 'MONTHLY' && frequency !== 'YEARLY')
      refuse(
        `BYDAY=${text} needs FREQ=MONTHLY or FREQ=YEARLY (it is FREQ=${frequency}); write ${match[2]} without a number`,
      );
    if (nth !== 0 && hasWeeks)
      refuse(`BYDAY=${text} cannot be combined with BYWEEKNO; write ${match[2]} without a number`);
    return { weekday: (WEEKDAYS as readonly string[]).indexOf(match[2]!), nth };
  });
}

const DURATION = /^\+?P(?:(\d{1,4})W|(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?)?)$/i;

/**
 * A DURATION or the length of a period.
 *
 * @throws ReveilleError `invalid_request` with a sentence about the line
 */
export function parseDuration(name: string, value: string): number {
  const match = DURATION.exec(value);
  const [weeks, days, hours, minutes, seconds] = (match ?? []).slice(1, 6).map((digits) => Number(digits ?? 0));
  if (!match || match.slice(1).every((digits) => digits === undefined))
    refuse(`${name} must be such as P1D or PT1H30M (it is ${showValue(value)})`);
  return weeks! * 7 * DAY_MS + days! * DAY_MS + ((hours! * 60 + minutes!) * 60 + seconds!) * SECOND_MS;
}

/**
 * The moments of DTSTART, RDATE, EXDATE or a line of their form. Only RDATE may have periods.
 *
 * @throws ReveilleError `invalid_request` with a sentence about the line
 */
export function parseMoments({
  name,
  parameters,
  value,
}: Pick<ContentLine, 'name' | 'parameters' | 'value'>): Moment[] {
  let zone: string | undefined;
  let arePeriods = false;
  for (const [key, setting] of parameters) {
    if (key === 'TZID') zone = setting;
    else if (key === 'VALUE' && name === 'RDATE' && /^PERIOD$/i.test(setting)) arePeriods = true;
    else if (key === 'VALUE' && !/^DATE(-TIME)?$/i.test(setting))
      refuse(`${name} takes VALUE=DATE or VALUE=DATE-TIME (it has VALUE=${setting})`);
  }
  const texts = value.split(',').map((text) => text.trim());
  return texts.map((text) => (arePeriods ? parsePeriod(name, text, zone) : parseMoment(name, text, zone)));
}

/** A period with an end or a length: `20261209T100000Z/PT1H`. */
function parsePeriod(name: string, text: string, zone: string | undefined): Moment {
  const [begin = '', end = ''] = text.split('/');
  const start = parseMoment(name, begin, zone);
  const lengthMs = /^[+-]?P/i.test(end)
    ? parseDuration(name, end)
    : parseMoment(name, end, zone).reading - start.reading;
  return { ...start, lengthMs: Math.max(0, lengthMs) };
}

/** A moment without its time of day. */
export const dateOf = ({ reading }: Moment): Moment => ({
  ...{ reading: Math.floor(reading / DAY_MS) * DAY_MS, isDate: true, zone: undefined },
});

const MOMENT = /^(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d):?(\d\d)(Z)?)?$/i;

function parseMoment(name: string, text: string, zone: string | undefined): Moment {
  // Section 3.3.12: a leap second is read as the second before it.
  const match = MOMENT.exec(text.replace(/(?<=T\d\d:?\d\d:?)60(?=Z?$)/i, '59'));
  const [year, month, day, hour, minute, second] = (match ?? []).slice(1, 7).map((digits) => Number(digits ?? 0));
  const reading = match ? Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) : Number.NaN;
  const normal = match && new Date(reading).toISOString().replace(/[-:]|\.\d+Z$/g, '');
  const written =
    match && `${match[1]}${match[2]}${match[3]}T${match[4] ?? '00'}${match[5] ?? '00'}${match[6] ?? '00'}`;
  if (!match || normal !== written)
    refuse(
      `${name} must be a date and time such as 20260615T100000, in UTC 20260615T080000Z, or a date 20260615 (it is ${showValue(text)})`,
    );
  return { reading, isDate: match[4] === undefined, zone: match[7] === undefined ? zone : 'UTC' };
}

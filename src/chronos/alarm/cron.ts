/** The cron expression: parses its text into the sets of values that its fields allow (docs/reference/api.md, "chronosd: alarms"). */
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';

/**
 * The values that a cron expression allows. Sets of hours and minutes are sorted lists, sets of days and months are bit
 * masks.
 */
export type CronFields = {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** Bit d − 1 is day d. */
  readonly daysOfMonth: number;
  /** Bit m − 1 is month m. */
  readonly months: number;
  /** Bit 0 is Sunday. */
  readonly daysOfWeek: number;
  /** Both day fields are restricted: a date matches when it matches one of them. Otherwise it must match both. */
  readonly eitherDay: boolean;
  /**
   * The minute or the hour field starts with `*`: the series follows real time when clocks change (see occurrence.ts).
   */
  readonly followsRealTime: boolean;
};

type FieldRule = {
  name: string;
  min: number;
  max: number;
  /** The number of different values. A larger step would leave one value. */
  size: number;
  /** Names of the values from `min` on. */
  names: readonly string[];
};

const FIELD_RULES = [
  { name: 'minute', min: 0, max: 59, size: 60, names: [] },
  { name: 'hour', min: 0, max: 23, size: 24, names: [] },
  { name: 'day-of-month', min: 1, max: 31, size: 31, names: [] },
  { name: 'month', min: 1, max: 12, size: 12, names: 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ') },
  { name: 'day-of-week', min: 0, max: 7, size: 7, names: 'SUN MON TUE WED THU FRI SAT'.split(' ') },
] as const satisfies readonly FieldRule[];

const FIELD_ORDER = 'minute hour day-of-month month day-of-week';

const DESCRIPTORS: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

/** The largest number of days of each month, January first. */
const LONGEST_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** An error about a cron expression: what is wrong with it, and the expression. */
export function cronError(cronExpr: string, problem: string): ReveilleError {
  return new ReveilleError('invalid_request', `cron_expr: ${problem} (got ${showValue(cronExpr)})`);
}

/**
 * Parses a five-field expression or a descriptor such as `@daily`. Names of months and weekdays and descriptors are not
 * case-sensitive. Fields are separated by spaces or tabs.
 *
 * @throws ReveilleError `invalid_request` that names the field, the value and the remedy; also when no date ever
 *   matches
 */
export function parseCron(cronExpr: string): CronFields {
  const badCharacter = /[^\x21-\x7e \t]/u.exec(cronExpr)?.[0];
  if (badCharacter !== undefined) {
    const codePoint = badCharacter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    throw cronError(
      cronExpr,
      `the character U+${codePoint} is not allowed; write printable ASCII, with single spaces between fields`,
    );
  }
  const text = cronExpr.trim();
  if (text.startsWith('@')) return parseFields(cronExpr, expandDescriptor(cronExpr, text));
  return parseFields(cronExpr, text);
}

function expandDescriptor(cronExpr: string, text: string): string {
  const fields = DESCRIPTORS.get(text.toLowerCase());
  if (fields !== undefined) return fields;
  throw cronError(
    cronExpr,
    `${showValue(text)} is not a descriptor; write one of ${[...DESCRIPTORS.keys()].join(', ')}, or @every and a duration such as @every 90s`,
  );
}

function parseFields(cronExpr: string, text: string): CronFields {
  if (/^(CRON_)?TZ=/i.test(text)) throw cronError(cronExpr, 'a zone is not allowed in cron_expr; use timezone');
  const parts = text === '' ? [] : text.split(/[ \t]+/);
  if (parts.length !== FIELD_RULES.length) {
    const count = parts.length === 1 ? 'there is 1 field' : `there are ${parts.length} fields`;
    throw cronError(cronExpr, `${count}; write five: ${FIELD_ORDER}`);
  }
  const [minutes, hours, daysOfMonth, months, daysOfWeek] = FIELD_RULES.map((rule, index) =>
    parseField(cronExpr, rule, parts[index]!),
  ) as [number[], number[], number[], number[], number[]];
  const weekdays = daysOfWeek.map((day) => day % 7); // Sunday is 0 and 7
  const isRestricted = (index: number) => !parts[index]!.startsWith('*');
  const fields: CronFields = {
    minutes,
    hours,
    daysOfMonth: maskOf(daysOfMonth, 1),
    months: maskOf(months, 1),
    daysOfWeek: maskOf(weekdays, 0),
    eitherDay: isRestricted(2) && isRestricted(4),
    followsRealTime: !isRestricted(0) || !isRestricted(1),
  };
  // Every date falls on every weekday in some year. So only the day of the month can exclude all dates.
  const isPossible = fields.eitherDay || months.some((month) => daysOfMonth[0]! <= LONGEST_MONTHS[month - 1]!);
  if (!isPossible) {
    throw cronError(
      cronExpr,
      `no date ever matches, month ${parts[3]} has no day ${parts[2]}; write a day-of-month that the month has`,
    );
  }
  return fields;
}

function maskOf(values: readonly number[], lowest: number): number {
  return values.reduce((mask, value) => mask | (1 << (value - lowest)), 0);
}

/** The values that one field allows, sorted. */
function parseField(cronExpr: string, rule: FieldRule, field: string): number[] {
  const values = new Set<number>();
  for (const entry of field.split(',')) {
    if (entry === '')
      throw cronError(cronExpr, `${rule.name} ${showValue(field)} has an empty list entry; remove a comma`);
    for (const value of parseEntry(cronExpr, rule, entry)) values.add(value);
  }
  return [...values].sort((a, b) => a - b);
}

/**
 * One list entry: `*`, `N`, `N-M`, each with or without `/step`; `N/step` runs from N through the field's highest
 * value.
 */
function parseEntry(cronExpr: string, rule: FieldRule, entry: string): number[] {
  const [range = '', stepText, ...moreSteps] = entry.split('/');
  const [firstText = '', lastText, ...moreBounds] = range.split('-');
  if (moreSteps.length > 0 || moreBounds.length > 0 || (range === '*' && lastText !== undefined)) {
    throw cronError(cronExpr, `${rule.name} ${showValue(entry)} is not ${entryForms(rule)}`);
  }
  const step = stepText === undefined ? 1 : parseStep(cronExpr, rule, stepText);
  let first = rule.min;
  let last = rule.max;
  if (range !== '*') {
    first = parseValue(cronExpr, rule, entry, firstText);
    if (lastText !== undefined) last = parseValue(cronExpr, rule, entry, lastText);
    else if (stepText === undefined) last = first;
  }
  if (first > last) {
    const remedy =
      last === 0 && rule.max === 7 ? 'Sunday is also 7' : 'write the lower value first, or list both parts';
    throw cronError(cronExpr, `${rule.name} ${showValue(entry)} runs backwards; ${remedy}`);
  }
  const values: number[] = [];
  for (let value = first; value <= last; value += step) values.push(value);
  return values;
}

function parseStep(cronExpr: string, rule: FieldRule, text: string): number {
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > rule.size) {
    throw cronError(cronExpr, `${rule.name} step ${showValue(text)} must be a whole number from 1 to ${rule.size}`);
  }
  return Number(text);
}

function parseValue(cronExpr: string, rule: FieldRule, entry: string, text: string): number {
  const name = rule.names.indexOf(text.toUpperCase());
  if (name >= 0) return rule.min + name;
  if (!/^\d+$/.test(text)) {
    throw cronError(cronExpr, `${rule.name} ${showValue(entry)} is not ${entryForms(rule)}`);
  }
  const value = Number(text);
  if (value < rule.min || value > rule.max) {
    throw cronError(cronExpr, `${rule.name} ${showValue(text)} is outside ${rule.min}-${rule.max}`);
  }
  return value;
}

function entryForms(rule: FieldRule): string {
  const names = rule.names.length > 0 ? ` or ${rule.names[0]}-${rule.names.at(-1)}` : '';
  return `*, a value ${rule.min}-${rule.max}${names}, a range such as 1-5, or one of these with /step`;
}

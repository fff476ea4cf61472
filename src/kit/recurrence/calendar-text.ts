/** Writes iCalendar (RFC 5545): content lines, texts, times, and the rules of a zone. Pure. */
import { nextChange, offsetAt } from '../clock/zone.ts';
import { WEEKDAYS } from './recurrence.ts';

const DAY_MS = 86_400_000;
const YEAR_MS = 366 * DAY_MS;

/** Octets of a line without its line break (section 3.1). */
const LINE_OCTETS = 75;

const two = (number: number) => String(number).padStart(2, '0');

/**
 * A value of type TEXT (section 3.3.11). Control characters, which it cannot have, are omitted. The line breaks of
 * Unicode, at which some calendar apps split lines, are written as others.
 */
export function calendarText(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replace(/[\0-\x08\x0b-\x1f\x7f]/g, '')
    .replace(/[\\;,]/g, (character) => `\\${character}`)
    .replaceAll('\n', String.raw`\n`);
}

/** A reading of the wall clock, given as the milliseconds of the same reading in UTC: `20261224T180000`. */
export function readingText(reading: number): string {
  return new Date(reading).toISOString().slice(0, 19).replace(/[-:]/g, '');
}

/** An instant in UTC: `20261224T170000Z`. */
export const utcText = (epochMs: number): string => `${readingText(epochMs)}Z`;

/** Folds a line before the octets that would be too many, between characters. */
function folded(line: string): string {
  if (line.length < LINE_OCTETS / 4 || Buffer.byteLength(line) <= LINE_OCTETS) return line;
  let text = '';
  let octets = 0;
  for (const character of line) {
    const size = Buffer.byteLength(character);
    if (octets + size > LINE_OCTETS) {
      text += '\r\n ';
      octets = 1;
    }
    text += character;
    octets += size;
  }
  return text;
}

/** The lines of a component, unfolded. */
export const component = (name: string, lines: readonly string[]): string[] => [
  `BEGIN:${name}`,
  ...lines,
  `END:${name}`,
];

/** The text of a file. */
export const calendarFile = (lines: readonly string[]): string => lines.map((line) => `${folded(line)}\r\n`).join('');

/** A change of a zone's clock: its reading of the clock before, and the offsets in milliseconds. */
type Change = { readonly at: number; readonly from: number; readonly to: number };

/** `+0530`, and `+053015` where an offset has seconds. */
function offsetText(offsetMs: number): string {
  const seconds = Math.abs(offsetMs) / 1000;
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${offsetMs < 0 ? '-' : '+'}${two(hours)}${two(minutes)}${rest === 0 ? '' : two(rest)}`;
}

const reading = ({ at, from }: Change) => at + from;

/** The weekday of a change within its month: `-1SU` for the last Sunday, `2SU` for the second. */
function weekdayText(change: Change, isLast: boolean): string {
  const date = new Date(reading(change));
  const nth = isLast ? -1 : Math.ceil(date.getUTCDate() / 7);
  return `${nth}${WEEKDAYS[(date.getUTCDay() + 6) % 7]}`;
}

/** Whether no further weekday of this kind is in the month. */
const isLastOfMonth = (change: Change) => {
  const date = new Date(reading(change));
  return new Date(reading(change) + 7 * DAY_MS).getUTCMonth() !== date.getUTCMonth();
};

/** The yearly rule of changes between the same offsets; `undefined` if they follow none. */
function yearlyRule(changes: readonly Change[]): string | undefined {
  const [first] = changes;
  if (first === undefined || changes.length < 4) return undefined;
  const isLast = changes.every(isLastOfMonth);
  const form = (change: Change) =>
    `${new Date(reading(change)).toISOString().slice(5, 7)} ${weekdayText(change, isLast)}`;
  const time = (change: Change) => reading(change) % DAY_MS;
  const isYearly = changes.every(
    (change, at) =>
      form(change) === form(first) &&
      time(change) === time(first) &&
      new Date(reading(change)).getUTCFullYear() === new Date(reading(first)).getUTCFullYear() + at,
  );
  const [month, day] = form(first).split(' ');
  return isYearly ? `FREQ=YEARLY;BYMONTH=${Number(month)};BYDAY=${day}` : undefined;
}

/** Changes between the same offsets: one observance by their rule, else one for each of them, which every app reads. */
function observances(changes: readonly Change[], isDaylight: boolean): string[] {
  const rule = yearlyRule(changes);
  return changes
    .slice(0, rule === undefined ? undefined : 1)
    .flatMap((change) =>
      component(isDaylight ? 'DAYLIGHT' : 'STANDARD', [
        `DTSTART:${readingText(reading(change))}`,
        `TZOFFSETFROM:${offsetText(change.from)}`,
        `TZOFFSETTO:${offsetText(change.to)}`,
        ...(rule === undefined ? [] : [`RRULE:${rule}`]),
      ]),
    );
}

/** Years after the last instant of which the changes are known, so that their rule shows. */
const KNOWN_YEARS = 6;

/**
 * The component VTIMEZONE of a zone, for instants from `from` on.
 *
 * @param timezone a name that `Intl` knows, as it is written in TZID
 * @param until the last instant that matters; a rule without end goes on
 */
export function timezoneLines(timezone: string, from: number, until: number): string[] {
  const end = until + KNOWN_YEARS * YEAR_MS;
  const changes: Change[] = [];
  for (let at = nextChange(timezone, from, end); at < end; at = nextChange(timezone, at, end))
    changes.push({ at, from: offsetAt(timezone, at - 1), to: offsetAt(timezone, at) });
  const groups = Map.groupBy(changes, (change) => `${change.from} ${change.to}`);
  const offset = offsetAt(timezone, from);
  const lowest = Math.min(offset, ...changes.map(({ to }) => to));
  const before = component('STANDARD', [
    'DTSTART:19700101T000000',
    `TZOFFSETFROM:${offsetText(offset)}`,
    `TZOFFSETTO:${offsetText(offset)}`,
  ]);
  return component('VTIMEZONE', [
    `TZID:${timezone}`,
    ...before,
    ...[...groups.values()].flatMap((group) => observances(group, group[0]!.to > lowest)),
  ]);
}

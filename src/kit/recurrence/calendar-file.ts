/** Reads the events of an iCalendar file (RFC 5545): when they begin, how long they take, how they recur. Pure. */
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { type ContentLine, contentLines, isContentLine } from './content-line.ts';
import { dateOf, type Moment, parseMoments, type Recurrence, RecurrenceLines, type Rule } from './recurrence.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

/**
 * An event. Its recurrence has a start, which is an occurrence too. Of an all-day event, each moment is a date and the
 * duration is whole days.
 */
export type CalendarEvent = Recurrence & {
  readonly start: Moment;
  /** The end of the first occurrence, exclusive. */
  readonly end: Moment | undefined;
  readonly durationMs: number;
};

/** An error at a place in the file. */
function at({ line, column }: { line: number; column: number }, problem: string): ReveilleError {
  return new ReveilleError('invalid_request', `line ${line}, column ${column}: ${problem}`);
}

const DURATION = /^\+?P(?:(\d{1,4})W|(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?)?)$/i;

function parseDuration(line: ContentLine): number {
  const match = DURATION.exec(line.value);
  const [weeks, days, hours, minutes, seconds] = (match ?? []).slice(1, 6).map((digits) => Number(digits ?? 0));
  if (!match || match.slice(1).every((digits) => digits === undefined))
    throw at(line, `DURATION must be such as P1D or PT1H30M (it is ${showValue(line.value)})`);
  return weeks! * 7 * DAY_MS + days! * DAY_MS + ((hours! * 60 + minutes!) * 60 + seconds!) * SECOND_MS;
}

/** Section 3.3.10: the parts for a time of day are ignored where DTSTART is a date. */
const dailyRule = (rule: Rule): Rule => ({
  ...rule,
  ...{ bySecond: undefined, byMinute: undefined, byHour: undefined },
  until: rule.until && dateOf(rule.until),
});

/** An all-day event without the times of day that its lines have. */
function allDayEvent({ rules, start, added, excluded, end, durationMs }: CalendarEvent): CalendarEvent {
  return {
    ...{ rules: rules.map(dailyRule), added: added.map(dateOf), excluded: excluded.map(dateOf) },
    ...{ start: dateOf(start), end: end && dateOf(end) },
    durationMs: Math.max(1, Math.ceil(durationMs / DAY_MS)) * DAY_MS,
  };
}

/** The lines of one VEVENT. */
class EventLines extends RecurrenceLines {
  end: Moment | undefined;
  durationMs: number | undefined;
  uid: string | undefined;
  /** The occurrence of another event that this one replaces. */
  replaced: Moment | undefined;
  isCancelled = false;

  addLine(given: ContentLine): void {
    const isDate = given.parameters.some(([name, value]) => name === 'VALUE' && value.toUpperCase() === 'DATE');
    const line = isDate ? { ...given, value: given.value.replace(/T\d{6}Z?/gi, '') } : given;
    try {
      if (line.name === 'DTEND') this.end = parseMoments(line)[0];
      else if (line.name === 'DURATION') this.durationMs = parseDuration(line);
      else if (line.name === 'RECURRENCE-ID')
        this.replaced = parseMoments({ ...line, parameters: line.parameters.filter(([name]) => name !== 'RANGE') })[0];
      else if (line.name === 'UID') this.uid = line.value;
      else if (line.name === 'STATUS') this.isCancelled = line.value.toUpperCase() === 'CANCELLED';
      else this.add(line);
    } catch (error) {
      if (!(error instanceof ReveilleError) || error.message.startsWith('line ')) throw error;
      throw at(line, error.message);
    }
  }

  event(begin: ContentLine): CalendarEvent {
    const { start, end } = this;
    if (start === undefined) throw at(begin, 'this event has no DTSTART');
    if (end && end.zone === start.zone && end.reading < start.reading)
      throw at(begin, 'this event ends before it begins; DTEND must be after DTSTART');
    // An event without an end takes its day, or no time.
    const durationMs = this.durationMs ?? (end ? end.reading - start.reading : start.isDate ? DAY_MS : 0);
    const { rules, added, excluded } = this;
    const event = { rules, added, excluded, start, end, durationMs };
    return start.isDate ? allDayEvent(event) : event;
  }
}

/**
 * The events of a calendar. Cancelled ones are omitted, and so are the occurrences that another event replaces.
 *
 * @throws ReveilleError `invalid_request` that begins with line and column
 */
export function parseCalendar(text: string): CalendarEvent[] {
  const events: { lines: EventLines; begin: ContentLine }[] = [];
  const open: ContentLine[] = [];
  let last = { line: 1, column: 1 };
  for (const line of contentLines(text.replace(/^\uFEFF/, ''))) {
    last = line;
    if (!isContentLine(line)) throw at(line, 'a line must have the form NAME:VALUE; is this an iCalendar file (.ics)?');
    const component = line.value.toUpperCase();
    if (open.length === 0 && !(line.name === 'BEGIN' && component === 'VCALENDAR'))
      throw at({ line: line.line, column: 1 }, 'BEGIN:VCALENDAR is expected; is this an iCalendar file (.ics)?');
    if (line.name === 'BEGIN') {
      open.push(line);
      if (component === 'VEVENT') events.push({ lines: new EventLines(), begin: line });
    } else if (line.name === 'END') {
      const begun = open.pop()!.value.toUpperCase();
      if (begun !== component) throw at(line, `END:${begun} is expected (it is ${showValue(line.value)})`);
    } else if (open.at(-1)!.value.toUpperCase() === 'VEVENT') events.at(-1)!.lines.addLine(line);
  }
  if (open.length > 0 || last.line === 1)
    throw at(last, open.length > 0 ? `END:${open.at(-1)!.value.toUpperCase()} is missing` : 'the file is empty');
  const originals = new Map<string | undefined, EventLines>();
  for (const { lines } of events)
    if (lines.replaced === undefined && !originals.has(lines.uid)) originals.set(lines.uid, lines);
  for (const { lines } of events)
    if (lines.replaced !== undefined) originals.get(lines.uid)?.excluded.push(lines.replaced);
  return events.filter(({ lines }) => !lines.isCancelled).map(({ lines, begin }) => lines.event(begin));
}

/** Reads the events of an iCalendar file (RFC 5545): when they begin, how long they take, how they recur. Pure. */
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { zoneOfTzid } from './calendar-zones.ts';
import { type ContentLine, contentLines, isContentLine } from './content-line.ts';
import {
  dateOf,
  type Moment,
  parseDuration,
  parseMoments,
  parseRule,
  type Recurrence,
  RecurrenceLines,
  type Rule,
} from './recurrence.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** A place in a file; both count from 1. */
type Place = { readonly line: number; readonly column: number };

/** A change of a zone's clock that a file describes, with the offsets before and after it. */
export type Observance = Recurrence & { readonly start: Moment; readonly fromMs: number; readonly toMs: number };

/** The zones that a file describes, by TZID: the IANA name of a zone, or its changes. */
type FileZones = ReadonlyMap<string, string | readonly Observance[]>;

/** How long an occurrence takes. */
type Extent = {
  readonly start: Moment;
  /** The end of the first occurrence, exclusive. */
  readonly end: Moment | undefined;
  readonly durationMs: number;
};

/**
 * An event. Its recurrence has a start, which is an occurrence too. The zone of a moment is an IANA name or one of
 * `zones`. Of an all-day event, each moment is a date and the duration is whole days.
 */
export type CalendarEvent = Recurrence &
  Extent & {
    /** EXRULE of RFC 2445: the occurrences of these rules are excluded. */
    readonly exceptions: readonly Rule[];
    /** From an occurrence on, each is moved and takes as long as this one; without a replacement, there are none. */
    readonly changes: readonly { readonly from: Moment; readonly by: Extent | undefined }[];
    readonly zones: FileZones;
    readonly place: Place;
    readonly summary: string | undefined;
  };

/** An event that cannot be used. */
export type OmittedEvent = Pick<CalendarEvent, 'place' | 'summary'> & { readonly problem: string };

/** An error at a place in the file. */
function at({ line, column }: Place, problem: string): ReveilleError {
  return new ReveilleError('invalid_request', `line ${line}, column ${column}: ${problem}`);
}

/** Section 3.3.10: the parts for a time of day are ignored where DTSTART is a date. */
const dailyRule = (rule: Rule): Rule => ({
  ...rule,
  ...{ bySecond: undefined, byMinute: undefined, byHour: undefined },
  until: rule.until && dateOf(rule.until),
});

/** An all-day event whose moments are dates, without the times of day of its rules and duration. */
const allDayEvent = (event: CalendarEvent): CalendarEvent => ({
  ...event,
  ...{ rules: event.rules.map(dailyRule), exceptions: event.exceptions.map(dailyRule) },
  durationMs: Math.max(1, Math.ceil(event.durationMs / DAY_MS)) * DAY_MS,
});

/** The lines that say when an event is. A broken line of any other name is ignored. */
const TIME_LINES = /^\s*(?:DTSTART|DTEND|DURATION|RRULE|EXRULE|RDATE|EXDATE|RECURRENCE-ID)\b/i;

/** The lines of one VEVENT. */
class EventLines extends RecurrenceLines {
  readonly exceptions: Rule[] = [];
  readonly changes: { from: Moment; by: Extent | undefined }[] = [];
  end: Moment | undefined;
  durationMs: number | undefined;
  uid: string | undefined;
  summary: string | undefined;
  /** The occurrence of another event that this one replaces, and whether it replaces the later ones too. */
  replaced: Moment | undefined;
  replacesLater = false;
  isCancelled = false;
  /** The first error. */
  problem: { place: Place; problem: string } | undefined;
  readonly begin: Place;
  private readonly zonePlaces = new Map<string, Place>();

  constructor(begin: Place) {
    super();
    this.begin = begin;
  }

  addLine(given: ContentLine): void {
    const isDate = given.parameters.some(([name, value]) => name === 'VALUE' && value.toUpperCase() === 'DATE');
    const line = isDate ? { ...given, value: given.value.replace(/T\d{6}Z?/gi, '') } : given;
    for (const [name, value] of line.parameters)
      if (name === 'TZID' && !this.zonePlaces.has(value)) this.zonePlaces.set(value, line);
    try {
      if (line.name === 'DTEND') this.end = parseMoments(line)[0];
      else if (line.name === 'DURATION') this.durationMs = parseDuration(line.name, line.value);
      else if (line.name === 'EXRULE') this.exceptions.push(parseRule(line));
      else if (line.name === 'RECURRENCE-ID') {
        this.replaced = parseMoments(line)[0];
        this.replacesLater = line.parameters.some(
          ([name, value]) => name === 'RANGE' && /^THISANDFUTURE$/i.test(value),
        );
      } else if (line.name === 'UID') this.uid = line.value;
      else if (line.name === 'SUMMARY') this.summary = line.value.slice(0, 100);
      else if (line.name === 'STATUS') this.isCancelled = line.value.toUpperCase() === 'CANCELLED';
      else this.add(line);
    } catch (error) {
      if (!(error instanceof ReveilleError)) throw error;
      this.fail(line, error.message);
    }
  }

  fail(place: Place, problem: string): void {
    this.problem ??= { place, problem };
  }

  /**
   * @returns `undefined` for an event with a problem
   * @throws ReveilleError for a zone that is not known
   */
  event(zones: FileZones): CalendarEvent | undefined {
    const { start, end, begin, summary, rules, exceptions } = this;
    if (start === undefined) this.fail(begin, 'this event has no DTSTART');
    else if (end && end.zone === start.zone && end.reading < start.reading && !start.isDate)
      this.fail(begin, 'this event ends before it begins; DTEND must be after DTSTART');
    if (start === undefined || this.problem !== undefined) return undefined;
    // An event without an end takes its day, or no time.
    const durationMs = this.durationMs ?? (end ? end.reading - start.reading : start.isDate ? DAY_MS : 0);
    // Dates are the same in each zone.
    const known = start.isDate
      ? dateOf
      : (moment: Moment): Moment => ({ ...moment, zone: moment.zone && this.zoneOf(moment.zone, zones) });
    const event = {
      ...{ rules, exceptions, zones, durationMs, summary, place: begin, start: known(start), end: end && known(end) },
      ...{ added: this.added.map(known), excluded: this.excluded.map(known) },
      changes: this.changes.map(({ from, by }) => ({ from: known(from), by })),
    };
    return start.isDate ? allDayEvent(event) : event;
  }

  private zoneOf(tzid: string, zones: FileZones): string {
    if (tzid === 'UTC') return tzid;
    const described = zones.get(tzid);
    const zone = zoneOfTzid(tzid) ?? (typeof described === 'string' ? described : described && tzid);
    if (zone !== undefined) return zone;
    throw at(
      this.zonePlaces.get(tzid) ?? this.begin,
      `TZID ${showValue(tzid)} is neither an IANA nor a Windows zone, and the file has no VTIMEZONE for it`,
    );
  }
}

/** The lines of one VTIMEZONE. */
class ZoneLines {
  private tzid: string | undefined;
  private alias: string | undefined;
  private readonly observances: (RecurrenceLines & { fromMs?: number | undefined; toMs?: number | undefined })[] = [];

  beginObservance(): void {
    this.observances.push(new RecurrenceLines());
  }

  addLine(line: ContentLine, isOfObservance: boolean): void {
    const { name, value } = line;
    const observance = this.observances.at(-1);
    if (!isOfObservance || observance === undefined) {
      if (name === 'TZID') this.tzid = value;
      // The IANA name of a zone whose TZID is another.
      else if (name === 'X-LIC-LOCATION' || name === 'TZID-ALIAS-OF') this.alias = zoneOfTzid(value);
    } else if (name === 'TZOFFSETFROM') observance.fromMs = parseOffset(value);
    else if (name === 'TZOFFSETTO') observance.toMs = parseOffset(value);
    else
      try {
        observance.add(line);
      } catch (error) {
        // Without its changes the zone is unknown, which matters only where it is used.
        if (!(error instanceof ReveilleError)) throw error;
        this.observances.pop();
      }
  }

  zone(): [tzid: string, zone: string | readonly Observance[]] | undefined {
    const { tzid, alias } = this;
    if (tzid === undefined || alias !== undefined) return tzid && alias ? [tzid, alias] : undefined;
    const observances = this.observances.flatMap(({ rules, start, added, excluded, fromMs, toMs }) =>
      start === undefined || fromMs === undefined || toMs === undefined
        ? []
        : [{ rules, start, added, excluded, fromMs, toMs }],
    );
    return observances.length === 0 ? undefined : [tzid, observances];
  }
}

/** `+0530`, in milliseconds; `undefined` for any other text. */
function parseOffset(text: string): number | undefined {
  const match = /^([+-])(\d\d)(\d\d)(\d\d)?$/.exec(text);
  if (!match) return undefined;
  const [hours, minutes, seconds] = match.slice(2, 5).map((digits) => Number(digits ?? 0));
  return (match[1] === '-' ? -1 : 1) * ((hours! * 60 + minutes!) * MINUTE_MS + seconds! * 1_000);
}

/** The components of a file. */
function readComponents(text: string): { events: EventLines[]; zones: ZoneLines[] } {
  const events: EventLines[] = [];
  const zones: ZoneLines[] = [];
  const open: string[] = [];
  let last: Place = { line: 1, column: 1 };
  for (const line of contentLines(text.replace(/^\uFEFF/, ''))) {
    last = line;
    if (!isContentLine(line)) {
      if (open.length === 0) throw at(line, 'a line must have the form NAME:VALUE; is this an iCalendar file (.ics)?');
      // Some programs do not fold the lines of a long text.
      if (open.at(-1) === 'VEVENT' && TIME_LINES.test(line.text))
        events.at(-1)!.fail(line, 'a line must have the form NAME:VALUE');
      continue;
    }
    const component = line.value.toUpperCase();
    const within = open.at(-1);
    if (open.length === 0 && !(line.name === 'BEGIN' && component === 'VCALENDAR'))
      throw at({ line: line.line, column: 1 }, 'BEGIN:VCALENDAR is expected; is this an iCalendar file (.ics)?');
    if (line.name === 'BEGIN') {
      open.push(component);
      if (component === 'VEVENT') events.push(new EventLines(line));
      else if (component === 'VTIMEZONE') zones.push(new ZoneLines());
      else if (within === 'VTIMEZONE') zones.at(-1)!.beginObservance();
    } else if (line.name === 'END') {
      if (open.pop() !== component) throw at(line, `END:${within} is expected (it is ${showValue(line.value)})`);
    } else if (within === 'VEVENT') events.at(-1)!.addLine(line);
    else if (within === 'VTIMEZONE') zones.at(-1)!.addLine(line, false);
    else if (open.at(-2) === 'VTIMEZONE') zones.at(-1)!.addLine(line, true);
  }
  if (open.length > 0 || last.line === 1)
    throw at(last, open.length > 0 ? `END:${open.at(-1)!} is missing` : 'the file is empty');
  return { events, zones };
}

/**
 * The events of a calendar, and the ones that cannot be used. Cancelled events are in neither. An event that replaces
 * occurrences of another one is excluded there, and the later ones are changed with RANGE=THISANDFUTURE.
 *
 * @throws ReveilleError `invalid_request` that begins with line and column, for a text that is no calendar, and for a
 * zone that is not known
 */
export function parseCalendar(text: string): { events: CalendarEvent[]; omitted: OmittedEvent[] } {
  const { events: read, zones: described } = readComponents(text);
  const zones = new Map(described.map((lines) => lines.zone()).filter((zone) => zone !== undefined));
  const originals = new Map<string | undefined, EventLines>();
  for (const lines of read)
    if (lines.replaced === undefined && !originals.has(lines.uid)) originals.set(lines.uid, lines);
  const events: CalendarEvent[] = [];
  const omitted: OmittedEvent[] = [];
  // Changes first: they are part of the originals.
  for (const lines of read.toSorted((one, other) => Number(!one.replaced) - Number(!other.replaced))) {
    const { replaced, isCancelled, uid, summary } = lines;
    const event = isCancelled ? undefined : lines.event(zones);
    if (lines.problem !== undefined && !isCancelled) omitted.push({ ...lines.problem, summary });
    const original = replaced && originals.get(uid);
    // The occurrence of a change that cannot be read stays.
    if (original !== undefined && (isCancelled || event !== undefined)) {
      // A change with rules of its own is a series.
      const isChange = lines.replacesLater && lines.rules.length === 0;
      if (lines.replacesLater) original.changes.push({ from: replaced!, by: isChange ? event : undefined });
      else original.excluded.push(replaced!);
      if (isChange) continue;
    }
    if (event !== undefined) events.push(event);
  }
  return { events, omitted };
}

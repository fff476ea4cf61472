/** The user's day and week on a screen. A day has a bar: hours from left to right with active time. Pure. */
import { REAL_BREAK_MS } from '../../chronometric/state/state.ts';
import { zoneName } from '../../kit/clock/local-time.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { DayView, WeekView } from '../../wire/chronometric-view.ts';
import { counted, fit, pad, textWidth, wrap } from './columns.ts';
import type { Reader } from './render.ts';
import {
  ago,
  clockOf,
  dateWords,
  harmless,
  inMinutes,
  lengthOfTime,
  levelWords,
  paragraph,
  shortDate,
} from './time-text.ts';

const MINUTE_MS = 60_000;
/** Between the columns. */
const GAP = '  ';
/** `08:52–10:31` */
const TIMES_WIDTH = 11;
/** Below this width the text is under the times instead of beside them. */
const WIDE = 60;
const INDENT = '  ';
/** Characters shown of an intent or a summary; `--json` has the whole text. */
const MOST_LINES = 3;

type Session = DayView['sessions'][number];
type Stretch = DayView['stretches'][number];

/** A row: times, a length, and lines with a heading. */
type Row = {
  readonly at: number;
  readonly times: string;
  readonly length: string;
  readonly lines: (width: number) => readonly string[];
  readonly dim?: boolean;
};

const from = ({ from: instant }: { from: string }) => Date.parse(instant);
const lasts = ({ duration }: Stretch) => lengthOfTime(duration);
const isBreak = (stretch: Stretch) => stretch.kind === 'away' && lasts(stretch) >= REAL_BREAK_MS;

const timesOf = (begin: string, end: string) => `${clockOf(begin)}–${clockOf(end)}`;

/** Text about a break: due now, or when it is due. */
export function breakWords({
  due,
  due_in: left,
  level,
  elapsed,
  protected_window_label: label,
}: NonNullable<DayView['break']>): string {
  if (!due) return `break due in ${inMinutes(lengthOfTime(left!))} of active time`;
  if (label !== undefined) return `break due${levelWords(level)}: this time is kept for ${harmless(label)}`;
  return `break due${levelWords(level)}: ${inMinutes(lengthOfTime(elapsed))} active without one`;
}

/** Whether the user was active in an open session recently. */
const isLive = (session: Session, view: DayView) =>
  Date.parse(view.as_of) - Date.parse(session.last_seen_at) < REAL_BREAK_MS;

/** Notes below a session's text, each with its colour. */
function notesOf(session: Session, view: DayView): [style: 'dim' | 'green' | 'yellow', note: string][] {
  const { started_at: started, ended_at: ended, in_day: inDay, ending } = session;
  const away = breaksOf(session, view);
  const notes: ReturnType<typeof notesOf> = away === undefined ? [] : [['dim', away]];
  if (started !== inDay.from) notes.push(['dim', `began ${dateWords(started)}, ${clockOf(started)}`]);
  if (ended !== null && ended !== inDay.to) notes.push(['dim', `went on until ${dateWords(ended)}, ${clockOf(ended)}`]);
  if (ending === 'auto_closed') notes.push(['dim', 'closed where it was last seen']);
  if (ending !== 'open') return notes;
  const seen = Date.parse(view.as_of) - Date.parse(session.last_seen_at);
  notes.push(isLive(session, view) ? ['green', 'open'] : ['yellow', `open, last seen ${ago(seen)}`]);
  if (view.break && isLive(session, view)) notes.push([view.break.due ? 'yellow' : 'dim', breakWords(view.break)]);
  return notes;
}

function breaksOf(session: Session, view: DayView): string | undefined {
  const breaks = view.stretches.filter((stretch) => stretch.session_id === session.session_id && isBreak(stretch));
  if (breaks.length === 0) return undefined;
  const each = breaks.map((stretch) => `${inMinutes(lasts(stretch))} at ${clockOf(stretch.from)}`);
  return `away ${each.join(', ')}`;
}

function sessionRow(session: Session, view: DayView, look: Reader): Row {
  const { from: begin, to: end, active_duration: active } = session.in_day;
  const isNow = session.ending === 'open' && isLive(session, view);
  return {
    at: Date.parse(begin),
    times: isNow ? `${clockOf(begin)}–now` : timesOf(begin, end),
    length: inMinutes(lengthOfTime(active)),
    lines(width) {
      const came = session.summary === null ? [] : paragraph(session.summary, width - 2, MOST_LINES);
      return [
        ...paragraph(session.intent, width, MOST_LINES).map((line) => look.paint('bold', line)),
        ...came.map((line, at) => `${look.paint('cyan', at === 0 ? '→' : ' ')} ${line}`),
        ...notesOf(session, view).flatMap(([style, note]) => wrap(note, width).map((line) => look.paint(style, line))),
      ];
    },
  };
}

/** Intervals without a session; short gaps between active ones are closed. */
function looseRuns(stretches: readonly Stretch[]): Stretch[][] {
  const runs: Stretch[][] = [];
  for (const stretch of stretches) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    const joins = last?.to === stretch.from && !isBreak(last) && !isBreak(stretch);
    if (run && joins) run.push(stretch);
    else runs.push([stretch]);
  }
  return runs;
}

/** Intervals between sessions; very short ones are omitted. */
function looseRow(run: readonly Stretch[]): Row | undefined {
  const [first] = run;
  const active = run.filter(({ kind }) => kind === 'active').reduce((sum, stretch) => sum + lasts(stretch), 0);
  const isAway = isBreak(first!);
  if (!isAway && active < MINUTE_MS) return undefined;
  return {
    at: from(first!),
    times: timesOf(first!.from, run.at(-1)!.to),
    length: inMinutes(isAway ? lasts(first!) : active),
    lines: () => [isAway ? 'away' : 'no session'],
    dim: true,
  };
}

function rowsOf(view: DayView, look: Reader): Row[] {
  const loose = looseRuns(view.stretches.filter(({ session_id: id }) => id === null)).map(looseRow);
  const sessions = view.sessions.map((session) => sessionRow(session, view, look));
  return [...sessions, ...loose.filter((row) => row !== undefined)].sort((one, other) => one.at - other.at);
}

function renderRow(row: Row, lengthWidth: number, look: Reader): string[] {
  const paint = (text: string) => (row.dim ? look.paint('dim', text) : text);
  const times = look.paint('dim', pad(row.times, TIMES_WIDTH));
  if (look.width < WIDE) {
    const head = `${times}${GAP}${paint(row.length)}`;
    const lines = row.lines(Math.max(10, look.width - INDENT.length));
    if (row.dim) return [`${head}${GAP}${paint(lines.join(' '))}`];
    return [head, ...lines.map((line) => `${INDENT}${line}`)];
  }
  const aside = TIMES_WIDTH + lengthWidth + 2 * GAP.length;
  const [first = '', ...rest] = row.lines(look.width - aside);
  return [
    `${times}${GAP}${paint(pad(row.length, lengthWidth))}${GAP}${paint(first)}`.trimEnd(),
    ...rest.map((line) => `${' '.repeat(aside)}${line}`),
  ];
}

/** The totals: `Active 3 h 5 min, 2 h 40 min of it in 3 sessions. Away 1 h.` */
export function totalWords(totals: DayView['totals']): string {
  const active = lengthOfTime(totals.active_duration);
  const inside = lengthOfTime(totals.active_in_sessions_duration);
  const away = lengthOfTime(totals.away_duration);
  const count = totals.sessions === 0 ? 'no session' : counted(totals.sessions, 'session');
  const all = inMinutes(active) === inMinutes(inside);
  const where = totals.sessions === 0 || all ? `in ${count}` : `${inMinutes(inside)} of it in ${count}`;
  return `Active ${inMinutes(active)}${all && totals.sessions > 0 ? ' ' : ', '}${where}.${away < MINUTE_MS ? '' : ` Away ${inMinutes(away)}.`}`;
}

const offsetOf = (instant: string) => instant.slice(19);

/** Only on the two days of a clock change. */
function clockChange(view: DayView): string[] {
  if (offsetOf(view.from) === offsetOf(view.to)) return [];
  const hours = (Date.parse(view.to) - Date.parse(view.from)) / 3_600_000;
  return [`The clock is ${hours > 24 ? 'put back' : 'put forward'} on this day: it has ${hours} hours.`];
}

/** The name of the zone with its short form, where it has one. */
export function zoneWords(timezone: string, instant: string): string {
  const short = zoneName(Date.parse(instant), timezone);
  return short === timezone ? timezone : `${timezone} (${short})`;
}

function forgotten({ forgotten_session: session }: DayView, look: Reader): string[] {
  if (!session) return [];
  const { intent, started_at: started, last_seen_at: seen } = session;
  const when = `${dateWords(started)}, ${clockOf(started)}; it was last seen ${dateWords(seen)}, ${clockOf(seen)}`;
  const [line] = paragraph(intent, look.width - INDENT.length, 1);
  return [
    '',
    ...wrap(`Still open from ${when}:`, look.width).map((text) => look.paint('yellow', text)),
    `${INDENT}${line}`,
  ];
}

/** What `reveille time` shows of a day on which there was something. */
export function renderDay(view: DayView, look: Reader): string[] {
  const title = look.paint('bold', `${view.day_of_week} ${dateWords(view.date)}`);
  const zone = zoneWords(view.timezone, view.from);
  const head =
    textWidth(`${dateWords(view.date)}${zone}`) + 14 > look.width
      ? [title, look.paint('dim', zone)]
      : [`${title}${GAP}${look.paint('dim', zone)}`];
  const rows = rowsOf(view, look);
  const lengthWidth = Math.max(0, ...rows.map(({ length }) => textWidth(length)));
  const bar = dayBar(view, look);
  return [
    ...head,
    ...(bar.length > 0 ? ['', ...bar] : []),
    ...(rows.length > 0 ? [''] : []),
    ...rows.flatMap((row) => renderRow(row, lengthWidth, look)),
    ...forgotten(view, look),
    '',
    ...[totalWords(view.totals), ...clockChange(view)].flatMap((line) =>
      wrap(line, look.width).map((text) => look.paint('dim', text)),
    ),
  ];
}

const DAY_INDENT = '    ';
const BAR_WIDTH = 24;
const LONGEST_LENGTH = '23 h 59 min'.length;

const activeOf = ({ totals }: DayView) => lengthOfTime(totals.active_duration);

function sessionLine({ intent, summary, ending }: DayView['sessions'][number], look: Reader): string {
  const open = ending === 'open' ? ' (open)' : '';
  const came = summary === null ? open : ` → ${harmless(summary)}`;
  const room = look.width - DAY_INDENT.length;
  // The outcome must not be pushed out by the intent.
  const meant = fit(harmless(intent), Math.max(room - textWidth(came), Math.ceil(room / 2)));
  return fit(`${DAY_INDENT}${meant}${came}`, look.width);
}

function dayLines(day: DayView, longest: number, look: Reader): string[] {
  const active = activeOf(day);
  const head = shortDate(day.day_of_week, day.date);
  if (active === 0 && day.sessions.length === 0) return [look.paint('dim', `${head}${GAP}-`)];
  const room = Math.min(BAR_WIDTH, look.width - textWidth(head) - LONGEST_LENGTH - 2 * GAP.length);
  const cells = room < 4 || active === 0 ? 0 : Math.max(1, Math.round((active / longest) * room));
  const bar = cells === 0 ? '' : `${GAP}${look.paint('green', '█'.repeat(cells))}`;
  return [
    `${head}${GAP}${pad(inMinutes(active), bar === '' ? 0 : LONGEST_LENGTH)}${bar}`,
    ...day.sessions.map((session) => look.paint('dim', sessionLine(session, look))),
  ];
}

/** What `reveille time --week` shows. */
export function renderWeek(week: WeekView, look: Reader): string[] {
  const last = week.days.at(-1)!;
  const longest = Math.max(1, ...week.days.map(activeOf));
  return [
    ...wrap(`The seven days to ${dateWords(last.date)}`, look.width).map((line) => look.paint('bold', line)),
    look.paint('dim', zoneWords(week.timezone, last.from)),
    '',
    ...week.days.flatMap((day) => dayLines(day, longest, look)),
    '',
    ...wrap(totalWords(week.totals), look.width).map((line) => look.paint('dim', line)),
  ];
}

const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;
/** Cells of an hour, the widest first: each is a quarter, a half or a whole hour. */
const CELLS_PER_HOUR = [4, 2, 1] as const;
/** `08:00` and a blank. */
const LABEL_WIDTH = 6;

type Kind = 'session' | 'loose' | 'away' | 'nothing';

const GLYPHS: Readonly<Record<Kind, string>> = { session: '█', loose: '▒', away: '·', nothing: ' ' };

/** The kind of most of an interval. Active time wins, so that no short interval disappears. */
function kindOf(view: DayView, from: number, to: number): Kind {
  const spent: Record<Kind, number> = { session: 0, loose: 0, away: 0, nothing: 0 };
  for (const stretch of view.stretches) {
    const shared = Math.min(to, Date.parse(stretch.to)) - Math.max(from, Date.parse(stretch.from));
    const kind = stretch.kind === 'away' ? 'away' : stretch.session_id === null ? 'loose' : 'session';
    spent[kind] += Math.max(0, shared);
  }
  const active = spent.session + spent.loose;
  if (active === 0) return spent.away > 0 ? 'away' : 'nothing';
  if (active < (to - from) / 4 && spent.away > active) return 'away';
  return spent.session >= spent.loose ? 'session' : 'loose';
}

/** Full hours of the day by the wall clock. Zones differ from UTC by quarter hours, so steps are quarters. */
function hourBefore(instant: string): number {
  const minutes = Number(clockOf(instant).slice(3));
  const quarter = Math.floor(Date.parse(instant) / QUARTER_MS) * QUARTER_MS;
  return quarter - Math.floor(minutes / 15) * QUARTER_MS;
}

/** Adjacent cells of one kind are coloured together. */
function painted(kinds: readonly Kind[], look: Reader): string {
  let bar = '';
  for (let at = 0; at < kinds.length; ) {
    const kind = kinds[at]!;
    const next = kinds.findIndex((other, place) => place > at && other !== kind);
    const end = next < 0 ? kinds.length : next;
    const cells = GLYPHS[kind].repeat(end - at);
    if (kind === 'nothing') bar += end === kinds.length ? '' : cells;
    else bar += look.paint(kind === 'session' ? 'green' : 'dim', cells);
    at = end;
  }
  return bar;
}

/** @returns two lines; none without data or without space */
function dayBar(view: DayView, look: Reader): string[] {
  const [first] = view.stretches;
  const last = view.stretches.at(-1);
  if (!first || !last) return [];
  const from = hourBefore(first.from);
  const hours = Math.max(1, Math.ceil((Date.parse(last.to) - from) / HOUR_MS));
  const perHour = CELLS_PER_HOUR.find((cells) => hours * cells <= look.width);
  if (perHour === undefined) return [];
  const cellMs = HOUR_MS / perHour;
  const kinds = Array.from({ length: hours * perHour }, (_, cell) =>
    kindOf(view, from + cell * cellMs, from + (cell + 1) * cellMs),
  );
  if (kinds.every((kind) => kind === 'nothing')) return [];
  const step = Math.max(1, Math.ceil(LABEL_WIDTH / perHour));
  let scale = '';
  for (let hour = 0; hour < hours; hour += step) {
    if (hour * perHour + LABEL_WIDTH - 1 > look.width) break;
    const label = formatWithOffset(view.timezone, from + hour * HOUR_MS);
    scale = `${scale.padEnd(hour * perHour)}${clockOf(label)}`;
  }
  return [look.paint('dim', scale), painted(kinds, look)];
}

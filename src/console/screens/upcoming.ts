/** The next seven days as a timeline and as a list, with the wakes that the budget defers. */
import { html } from 'hono/html';
import type { ChronosClient } from '../../chronos/client.ts';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { dayAt, wallReading } from '../../kit/clock/wall-clock.ts';
import { conditionText, type NameOfAlarm } from '../../kit/phrase/condition-text.ts';
import { unusedCalendar } from '../../kit/phrase/unused-calendar.ts';
import { type AlarmView, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { type Budget, spendingLimits } from '../../wire/budget.ts';
import {
  backfillText,
  hasTrouble,
  instantOf,
  nameAmong,
  nameOf,
  rareTexts,
  scheduleHtml,
  trouble,
  whyItFires,
} from '../alarm-text.ts';
import {
  addConflict,
  type Cell,
  type Conflict,
  deferredIn,
  type Forecast,
  forecast,
  MAX_SIMULATED,
} from '../forecast.ts';
import { empty, missing, type Page, pageHead } from '../page.ts';
import type { RequestContext } from '../request-context.ts';
import { brief, type Html, NOTHING, shown } from '../shown.ts';
import { absolute, type LocalContext, relative, time, zoneText } from '../times.ts';

const DAY_MS = 86_400_000;
const DAYS = 7;
const MAX_ALARMS = 1000;
/** Alarms listed for one day. */
const MAX_LISTED = 25;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

async function budgetOf({ backend, reads }: RequestContext): Promise<Budget | undefined> {
  if ('missing' in backend.machines) return undefined;
  const machines = backend.machines.there;
  // A user without a machine has no budget. The Machine screen shows errors of this request.
  const machine = await reads.read(`${backend.user} machine`, () => machines.show(backend.user)).catch(() => undefined);
  return machine?.budget ?? machine?.default_budget;
}

const DAY_MINUTES = 1440;
/** Pixels. */
const ROW = 28;

/** More fires of one alarm in an hour are a band. */
const MAX_DOTS_PER_ALARM = 2;
/** Minutes between the fires of a band; three an hour are not further apart. */
const LONGEST_GAP = 30;
/** More dots in an hour are a band. */
const MAX_DOTS = 12;

type Style = 'ring' | 'against' | 'both';
/** What the chart draws of one hour: a dot per fire of a sparse alarm, a band for the fires of dense ones. */
type Mark = { readonly day: number; readonly from: number; to: number; count: number; readonly style: Style };

const styleOf = (count: number, deferred: number): Style =>
  deferred === 0 ? 'ring' : deferred === count ? 'against' : 'both';

function bandOf(cells: readonly Cell[], here: LocalContext): Mark {
  const count = cells.reduce((sum, cell) => sum + cell.count, 0);
  const deferred = cells.reduce((sum, cell) => sum + deferredIn(cell), 0);
  const from = Math.min(...cells.map(({ first }) => minuteOf(first, here)));
  // A band reaches up to the next fire, and so to the band of the next hour.
  const ends = cells.map(({ first, last, count: fires }) => {
    const minute = minuteOf(last, here);
    const gap = fires === 1 ? 0 : (last - first) / (fires - 1) / 60_000;
    return Math.min(minute + Math.min(gap, LONGEST_GAP), DAY_MINUTES);
  });
  return { day: cells[0]!.day, from, to: Math.max(from, ...ends), count, style: styleOf(count, deferred) };
}

type Marks = { readonly dots: Mark[]; readonly bands: Mark[] };

/** At most 13 marks for an hour of a day, however many alarms there are. */
function marksOf({ cells }: Forecast, here: LocalContext): Marks {
  const hours = Map.groupBy(cells, ({ day, first }) => day * 24 + Math.floor(minuteOf(first, here) / 60));
  const [dots, bands]: [Mark[], Mark[]] = [[], []];
  for (const hour of [...hours.keys()].sort((one, other) => one - other)) {
    const dense: Cell[] = [];
    const sparse = new Map<string, Mark>();
    for (const cell of hours.get(hour)!) {
      const { day, first, last, count, defersFirst, defersLast } = cell;
      if (count > MAX_DOTS_PER_ALARM) dense.push(cell);
      else
        for (const [at, defers] of [[first, defersFirst] as const, [last, defersLast] as const].slice(0, count)) {
          const from = minuteOf(at, here);
          const key = `${from} ${defers}`;
          const fires = (sparse.get(key)?.count ?? 0) + 1;
          sparse.set(key, { day, from, to: from, count: fires, style: defers ? 'against' : 'ring' });
        }
    }
    if (sparse.size > MAX_DOTS) dense.splice(0, dense.length, ...hours.get(hour)!);
    else dots.push(...sparse.values());
    if (dense.length === 0) continue;
    const band = bandOf(dense, here);
    const before = bands.at(-1);
    if (before && before.day === band.day && before.style === band.style && band.from - before.to <= 1) {
      before.to = Math.max(before.to, band.to);
      before.count += band.count;
    } else bands.push(band);
  }
  return { dots, bands };
}

const minuteOf = (at: number, { zone }: LocalContext) => wallReading(zone, at).minuteOfDay;
const clock = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(Math.floor(minute % 60)).padStart(2, '0')}`;

function bandMark({ day, from, to, count, style }: Mark): Html {
  const y = day * ROW + ROW / 2;
  const [x, width] = [from.toFixed(1), Math.max(4, to - from).toFixed(1)];
  const bar = (name: string, top: number, height: number) =>
    html`<rect class="${name}" x="${x}" y="${top}" width="${width}" height="${height}"/>`;
  const bars = style === 'both' ? html`${bar('ring', y - 7, 7)}${bar('against', y, 7)}` : bar(style, y - 7, 14);
  return html`<g data-fires="${count}"><title>${clock(from)} to ${clock(to)}: ${counted(count, 'wake')}</title>${bars}</g>`;
}

/** The width of the chart varies. A dot is a line without length, because its round ends keep their shape. */
const dotMark = ({ day, from, count, style }: Mark): Html =>
  html`<g data-fires="${count}" class="dot ${style}"><path d="M${from.toFixed(1)} ${day * ROW + ROW / 2}h0"/><path d="M${from.toFixed(1)} ${day * ROW + ROW / 2}h0"/></g>`;

/** A row for each day; x is the minute of the day. The list below the chart has the same fires as text. */
function timeline({ perDay, total }: Forecast, { dots, bands }: Marks, here: LocalContext): Html {
  const { now, zone } = here;
  const height = perDay.length * ROW;
  const names = perDay.map((_, day) => {
    const { date, weekday } = wallReading(zone, now + day * DAY_MS);
    return html`<span>${WEEKDAYS[weekday]!} ${Number(date.slice(8))}</span>`;
  });
  const rows = perDay.map((_, day) => {
    const y = day * ROW + ROW / 2;
    return html`<line x1="0" x2="${DAY_MINUTES}" y1="${y}" y2="${y}"/>`;
  });
  const hours = [0, 6, 12, 18, 24];
  const columns = hours.map((hour) => html`<line x1="${hour * 60}" x2="${hour * 60}" y1="0" y2="${height}"/>`);
  const at = minuteOf(now, here).toFixed(1);
  const label = `Timeline of the next seven days: ${counted(total, 'wake')}. The list below names each.`;
  return html`<div class="timeline" aria-label="Timeline" role="group"><div class="days" aria-hidden="true">${names}</div><svg viewBox="0 0 ${DAY_MINUTES} ${height}" height="${height}" preserveAspectRatio="none" role="img" aria-label="${label}">${columns}${rows}<line class="now" x1="${at}" x2="${at}" y1="2" y2="${ROW - 2}"/>${bands.map(bandMark)}${dots.map(dotMark)}</svg><div class="hours" aria-hidden="true">${hours.map((hour) => html`<span>${hour}:00</span>`)}</div></div>`;
}

function legend({ cellsAre, deferred }: Forecast, { bands }: Marks): Html {
  const parts = [
    bands.length === 0
      ? undefined
      : `Bar: an alarm fires more than ${MAX_DOTS_PER_ALARM} times in an hour, or all alarms more than ${MAX_DOTS} times.`,
    deferred ? 'Outlined: deferred by the budget.' : undefined,
    cellsAre === 'days'
      ? 'There are too many fires to show hours: a bar reaches from the first to the last fire of a day.'
      : undefined,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? NOTHING : html`<p class="hint">${parts.join(' ')}</p>`;
}

/** The fires of one alarm on one day. */
type AlarmDay = Pick<Cell, 'alarm' | 'first' | 'last' | 'count' | 'conflicts'>;

const clockOf = (at: number, here: LocalContext) => calendarTime(at, here).replace(/^.* /, '');

/** Why fires of one alarm are deferred, once per reason. */
function conflictLines({ count, conflicts }: AlarmDay, here: LocalContext): Html[] {
  return conflicts.map(({ why, count: deferred, until }) => {
    const which = count === 1 ? 'Deferred' : deferred === count ? 'All deferred' : `${deferred} deferred`;
    const then = until === undefined ? 'until the budget allows a wake' : html`until ${absolute(until, here)}`;
    return html`<p class="trouble">${which} ${then}: ${why}</p>`;
  });
}

/** What the fires do besides the message, and what a reader may not expect of them. */
function asides({ alarm }: AlarmDay, here: LocalContext): Html[] {
  const rare = rareTexts(alarm);
  const backfill = backfillText(alarm, here);
  const calendar = unusedCalendar(alarm);
  return [
    rare.length === 0 ? NOTHING : html`<p class="aside">${shown(rare.join(' · '))}</p>`,
    backfill === undefined ? NOTHING : html`<p class="aside">backfill ${backfill}</p>`,
    calendar === undefined ? NOTHING : html`<p class="trouble">The calendar ${shown(calendar)}</p>`,
  ];
}

/** What is checked before the wake, and the command in place of a turn. */
function conditionsText({ check, run }: AlarmView): Html {
  const texts = [
    ...(check ? [html`checks ${brief(conditionText('check', check), 80)}`] : []),
    ...(run ? [html`runs ${brief(conditionText('run', run), 80)}`] : []),
  ];
  return texts.length === 0
    ? NOTHING
    : html`<p class="work">${texts.map((text, at) => html`${at === 0 ? '' : '; '}${text}`)}</p>`;
}

/** The message first, then repetition, time and distance, each in a column of its own. */
function dayRow(one: AlarmDay, day: number, here: LocalContext): Html {
  const { alarm, first, last, count } = one;
  const times =
    count > 1
      ? `${counted(count, 'time')}, last at ${clockOf(last, here)}`
      : alarm.kind === 'once'
        ? NOTHING
        : scheduleHtml(alarm, here);
  const message =
    alarm.label === '' ? NOTHING : html` <span class="dim" dir="auto">${brief(alarm.wake_message, 160)}</span>`;
  const exact = new Date(first).toISOString();
  return html`<li id="upcoming-${day}-${alarm.id}" data-row><div class="what"><a href="alarms/${alarm.id}" data-open dir="auto">${nameOf(alarm)}</a>${message}${conditionsText(alarm)}</div><span class="times">${times}</span><time class="clock" datetime="${exact}">${clockOf(first, here)}</time>${relative(first, here)}${asides(one, here)}${conflictLines(one, here)}</li>`;
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

function figures({ cells, total, deferred, perDay }: Forecast): Html {
  // An alarm with a command starts no turn of the model.
  const ofModel = cells.filter(({ alarm }) => !alarm.run);
  const modelTurns = ofModel.reduce((sum, cell) => sum + cell.count - deferredIn(cell), 0);
  // A check may prevent the turn.
  const most = ofModel.some(({ alarm }) => alarm.check) ? ' at most' : '';
  const turns =
    deferred === undefined
      ? html`<li><strong>?</strong>deferred: not computed beyond ${MAX_SIMULATED} wakes</li>`
      : html`<li><strong>${modelTurns}</strong>model turns${most}</li><li class="${deferred > 0 ? 'bad' : ''}"><strong>${deferred}</strong>deferred by the budget</li>`;
  return html`<ul class="figures"><li><strong>${total}</strong>${total === 1 ? 'wake' : 'wakes'} in 7 days</li><li><strong>${Math.max(...perDay)}</strong>on the busiest day</li>${turns}</ul>`;
}

function budgetText(budget: Budget | undefined): Html | string {
  const { wakes_per_day: daily, wakes_per_hour: hourly, quiet } = budget ?? {};
  const limits = [
    daily === undefined ? undefined : `${daily} wakes a day`,
    hourly === undefined ? undefined : `${hourly} wakes an hour`,
    ...spendingLimits(budget ?? {}),
    quiet === undefined ? undefined : `quiet ${quiet.from}–${quiet.to} ${quiet.timezone}`,
  ].filter((one) => one !== undefined);
  return limits.length === 0
    ? html`No budget. Set one with <code>reveille machine budget</code>`
    : `Budget: ${limits.join(', ')}`;
}

function wholeDay(cells: readonly Cell[]): AlarmDay {
  const conflicts: Conflict[] = [];
  for (const cell of cells) for (const conflict of cell.conflicts) addConflict(conflicts, conflict);
  const count = cells.reduce((sum, cell) => sum + cell.count, 0);
  return { alarm: cells[0]!.alarm, first: cells[0]!.first, last: cells.at(-1)!.last, count, conflicts };
}

function byDay({ cells }: Forecast, here: LocalContext): Html[] {
  const today = dayAt(here.zone, here.now);
  return [...Map.groupBy(cells, ({ day }) => day)].map(([day, ofDay]) => {
    const rows = [...Map.groupBy(ofDay, ({ alarm }) => alarm.id).values()].map(wholeDay);
    const date = calendarTime(rows[0]!.first, here).replace(/ \d\d:\d\d(:\d\d)?$/, '');
    const name =
      day === 0
        ? html`Today <span class="dim">${date}</span>`
        : day === 1
          ? html`Tomorrow <span class="dim">${date}</span>`
          : date;
    const omitted = rows.length - MAX_LISTED;
    const more = omitted > 0 ? html`<li class="dim">and ${counted(omitted, 'more alarm')} on this day</li>` : NOTHING;
    return html`<h2>${name}</h2><ul class="agenda" id="upcoming-${today + day}">${rows.slice(0, MAX_LISTED).map((one) => dayRow(one, today + day, here))}${more}</ul>`;
  });
}

/** The alarms that fire before an instant, in the order of their next fire, up to `MAX_ALARMS`. */
async function readUpcoming(client: ChronosClient, until: number): Promise<{ alarms: AlarmView[]; hasMore: boolean }> {
  const alarms: AlarmView[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(LIST_LIMIT_MAX, MAX_ALARMS - alarms.length);
    const page = await client.listAlarms({ sort: 'next', limit, until: new Date(until).toISOString(), cursor });
    alarms.push(...page.alarms);
    cursor = page.next_cursor;
  } while (cursor !== undefined && alarms.length < MAX_ALARMS);
  return { alarms, hasMore: cursor !== undefined };
}

/** Alarms without a time, listed at most. */
const MAX_WAITING = 100;

type Waiting = { readonly alarms: readonly AlarmView[]; readonly hasMore: boolean };

async function readWaiting(client: ChronosClient): Promise<Waiting> {
  const { alarms, next_cursor } = await client.listAlarms({ kind: 'event', status: 'active', limit: MAX_WAITING });
  return { alarms, hasMore: next_cursor !== undefined };
}

/** An alarm that waits for events: what for, and when it fires without one. */
function waitingRow(alarm: AlarmView, names: NameOfAlarm, here: LocalContext): Html {
  const message =
    alarm.label === '' ? NOTHING : html` <span class="dim" dir="auto">${brief(alarm.wake_message, 160)}</span>`;
  const next = instantOf(alarm.next_fire_at);
  const end =
    next === undefined ? NOTHING : html`<span class="end">fires ${time(next, here)} ${whyItFires(alarm)}</span>`;
  return html`<li id="waiting-${alarm.id}" data-row><div class="what"><a href="alarms/${alarm.id}" data-open dir="auto">${nameOf(alarm)}</a>${message}${conditionsText(alarm)}</div><span class="times">${scheduleHtml(alarm, here, names)}</span>${end}${hasTrouble(alarm) ? html`<p class="trouble">${trouble(alarm, here)}</p>` : NOTHING}</li>`;
}

function waitingList({ alarms, hasMore }: Waiting, known: readonly AlarmView[], here: LocalContext): Html {
  if (alarms.length === 0) return NOTHING;
  const names = nameAmong([...alarms, ...known]);
  const more = hasMore ? html`<li class="dim">and <a href="alarms?kind=event">more</a></li>` : NOTHING;
  return html`<h2>Waiting for events</h2><ul class="agenda waiting">${alarms.map((alarm) => waitingRow(alarm, names, here))}${more}</ul>`;
}

/** `upcoming`. */
export async function upcomingScreen(context: RequestContext): Promise<Page> {
  const { backend, here, reads } = context;
  const about = { screen: 'upcoming', title: 'Upcoming' } as const;
  if ('missing' in backend.alarms)
    return {
      ...about,
      main: html`${pageHead('Upcoming')}${missing('Alarms are not available', backend.alarms.missing)}`,
    };
  const client = backend.alarms.there;
  const until = here.now + DAYS * DAY_MS;
  const read = () => readUpcoming(client, until);
  const [{ alarms: due, hasMore }, waiting, budget] = await Promise.all([
    reads.read(`${backend.user} upcoming`, read),
    reads.read(`${backend.user} events`, () => readWaiting(client)),
    budgetOf(context),
  ]);
  const alarms = due.filter(({ kind }) => kind !== 'event');
  await backend.readCalendars?.(alarms);
  const looksAt = ['alarms', 'machines'];
  const add = html`<a class="button" href="upcoming/calendar">Calendar feeds</a><a class="button primary" href="alarms/new" data-key="n">New alarm</a>`;
  if (alarms.length === 0) {
    const next = html`Create an <a href="alarms/new">alarm</a>, or ask your agent in the <a href="chat">chat</a> to set one. Fired alarms are under <a href="alarms?status=fired">Alarms</a>.`;
    return {
      ...{ ...about, looksAt },
      main: html`${pageHead('Upcoming', `Next 7 days in ${zoneText(here)}`, add)}${waiting.alarms.length === 0 ? empty('No alarm fires in the next 7 days', next) : html`<p class="dim">No alarm fires at a time in the next 7 days.</p>`}${waitingList(waiting, due, here)}`,
    };
  }
  const week = forecast({ alarms, now: here.now, until, zone: here.zone, budget, seriesOf: backend.seriesOf });
  const more = hasMore
    ? html`<p class="trouble">This page covers the ${MAX_ALARMS} alarms that fire first. <a href="alarms">Alarms</a> lists all.</p>`
    : NOTHING;
  const marks = marksOf(week, here);
  const main = html`${pageHead('Upcoming', html`Next 7 days in ${zoneText(here)}. ${budgetText(budget)}`, add)}
${figures(week)}
<div class="chart">${timeline(week, marks, here)}${legend(week, marks)}</div>${more}
${byDay(week, here)}${waitingList(waiting, due, here)}
`;
  return { ...about, main, looksAt };
}

/** The next seven days: as a timeline and as a list, in the agent's own words, with what stands against it. */
import { html } from 'hono/html';
import type { ChronosClient } from '../../chronos/client.ts';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { dayAt, wallReading } from '../../kit/clock/wall-clock.ts';
import { type AlarmView, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import type { Budget } from '../../wire/budget.ts';
import { type Ahead, addConflict, type Cell, type Conflict, deferredIn, lookAhead, MOST_SIMULATED } from '../forecast.ts';
import { nameOf } from '../alarm-text.ts';
import { empty, missing, type Page } from '../page.ts';
import { brief, type Html, NOTHING } from '../shown.ts';
import { type Here, time, zoneWords } from '../times.ts';
import type { RequestContext } from '../request-context.ts';

const DAY_MS = 86_400_000;
const DAYS = 7;
const MOST_ALARMS = 1000;
/** Alarms listed for one day. */
const MOST_LISTED = 25;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

async function budgetOf({ backend, reads }: RequestContext): Promise<Budget | undefined> {
  if ('missing' in backend.machines) return undefined;
  const machines = backend.machines.there;
  // A person without a machine has no budget; why it cannot be asked is told by its own screen.
  const machine = await reads.read(`${backend.user} machine`, () => machines.show(backend.user)).catch(() => undefined);
  return machine?.budget ?? machine?.default_budget;
}

const LEFT = 64;
const WIDTH = 960;
const ROW = 28;
const xOf = (minute: number) => LEFT + (minute / 1440) * (WIDTH - LEFT - 8);

/** More fires of one alarm in an hour are a band. */
const MOST_DOTS_OF_ONE = 2;
/** Minutes between the fires of a band; three an hour are not further apart. */
const LONGEST_GAP = 30;
/** More dots in an hour are a band. */
const MOST_DOTS = 12;

type Look = 'ring' | 'against' | 'both';
/** What the chart draws of one hour: a dot per fire of a sparse alarm, a band for the fires of dense ones. */
type Mark = { readonly day: number; readonly from: number; to: number; count: number; readonly look: Look };

const lookOf = (count: number, deferred: number): Look =>
  deferred === 0 ? 'ring' : deferred === count ? 'against' : 'both';

function bandOf(cells: readonly Cell[], here: Here): Mark {
  const count = cells.reduce((sum, cell) => sum + cell.count, 0);
  const deferred = cells.reduce((sum, cell) => sum + deferredIn(cell), 0);
  const from = Math.min(...cells.map(({ first }) => minuteOf(first, here)));
  // A band reaches up to the next fire, and so to the band of the next hour.
  const ends = cells.map(({ first, last, count: fires }) => {
    const minute = minuteOf(last, here);
    const gap = fires === 1 ? 0 : (last - first) / (fires - 1) / 60_000;
    return Math.min(minute + Math.min(gap, LONGEST_GAP), 1440);
  });
  return { day: cells[0]!.day, from, to: Math.max(from, ...ends), count, look: lookOf(count, deferred) };
}

type Marks = { readonly dots: Mark[]; readonly bands: Mark[] };

/** At most 13 marks for an hour of a day, however many alarms there are. */
function marksOf({ cells }: Ahead, here: Here): Marks {
  const hours = Map.groupBy(cells, ({ day, first }) => day * 24 + Math.floor(minuteOf(first, here) / 60));
  const [dots, bands]: [Mark[], Mark[]] = [[], []];
  for (const hour of [...hours.keys()].sort((one, other) => one - other)) {
    const dense: Cell[] = [];
    const sparse = new Map<string, Mark>();
    for (const cell of hours.get(hour)!) {
      const { day, first, last, count, defersFirst, defersLast } = cell;
      if (count > MOST_DOTS_OF_ONE) dense.push(cell);
      else
        for (const [at, defers] of [[first, defersFirst] as const, [last, defersLast] as const].slice(0, count)) {
          const from = minuteOf(at, here);
          const key = `${from} ${defers}`;
          const fires = (sparse.get(key)?.count ?? 0) + 1;
          sparse.set(key, { day, from, to: from, count: fires, look: defers ? 'against' : 'ring' });
        }
    }
    if (sparse.size > MOST_DOTS) dense.splice(0, dense.length, ...hours.get(hour)!);
    else dots.push(...sparse.values());
    if (dense.length === 0) continue;
    const band = bandOf(dense, here);
    const before = bands.at(-1);
    if (before && before.day === band.day && before.look === band.look && band.from - before.to <= 1) {
      before.to = Math.max(before.to, band.to);
      before.count += band.count;
    } else bands.push(band);
  }
  return { dots, bands };
}

const minuteOf = (at: number, { zone }: Here) => wallReading(zone, at).minuteOfDay;
const clock = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(Math.floor(minute % 60)).padStart(2, '0')}`;

function bandMark({ day, from, to, count, look }: Mark): Html {
  const y = day * ROW + 20;
  const [x, width] = [xOf(from).toFixed(1), Math.max(4, xOf(to) - xOf(from)).toFixed(1)];
  const bar = (name: string, top: number, height: number) =>
    html`<rect class="${name}" x="${x}" y="${top}" width="${width}" height="${height}" rx="2"/>`;
  const bars = look === 'both' ? html`${bar('ring', y - 7, 7)}${bar('against', y, 7)}` : bar(look, y - 7, 14);
  return html`<g data-fires="${count}"><title>${clock(from)} to ${clock(to)}: ${times(count, 'fire')}</title>${bars}</g>`;
}

/** A row for each day. The list below the chart has the same fires as text. */
function timeline({ perDay, total }: Ahead, { dots, bands }: Marks, here: Here): Html {
  const { now, zone } = here;
  const height = perDay.length * ROW + 24;
  const rows = perDay.map((_, day) => {
    const { date, weekday } = wallReading(zone, now + day * DAY_MS);
    const y = day * ROW + 20;
    return html`<text x="0" y="${y + 5}">${WEEKDAYS[weekday]!} ${Number(date.slice(8))}</text><line x1="${LEFT}" x2="${WIDTH - 8}" y1="${y}" y2="${y}"/>`;
  });
  const hours = [0, 6, 12, 18, 24].map(
    (hour) =>
      html`<line class="hour" x1="${xOf(hour * 60)}" x2="${xOf(hour * 60)}" y1="8" y2="${height - 20}"/><text class="hour" text-anchor="${hour === 24 ? 'end' : hour === 0 ? 'start' : 'middle'}" x="${xOf(hour * 60)}" y="${height - 4}">${hour}:00</text>`,
  );
  const circles = dots.map(
    ({ day, from, count, look }) =>
      html`<circle data-fires="${count}" class="${look}" cx="${xOf(from).toFixed(1)}" cy="${day * ROW + 20}" r="5"/>`,
  );
  const line = xOf(minuteOf(now, here)).toFixed(1);
  return html`<svg class="timeline" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Timeline of the next seven days: ${times(total, 'fire')}. The list below says each.">${hours}${rows}<line class="now" x1="${line}" x2="${line}" y1="8" y2="32"/>${bands.map(bandMark)}${circles}</svg>`;
}

function legend({ cellsAre, deferred }: Ahead, { bands }: Marks): Html {
  const parts = [
    bands.length === 0
      ? undefined
      : `A bar: one alarm fires more than ${MOST_DOTS_OF_ONE} times an hour, or all alarms at more than ${MOST_DOTS} times.`,
    deferred ? 'Outlined: held back by the budget.' : undefined,
    cellsAre === 'days'
      ? 'There are too many fires to show hours: a bar reaches from the first to the last fire of a day.'
      : undefined,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? NOTHING : html`<p class="hint">${parts.join(' ')}</p>`;
}

/** The fires of one alarm on one day. */
type DayOfOne = Pick<Cell, 'alarm' | 'first' | 'last' | 'count' | 'conflicts'>;

const clockOf = (at: number, here: Here) => calendarTime(at, here).replace(/^.* /, '');

/** Why fires of one alarm are deferred, once per reason. */
function against({ count, conflicts }: DayOfOne, here: Here): Html[] {
  return conflicts.map(({ why, count: held, until }) => {
    const which = count === 1 ? '' : held === count ? 'all of them: ' : `${held} of them: `;
    const then = until === undefined ? html`held back until there is room` : html`held back until ${time(until, here)}`;
    return html`<p class="trouble">${which}${why}, ${then}</p>`;
  });
}

function dayRow(one: DayOfOne, day: number, here: Here): Html {
  const { alarm, first, last, count } = one;
  const more = count === 1 ? NOTHING : html` and ${times(count - 1, 'more time')}, the last at ${clockOf(last, here)}`;
  const words =
    alarm.label === '' ? NOTHING : html`<span class="dim" dir="auto">${brief(alarm.wake_message, 160)}</span>`;
  return html`<li id="ahead-${day}-${alarm.id}" data-row><span class="when">${time(first, here)}${more}</span> <a href="alarms/${alarm.id}" data-open dir="auto">${nameOf(alarm)}</a> ${words}${against(one, here)}</li>`;
}

const times = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

/** How often it wakes, and what that may cost: turns of the model, and starts of the machine. */
function costs({ total, deferred, perDay }: Ahead, budget: Budget | undefined): Html {
  const most = Math.max(...perDay);
  const { wakes_per_day: daily, wakes_per_hour: hourly, quiet } = budget ?? {};
  const bounds = [
    daily === undefined ? undefined : `${daily} wakes a day`,
    hourly === undefined ? undefined : `${hourly} an hour`,
    quiet === undefined ? undefined : `quiet from ${quiet.from} to ${quiet.to} in ${quiet.timezone}`,
  ].filter((one) => one !== undefined);
  const held =
    deferred === undefined
      ? html`<li>How many of them the budget holds back is not computed for more than ${MOST_SIMULATED} fires.</li>`
      : html`<li><strong>${times(total - deferred, 'turn')}</strong> of the model, one for each wake that is let through</li>
<li class="${deferred > 0 ? 'bad' : ''}"><strong>${deferred}</strong> held back by the budget</li>`;
  return html`<ul class="figures">
<li><strong>${total}</strong> ${total === 1 ? 'wake' : 'wakes'} in seven days</li>
<li><strong>${most}</strong> on the busiest day</li>
${held}
</ul>
<p class="dim">${bounds.length === 0 ? html`No budget bounds its wakes: <code>reveille machine budget --help</code> says how to set one.` : `Its budget: ${bounds.join(', ')}.`}</p>`;
}

/** The cells of one alarm on one day as one. */
function wholeDay(cells: readonly Cell[]): DayOfOne {
  const conflicts: Conflict[] = [];
  for (const cell of cells) for (const conflict of cell.conflicts) addConflict(conflicts, conflict);
  const count = cells.reduce((sum, cell) => sum + cell.count, 0);
  return { alarm: cells[0]!.alarm, first: cells[0]!.first, last: cells.at(-1)!.last, count, conflicts };
}

function byDay({ cells }: Ahead, here: Here): Html[] {
  const today = dayAt(here.zone, here.now);
  return [...Map.groupBy(cells, ({ day }) => day)].map(([day, ofDay]) => {
    const rows = [...Map.groupBy(ofDay, ({ alarm }) => alarm.id).values()].map(wholeDay);
    const date = calendarTime(rows[0]!.first, here).replace(/ \d\d:\d\d(:\d\d)?$/, '');
    const name = day === 0 ? `Today, ${date}` : day === 1 ? `Tomorrow, ${date}` : date;
    const left = rows.length - MOST_LISTED;
    const more = left > 0 ? html`<li class="dim">and ${times(left, 'more alarm')} on this day</li>` : NOTHING;
    return html`<h2>${name}</h2><ul class="ahead-list" id="ahead-${today + day}">${rows.slice(0, MOST_LISTED).map((one) => dayRow(one, today + day, here))}${more}</ul>`;
  });
}

/** The alarms that fire before an instant, the first one first, up to `MOST_ALARMS`. */
async function upcoming(client: ChronosClient, until: number): Promise<{ alarms: AlarmView[]; hasMore: boolean }> {
  const alarms: AlarmView[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(LIST_LIMIT_MAX, MOST_ALARMS - alarms.length);
    const page = await client.listAlarms({ sort: 'next', limit, until: new Date(until).toISOString(), cursor });
    alarms.push(...page.alarms);
    cursor = page.next_cursor;
  } while (cursor !== undefined && alarms.length < MOST_ALARMS);
  return { alarms, hasMore: cursor !== undefined };
}

export async function aheadScreen(context: RequestContext): Promise<Page> {
  const { backend, here, reads } = context;
  if ('missing' in backend.alarms) return { screen: 'ahead', title: 'Ahead', main: missing('Ahead', backend.alarms.missing) };
  const client = backend.alarms.there;
  const until = here.now + DAYS * DAY_MS;
  const ask = () => upcoming(client, until);
  const [{ alarms, hasMore }, budget] = await Promise.all([reads.read(`${backend.user} ahead`, ask), budgetOf(context)]);
  const looksAt = ['alarms', 'machines'];
  if (alarms.length === 0) {
    const next = html`<a href="alarms/new">Set an alarm</a>, or ask your agent to wake itself. What has rung is under <a href="alarms?status=fired">Alarms</a>.`;
    return {
      screen: 'ahead',
      title: 'Ahead',
      looksAt,
      main: html`<h1>Ahead</h1>${empty('Nothing rings in the next seven days', next)}`,
    };
  }
  const ahead = lookAhead({ alarms, now: here.now, until, zone: here.zone, budget, seriesOf: backend.seriesOf });
  const more = hasMore
    ? html`<p class="trouble">Figures, chart and days are of the ${MOST_ALARMS} alarms that fire first; <a href="alarms">the list</a> has all.</p>`
    : NOTHING;
  const marks = marksOf(ahead, here);
  const main = html`<h1>Ahead</h1><p class="dim">The next seven days, in ${zoneWords(here)}.</p>
${costs(ahead, budget)}
<div class="chart" tabindex="0" role="group" aria-label="Timeline">${timeline(ahead, marks, here)}</div>${legend(ahead, marks)}${more}
${byDay(ahead, here)}
`;
  return { screen: 'ahead', title: 'Ahead', main, looksAt };
}

/** The next seven days: as a timeline and as a list, in the agent's own words, with what stands against it. */
import { html } from 'hono/html';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { dayAt, wallReading } from '../../kit/clock/wall-clock.ts';
import type { AlarmView } from '../../wire/alarm.ts';
import type { Budget } from '../../wire/budget.ts';
import { type Ahead, type AheadRing, lookAhead } from '../ahead.ts';
import { nameOf } from '../alarm-words.ts';
import { empty, missing, type Page } from '../page.ts';
import { brief, type Html, NOTHING } from '../shown.ts';
import { type Here, time, zoneWords } from '../times.ts';
import type { Visit } from '../visit.ts';

const DAY_MS = 86_400_000;
const DAYS = 7;
const MOST_ALARMS = 300;
/** Marks on the timeline. */
const MOST_MARKS = 500;
/** Alarms listed for one day. */
const MOST_LISTED = 25;
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

async function budgetOf({ desk, reads }: Visit): Promise<Budget | undefined> {
  if ('missing' in desk.machines) return undefined;
  const machines = desk.machines.there;
  // A person without a machine has no budget; why it cannot be asked is told by its own screen.
  const machine = await reads.read(`${desk.user} machine`, () => machines.show(desk.user)).catch(() => undefined);
  return machine?.budget ?? machine?.default_budget;
}

const LEFT = 64;
const WIDTH = 960;
const ROW = 28;
const xOf = (minute: number) => LEFT + (minute / 1440) * (WIDTH - LEFT - 8);

/** A row for each day, a mark for each ring. What it shows stands in the list below it as text. */
function timeline({ rings, perDay }: Ahead, { now, zone }: Here): Html {
  const today = dayAt(zone, now);
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
  const marks = rings.slice(0, MOST_MARKS).map(({ at, conflict }) => {
    const y = Math.max(0, dayAt(zone, at) - today) * ROW + 20;
    return html`<circle class="${conflict ? 'against' : 'ring'}" cx="${xOf(wallReading(zone, at).minuteOfDay).toFixed(1)}" cy="${y}" r="5"/>`;
  });
  const line = xOf(wallReading(zone, now).minuteOfDay).toFixed(1);
  return html`<svg class="timeline" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Timeline of the next seven days: ${rings.length} rings. The list below says each.">${hours}${rows}<line class="now" x1="${line}" x2="${line}" y1="8" y2="32"/>${marks}</svg>`;
}

/** The rings of one alarm on one day. */
type DayOfOne = { readonly alarm: AlarmView; readonly rings: AheadRing[] };

const clockOf = (at: number, here: Here) => calendarTime(at, here).replace(/^.* /, '');

/** What stands against some rings of one alarm, said once for those that wait for the same. */
function against(rings: readonly AheadRing[], here: Here): Html[] {
  const reasons = new Map<string, AheadRing[]>();
  for (const ring of rings) {
    const { conflict } = ring;
    if (conflict) reasons.set(conflict.why, [...(reasons.get(conflict.why) ?? []), ring]);
  }
  return [...reasons].map(([why, held]) => {
    const until = held.at(-1)!.conflict!.until;
    const which = rings.length === 1 ? '' : held.length === rings.length ? 'all of them: ' : `${held.length} of them: `;
    const then = until === undefined ? html`held back until there is room` : html`held back until ${time(until, here)}`;
    return html`<p class="trouble">${which}${why}, ${then}</p>`;
  });
}

function dayRow({ alarm, rings }: DayOfOne, here: Here): Html {
  const [first, last] = [rings[0]!, rings.at(-1)!];
  const more =
    rings.length === 1 ? NOTHING : html` and ${rings.length - 1} more times, the last at ${clockOf(last.at, here)}`;
  const words =
    alarm.label === '' ? NOTHING : html`<span class="dim" dir="auto">${brief(alarm.wake_message, 160)}</span>`;
  return html`<li data-row><span class="when">${time(first.at, here)}${more}</span> <a href="alarms/${alarm.id}" data-open dir="auto">${nameOf(alarm)}</a> ${words}${against(rings, here)}</li>`;
}

const times = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

/** How often it wakes, and what that may cost: what is spent is turns of the model, and starts of the machine. */
function costs({ rings, perDay, cut }: Ahead, budget: Budget | undefined): Html {
  const most = Math.max(...perDay);
  const against = rings.filter(({ conflict }) => conflict !== undefined).length;
  const { wakes_per_day: daily, wakes_per_hour: hourly, quiet } = budget ?? {};
  const bounds = [
    daily === undefined ? undefined : `${daily} wakes a day`,
    hourly === undefined ? undefined : `${hourly} an hour`,
    quiet === undefined ? undefined : `quiet from ${quiet.from} to ${quiet.to} in ${quiet.timezone}`,
  ].filter((one) => one !== undefined);
  return html`<ul class="figures">
<li><strong>${rings.length}${cut.length > 0 ? '+' : ''}</strong> ${rings.length === 1 ? 'wake' : 'wakes'} in seven days</li>
<li><strong>${most}</strong> on the busiest day</li>
<li><strong>${times(rings.length - against, 'turn')}</strong> of the model, one for each wake that is let through</li>
<li class="${against > 0 ? 'bad' : ''}"><strong>${against}</strong> held back by the budget</li>
</ul>
<p class="dim">${bounds.length === 0 ? html`No budget bounds its wakes: <code>reveille machine budget --help</code> says how to set one.` : `Its budget: ${bounds.join(', ')}.`}</p>`;
}

function byDay(rings: readonly AheadRing[], here: Here): Html[] {
  const days = new Map<number, Map<string, DayOfOne>>();
  for (const ring of rings) {
    const day = dayAt(here.zone, ring.at);
    const ofDay = days.get(day) ?? new Map<string, DayOfOne>();
    days.set(day, ofDay);
    const one = ofDay.get(ring.alarm.id) ?? { alarm: ring.alarm, rings: [] };
    ofDay.set(ring.alarm.id, one);
    one.rings.push(ring);
  }
  const today = dayAt(here.zone, here.now);
  return [...days].map(([day, ofDay]) => {
    const rows = [...ofDay.values()];
    const date = calendarTime(rows[0]!.rings[0]!.at, here).replace(/ \d\d:\d\d(:\d\d)?$/, '');
    const name = day <= today ? `Today, ${date}` : day === today + 1 ? `Tomorrow, ${date}` : date;
    const left = rows.length - MOST_LISTED;
    const more = left > 0 ? html`<li class="dim">and ${left} more alarms on this day</li>` : NOTHING;
    return html`<h2>${name}</h2><ul class="ahead-list" data-list>${rows.slice(0, MOST_LISTED).map((one) => dayRow(one, here))}${more}</ul>`;
  });
}

export async function aheadScreen(visit: Visit): Promise<Page> {
  const { desk, here, reads } = visit;
  if ('missing' in desk.alarms) return { screen: 'ahead', title: 'Ahead', main: missing('Ahead', desk.alarms.missing) };
  const client = desk.alarms.there;
  const until = here.now + DAYS * DAY_MS;
  const ask = () => client.listAlarms({ sort: 'next', limit: MOST_ALARMS, until: new Date(until).toISOString() });
  const [page, budget] = await Promise.all([reads.read(`${desk.user} ahead`, ask), budgetOf(visit)]);
  const alarms: readonly AlarmView[] = page.alarms;
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
  const ahead = lookAhead({ alarms, now: here.now, until, zone: here.zone, budget, ringsOf: desk.ringsOf });
  const more =
    page.next_cursor !== undefined
      ? html`<p class="trouble">Only the first ${MOST_ALARMS} alarms are looked at here; <a href="alarms">the list</a> has all.</p>`
      : NOTHING;
  const main = html`<h1>Ahead</h1><p class="dim">The next seven days, in ${zoneWords(here)}.</p>
${costs(ahead, budget)}
<div class="chart" tabindex="0" role="group" aria-label="Timeline">${timeline(ahead, here)}</div>${more}
${byDay(ahead.rings, here)}
`;
  return { screen: 'ahead', title: 'Ahead', main, looksAt };
}

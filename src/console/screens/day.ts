/** Day: sessions, breaks and presence of the person, on their own clock (Chronometric). */
import { html } from 'hono/html';
import { formatDuration, readIsoDuration } from '../../kit/clock/duration.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { empty, missing, type Page } from '../page.ts';
import { block, type Html, NOTHING, shown } from '../shown.ts';
import type { RequestContext } from '../request-context.ts';

const DAY_MS = 86_400_000;
const length = (iso: string) => {
  const ms = readIsoDuration(iso) ?? 0;
  return ms < 60_000 ? 'less than a minute' : formatDuration(Math.round(ms / 60_000) * 60_000);
};
/** On the person's own clock, with which the instants are written. */
const clock = (instant: string) => instant.slice(11, 16);

const WIDTH = 960;

/** Presence from the beginning of the day to its end; what it shows is told below it. */
function presence({ from, to, stretches }: DayView): Html {
  const [begin, end] = [parseInstant(from) ?? 0, parseInstant(to) ?? 1];
  const xOf = (instant: string) => (((parseInstant(instant) ?? begin) - begin) / (end - begin)) * WIDTH;
  const parts = stretches.map((stretch) => {
    const x = xOf(stretch.from);
    const look = stretch.kind === 'away' ? 'away' : stretch.session_id === null ? 'active' : 'session';
    return html`<rect class="${look}" x="${x.toFixed(1)}" y="6" width="${Math.max(1, xOf(stretch.to) - x).toFixed(1)}" height="24" rx="3"/>`;
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = new Date(begin + part * (end - begin)).getTime();
    const shownAt = clock(localText(at, from));
    return html`<text x="${part * WIDTH}" y="48" text-anchor="${part === 0 ? 'start' : part === 1 ? 'end' : 'middle'}">${shownAt}</text>`;
  });
  return html`<svg class="presence" viewBox="0 0 ${WIDTH} 54" role="img" aria-label="When somebody was there, from ${clock(from)} to ${clock(to)}"><rect class="ground" x="0" y="6" width="${WIDTH}" height="24" rx="3"/>${parts}${ticks}</svg>`;
}

/** An instant with the offset that another one was written with. */
function localText(at: number, like: string): string {
  const offset = /([+-])(\d\d):(\d\d)$/.exec(like);
  const ms = offset ? (offset[1] === '-' ? -1 : 1) * (Number(offset[2]) * 60 + Number(offset[3])) * 60_000 : 0;
  return new Date(at + ms).toISOString();
}

const ENDINGS = { open: 'goes on', ended: 'ended', auto_closed: 'was left open; the next one closed it' } as const;

const session = (
  one: DayView['sessions'][number],
): Html => html`<li class="session"><p class="when">${clock(one.started_at)} – ${one.ended_at === null ? 'now' : clock(one.ended_at)} <span class="dim">${length(one.active_duration)} active, ${ENDINGS[one.ending]}</span></p>
${block(one.intent)}${one.summary === null ? NOTHING : html`<p class="dim">What came of it:</p>${block(one.summary)}`}</li>`;

function breakWords({ break: outlook }: DayView): Html {
  if (!outlook) return NOTHING;
  const words = outlook.due
    ? `A break is due: ${length(outlook.elapsed)} without one, ${outlook.threshold_minutes} minutes is your limit.`
    : `${length(outlook.elapsed)} since the last break; the next one is due in ${length(outlook.due_in ?? 'PT0S')}.`;
  return html`<p class="notice ${outlook.due ? 'bad' : ''}">${words}${outlook.protected_window_label === undefined ? NOTHING : html` (${shown(outlook.protected_window_label)})`}</p>`;
}

const other = (date: string, days: number) =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);

export async function dayScreen({ backend, query, reads }: RequestContext): Promise<Page> {
  const { day } = backend;
  if ('missing' in day)
    return { screen: 'day', title: 'Day', main: html`<h1>Day</h1>${missing('No day to show', day.missing)}` };
  const date = query.get('date') ?? undefined;
  if (date !== undefined && !/^\d{4}-\d{2}-\d{2}$/.test(date))
    throw new ReveilleError('invalid_request', 'date must be a date such as 2026-06-15');
  const view = await reads.read(`${backend.user} day ${date ?? ''}`, () => day.there(date));
  const { sessions, stretches, totals } = view;
  const move = html`<p class="pages"><a class="button" rel="prev" href="day?date=${other(view.date, -1)}">The day before</a><a class="button" rel="next" href="day?date=${other(view.date, 1)}">The day after</a><a class="button" href="day">Today</a></p>`;
  const title = html`<h1>${view.day_of_week} ${view.date}</h1><p class="dim">On your own clock, ${view.timezone}; the day begins at ${clock(view.from)}.</p>`;
  const looksAt = ['day'];
  if (sessions.length === 0 && stretches.length === 0) {
    const next = html`Chronometric keeps time while an agent runs it: <code>claude mcp add --scope user chronometric -- reveille chronometric</code>`;
    return {
      screen: 'day',
      title: 'Day',
      looksAt,
      main: html`${title}${empty('Nothing is recorded for this day', next)}${move}`,
    };
  }
  const main = html`${title}${breakWords(view)}
<div class="chart" tabindex="0" role="group" aria-label="Presence">${presence(view)}</div>
<ul class="figures"><li><strong>${length(totals.active_duration)}</strong> active</li><li><strong>${length(totals.active_in_sessions_duration)}</strong> of it in sessions</li><li><strong>${length(totals.away_duration)}</strong> away</li><li><strong>${totals.sessions}</strong> sessions</li></ul>
<h2>Sessions</h2>${sessions.length === 0 ? html`<p class="dim">No session was marked.</p>` : html`<ol class="sessions">${sessions.map(session)}</ol>`}
${view.forgotten_session ? html`<p class="trouble">A session of another day is still open: ${shown(view.forgotten_session.intent)}</p>` : NOTHING}
${view.profile_unreadable === undefined ? NOTHING : html`<p class="trouble">Shown without your profile: ${shown(view.profile_unreadable)}</p>`}
${move}`;
  return { screen: 'day', title: 'Day', main, looksAt };
}

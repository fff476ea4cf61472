/** Day: sessions, breaks and presence of the user on the local clock (Chronometric). */
import { html } from 'hono/html';
import { formatDuration } from '../../kit/clock/duration.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { readIsoDuration } from '../../wire/iso-duration.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { empty, missing, type Page, pageHead } from '../page.ts';
import type { RequestContext } from '../request-context.ts';
import { block, type Html, NOTHING, shown } from '../shown.ts';

const DAY_MS = 86_400_000;
const length = (iso: string) => {
  const ms = readIsoDuration(iso) ?? 0;
  return ms < 60_000 ? 'less than a minute' : formatDuration(Math.round(ms / 60_000) * 60_000);
};
/** The local time of the user, in which the instants are written. */
const clock = (instant: string) => instant.slice(11, 16);

const WIDTH = 960;

/** Presence from the start of the day to its end. The figures below have the same as text. */
function presence({ from, to, stretches }: DayView): Html {
  const [begin, end] = [parseInstant(from) ?? 0, parseInstant(to) ?? 1];
  const xOf = (instant: string) => (((parseInstant(instant) ?? begin) - begin) / (end - begin)) * WIDTH;
  const parts = stretches.map((stretch) => {
    const x = xOf(stretch.from);
    const style = stretch.kind === 'away' ? 'away' : stretch.session_id === null ? 'active' : 'session';
    return html`<rect class="${style}" x="${x.toFixed(1)}" y="0" width="${Math.max(1, xOf(stretch.to) - x).toFixed(1)}" height="24"/>`;
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = new Date(begin + part * (end - begin)).getTime();
    const shownAt = clock(localText(at, from));
    return html`<span>${shownAt}</span>`;
  });
  return html`<svg class="presence" viewBox="0 0 ${WIDTH} 24" height="24" preserveAspectRatio="none" role="img" aria-label="Presence from ${clock(from)} to ${clock(to)}"><rect class="ground" x="0" y="0" width="${WIDTH}" height="24"/>${parts}</svg><div class="hours" aria-hidden="true">${ticks}</div>`;
}

/** An instant with the offset that another one was written with. */
function localText(at: number, like: string): string {
  const offset = /([+-])(\d\d):(\d\d)$/.exec(like);
  const ms = offset ? (offset[1] === '-' ? -1 : 1) * (Number(offset[2]) * 60 + Number(offset[3])) * 60_000 : 0;
  return new Date(at + ms).toISOString();
}

const ENDINGS = { open: 'open', ended: 'ended', auto_closed: 'left open; the next session closed it' } as const;

const session = (
  one: DayView['sessions'][number],
): Html => html`<li class="session"><p class="when">${clock(one.started_at)} – ${one.ended_at === null ? 'now' : clock(one.ended_at)} <span class="dim">${length(one.active_duration)} active, ${ENDINGS[one.ending]}</span></p>
${block(one.intent)}${one.summary === null ? NOTHING : html`<p class="dim">Result:</p>${block(one.summary)}`}</li>`;

function breakNotice({ break: state }: DayView): Html {
  if (!state) return NOTHING;
  const text = state.due
    ? `A break is due: ${length(state.elapsed)} since the last one. Your limit is ${state.threshold_minutes} minutes.`
    : `Last break: ${length(state.elapsed)} ago. The next one is due in ${length(state.due_in ?? 'PT0S')}.`;
  return html`<p class="notice ${state.due ? 'bad' : 'calm'}">${text}${state.protected_window_label === undefined ? NOTHING : html` (${shown(state.protected_window_label)})`}</p>`;
}

const shifted = (date: string, days: number) =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);

export async function dayScreen({ backend, query, reads }: RequestContext): Promise<Page> {
  const { day } = backend;
  if ('missing' in day)
    return {
      screen: 'day',
      title: 'Day',
      main: html`${pageHead('Day')}${missing('Chronometric is not available', day.missing)}`,
    };
  const date = query.get('date') ?? undefined;
  if (date !== undefined && !/^\d{4}-\d{2}-\d{2}$/.test(date))
    throw new ReveilleError('invalid_request', `date must be a date such as 2026-06-15 (got "${date}")`);
  const view = await reads.read(`${backend.user} day ${date ?? ''}`, () => day.there(date));
  const { sessions, stretches, totals } = view;
  const move = html`<a class="button" rel="prev" href="day?date=${shifted(view.date, -1)}">Previous</a><a class="button" href="day">Today</a><a class="button" rel="next" href="day?date=${shifted(view.date, 1)}">Next</a>`;
  const title = pageHead(
    `Day: ${view.day_of_week} ${view.date}`,
    `In ${view.timezone}. The day starts at ${clock(view.from)}.`,
    move,
  );
  const looksAt = ['day'];
  if (sessions.length === 0 && stretches.length === 0) {
    const next = html`An agent with the Chronometric server records the day. To add it: <code>claude mcp add --scope user chronometric -- reveille chronometric</code>`;
    return {
      screen: 'day',
      title: 'Day',
      looksAt,
      main: html`${title}${empty('Nothing is recorded for this day', next)}`,
    };
  }
  const main = html`${title}${breakNotice(view)}
<ul class="figures"><li><strong>${length(totals.active_duration)}</strong> active</li><li><strong>${length(totals.active_in_sessions_duration)}</strong> in sessions</li><li><strong>${length(totals.away_duration)}</strong> away</li><li><strong>${totals.sessions}</strong> sessions</li></ul>
<div class="chart">${presence(view)}</div>
<h2>Sessions</h2>${sessions.length === 0 ? html`<p class="dim">No session was recorded.</p>` : html`<ol class="sessions">${sessions.map(session)}</ol>`}
${view.forgotten_session ? html`<p class="trouble">A session of another day is still open: ${shown(view.forgotten_session.intent)}</p>` : NOTHING}
${view.profile_unreadable === undefined ? NOTHING : html`<p class="trouble">Your profile is not used: ${shown(view.profile_unreadable)}</p>`}`;
  return { screen: 'day', title: 'Day', main, looksAt };
}

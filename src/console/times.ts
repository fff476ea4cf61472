/** Times on a page: instants in one zone that the page names, and how times in plain language are read. */
import { html } from 'hono/html';
import { calendarTime, fromNow, type LocalContext, zoneName } from '../kit/clock/local-time.ts';
import { isZone } from '../kit/clock/zone.ts';
import { readPhrase } from '../kit/phrase/phrase.ts';
import { PhraseError, type PhraseHours, type Reading } from '../kit/phrase/reading.ts';
import { repetitionText } from '../kit/phrase/reading-text.ts';
import { usesWallClock } from '../kit/phrase/series-text.ts';
import { ReveilleError } from '../wire/errors.ts';
import { formatInstant, parseInstant } from '../wire/rfc3339.ts';
import type { ConsoleBackend } from './backend.ts';
import { type Html, NOTHING, shown } from './shown.ts';

/** Distances from a minute on have no seconds. */
function roughly(at: number, now: number): string {
  const distance = Math.abs(at - now);
  if (distance < 60_000) return fromNow(Math.round(at / 1000) * 1000, Math.round(now / 1000) * 1000);
  return fromNow(at, now);
}

/** `Mon 23 Nov 09:00 · in 3 h`; the exact instant is in the `datetime`. */
export function time(at: number | string, here: LocalContext): Html {
  const epochMs = typeof at === 'string' ? (parseInstant(at) ?? Number.NaN) : at;
  if (Number.isNaN(epochMs)) return html`${String(at)}`;
  const exact = formatInstant(epochMs);
  return html`<time datetime="${exact}" title="${exact}">${calendarTime(epochMs, here)} <span class="rel" data-at="${epochMs}">${roughly(epochMs, here.now)}</span></time>`;
}

/** The distance alone, for a column of its own; the script keeps it current. */
export const relative = (epochMs: number, here: LocalContext): Html =>
  html`<span class="rel" data-at="${epochMs}">${roughly(epochMs, here.now)}</span>`;

/** The absolute time alone. */
export function absolute(epochMs: number, here: LocalContext): Html {
  return html`<time datetime="${formatInstant(epochMs)}">${calendarTime(epochMs, here)}</time>`;
}

/** `Europe/Berlin (CET)`. */
export function zoneText({ now, zone }: LocalContext): string {
  const short = zoneName(now, zone);
  return short === zone ? zone : `${zone} (${short})`;
}

export type { LocalContext };

const FIRES_SHOWN = 3;

/** Where and when a time is typed, with the hours that it may leave open. */
export type TypedContext = LocalContext & { readonly hours?: PhraseHours | undefined };

/** @throws PhraseError for unreadable or ambiguous text; ReveilleError `invalid_request` for an unknown zone */
export function readTyped(when: string, zone: string | undefined, here: TypedContext): Reading {
  const chosen = zone ?? here.zone;
  if (!isZone(chosen))
    throw new ReveilleError(
      'invalid_request',
      `zone must be an IANA time zone such as Europe/Berlin (got "${chosen}")`,
    );
  return readPhrase(when, { now: here.now, zone: chosen, hours: here.hours });
}

/** What a reading fires, by the schedule engine of a backend. */
export type Engine = Pick<ConsoleBackend, 'ringsOf' | 'readCalendars'>;

/**
 * The instants of a reading; of a series, the next ones.
 *
 * @param holidays the calendar whose days are excluded
 */
export async function firesRead(
  reading: Reading,
  { ringsOf, readCalendars }: Engine,
  { now }: LocalContext,
  holidays?: string,
): Promise<readonly number[]> {
  switch (reading.kind) {
    case 'instant':
      return [reading.at];
    case 'delay':
      return [now + reading.seconds * 1000];
    case 'series':
      await readCalendars?.([{ holidays, timezone: reading.zone }]);
      return ringsOf({ ...reading, holidays, after: now, until: Number.MAX_SAFE_INTEGER, atMost: FIRES_SHOWN });
  }
}

/** The reading as members of the chronosd API. */
export function scheduleOf(reading: Reading) {
  if (reading.kind === 'delay') return { delay_seconds: reading.seconds };
  if (reading.kind === 'instant') return { fire_at: formatInstant(reading.at) };
  if (reading.rrule !== undefined) return { rrule: reading.rrule, timezone: reading.zone };
  return { cron_expr: reading.cron, ...(usesWallClock(reading.cron) ? { timezone: reading.zone } : {}) };
}

/** The next fires with the zone in which the text was read, the rhythm of a series, and what the text left open. */
export async function echo(reading: Reading, engine: Engine, here: LocalContext, holidays?: string): Promise<Html> {
  const zone = reading.kind === 'delay' ? here.zone : reading.zone;
  const [first, ...then] = await firesRead(reading, engine, here, holidays);
  if (first === undefined) return html`<p class="reading bad" role="alert">This schedule never fires.</p>`;
  const textOf = (at: number) => calendarTime(at, { now: here.now, zone });
  const rhythm = reading.kind === 'series' ? html`. Repeats ${shown(repetitionText(reading))}` : NOTHING;
  const assumed = reading.kind === 'delay' ? undefined : reading.assumed;
  const why = assumed === undefined ? NOTHING : html` <span class="assumed">(${assumed})</span>`;
  return html`<p class="reading" role="status">Fires <strong>${textOf(first)}</strong> ${fromNow(first, here.now)}${then.map((at) => html`, then <strong>${textOf(at)}</strong>`)} <span class="dim">${zone}</span>${rhythm}${why}</p>`;
}

/** Why the text is not read, with buttons for the possible readings. */
export function refusal(thrown: unknown): Html {
  if (thrown instanceof PhraseError) {
    const choices = thrown.choices.map(
      (choice) => html`<li><button type="button" class="choice" data-fill="when">${choice}</button></li>`,
    );
    return html`<div class="reading bad" role="alert"><p>${shown(thrown.problem)}${choices.length > 0 ? '. Choose one:' : ''}</p>${choices.length > 0 ? html`<ul class="choices">${choices}</ul>` : ''}</div>`;
  }
  if (thrown instanceof ReveilleError) return html`<p class="reading bad" role="alert">${shown(thrown.message)}</p>`;
  throw thrown;
}

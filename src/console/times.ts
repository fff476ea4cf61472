/** Instants on a page: absolute and relative, in one zone that the page names. */
import { html } from 'hono/html';
import { calendarTime, fromNow, type LocalContext, zoneName } from '../kit/clock/local-time.ts';
import { formatInstant, parseInstant } from '../wire/rfc3339.ts';
import type { Html } from './shown.ts';

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

/**
 * When a session was last seen, which is when a forgotten one ended. A tool call is a sighting; heartbeats carry it on, until a real
 * break or the end of the logical day. Pure; instants are epoch milliseconds.
 */
import { type ActiveSpan, REAL_BREAK_MS } from './state.ts';

/** The last call, and when the logical day in which it was made ends. */
export type LastCall = { readonly at: number; readonly dayEnd: number };

/** Until when the person stayed without a real break, from the last call on. */
function stayedUntil(call: LastCall, spans: Iterable<ActiveSpan>, now: number): number {
  let until = Math.min(call.at, now);
  for (const { from, to } of spans) {
    if (to <= until) continue;
    if (from - until >= REAL_BREAK_MS || from > now) break;
    until = Math.min(to, now);
  }
  return until;
}

/**
 * @param spans in order
 * @returns no later than `now`; no earlier than the call, unless that lies in a future which a clock that stepped back has yet to reach
 */
export function lastSeen(call: LastCall, spans: Iterable<ActiveSpan>, now: number): number {
  return Math.min(stayedUntil(call, spans, now), call.dayEnd);
}

/**
 * Whether a tool call at `now` is a sighting of a session that was open at the last one. After a break it is; after a night it is
 * not: who forgot a session in the evening did not work on it until the first call of the next morning. Who worked through the
 * end of the logical day did.
 */
export function carriesOn(call: LastCall, spans: Iterable<ActiveSpan>, now: number): boolean {
  return now < call.dayEnd || now - stayedUntil(call, spans, now) < REAL_BREAK_MS;
}

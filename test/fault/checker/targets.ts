/** The due times of a definition, by the oracle: no code is shared with the product. Pure. */
import { oracleOf } from '../../contract/cron-oracle/oracle.ts';
import { type WallDays, wallDaysOf } from '../../contract/cron-oracle/wall-days.ts';
import type { Definition } from './history.ts';
import type { Window } from './matching.ts';

/** One time of a schedule. The occurrence may be set for any time from `at` up to `spreadMs` later (jitter). */
export type Target = { at: number; spreadMs: number };

const wallClocks = new Map<string, WallDays>();

function wallClockOf(timezone: string): WallDays {
  const known = wallClocks.get(timezone) ?? wallDaysOf(timezone);
  wallClocks.set(timezone, known);
  return known;
}

const UNIT_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  h: 3.6e12,
};

/** The interval of `@every 1h30m` in milliseconds; `undefined` for any other expression. */
function everyMs(expression: string): number | undefined {
  const duration = /^\s*@every\s+\+?(\S+)\s*$/i.exec(expression)?.[1];
  if (duration === undefined) return undefined;
  let nanoseconds = 0;
  for (const [, amount, unit] of duration.matchAll(/([\d.]+)([a-zµμ]+)/g))
    nanoseconds += Number(amount) * UNIT_NS[unit!]!;
  return Math.round(nanoseconds / 1e6);
}

/** The times of an expression in `(anchor, until]`. */
function instantsOf(expression: string, timezone: string, anchor: number, until: number): number[] {
  const interval = everyMs(expression);
  if (interval === undefined) {
    const text = expression.trim();
    const known = text.startsWith('@') ? text.toLowerCase() : text;
    return oracleOf(known, wallClockOf(timezone)).between(anchor, until);
  }
  const count = Math.max(0, Math.floor((until - anchor) / interval));
  return Array.from({ length: count }, (_, index) => anchor + (index + 1) * interval);
}

/**
 * The targets of a definition up to a time, in order.
 *
 * @param anchor when the alarm was created, by the database's clock: a series begins strictly after it
 */
export function targetsOf(definition: Definition, anchor: number, until: number): Target[] {
  const jitterMs = (definition.jitterSeconds ?? 0) * 1000;
  if (definition.kind === 'once') {
    const at = definition.fireAt ?? anchor + Math.round((definition.delaySeconds ?? 0) * 1000);
    return [{ at, spreadMs: jitterMs }];
  }
  const last = Math.min(until, definition.endsAt ?? Number.POSITIVE_INFINITY);
  const instants = instantsOf(definition.expression ?? '', definition.timezone ?? 'UTC', anchor, last);
  return instants.map((at, index) => {
    // Jitter never moves an occurrence past the next one.
    const gap = (instants[index + 1] ?? Number.POSITIVE_INFINITY) - at;
    return { at, spreadMs: Math.min(jitterMs, gap) };
  });
}

/**
 * Whether a definition names a time, jitter included, if it is counted from some moment within a span. An edit restarts
 * a schedule at a moment that only chronosd knows exactly.
 */
export function names(definition: Definition, anchor: Window, instant: number): boolean {
  const jitterMs = (definition.jitterSeconds ?? 0) * 1000;
  const interval = definition.kind === 'cron' ? everyMs(definition.expression ?? '') : undefined;
  if (definition.kind === 'once' && definition.delaySeconds !== null) {
    const delayMs = Math.round(definition.delaySeconds * 1000);
    return instant >= anchor.from + delayMs && instant <= anchor.until + delayMs + jitterMs;
  }
  if (interval !== undefined) {
    // A whole number of intervals, at least one, is between the anchor and the time before its jitter.
    const most = Math.floor((instant - anchor.from) / interval);
    return most >= 1 && instant - jitterMs - most * interval <= anchor.until;
  }
  const [first] = targetsOf(definition, definition.kind === 'once' ? 0 : instant - jitterMs - 1, instant);
  return first !== undefined && first.at <= instant && instant - first.at <= jitterMs;
}

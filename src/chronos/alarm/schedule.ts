/** When an alarm fires: the schedule interface for the rest of chronos. Pure; instants are epoch milliseconds. */

import { zoneOf } from '../../kit/clock/zone.ts';
import { parseCron } from './cron.ts';
import { isEvery, parseEvery } from './every.ts';
import { cronOccurrences, LAST_INSTANT, type Schedule } from './occurrence.ts';
import { compileRecurrence } from './rrule.ts';

/** A compiled expression in a zone, before its anchor is known. */
type Compiled = (anchorMs: number) => Schedule;

const CACHE_SIZE = 2_000;

/** Compiled expressions and rules, the least recently used first. */
const compiled = new Map<string, Compiled>();

function cached(key: string, compile: () => Compiled): Compiled {
  let schedule = compiled.get(key);
  if (schedule) compiled.delete(key);
  else schedule = compile();
  compiled.set(key, schedule);
  if (compiled.size > CACHE_SIZE) compiled.delete(compiled.keys().next().value!);
  return schedule;
}

/**
 * Parses and checks a cron expression in a zone. The last 2,000 results are cached, so it is cheap enough for the hot
 * path.
 *
 * @param cronExpr five fields, a descriptor such as `@daily`, or `@every <duration>`
 * @param timezone an IANA zone
 * @param anchorMs start of an `@every` series: its occurrences are `anchorMs + k·interval`, k ≥ 1; cron expressions
 *   ignore it
 * @throws ReveilleError `invalid_request` that names cron_expr or timezone, the value and the remedy
 */
export function compileSchedule(cronExpr: string, timezone: string, anchorMs: number): Schedule {
  // No zone or expression contains a line break, so the key is unambiguous.
  return cached(`${timezone}\n${cronExpr}`, () => compile(cronExpr, timezone))(anchorMs);
}

/**
 * Parses and checks recurrence rules in a zone, with the same cache.
 *
 * @param rrule content lines of RFC 5545: RRULE, DTSTART, RDATE, EXDATE
 * @param anchorMs where the rules begin without DTSTART
 * @throws ReveilleError `invalid_request` that names rrule or timezone, the value and the remedy
 */
export function compileRule(rrule: string, timezone: string, anchorMs: number): Schedule {
  const key = `${timezone}\n${anchorMs}\n${rrule}`;
  return cached(key, () => {
    const schedule = compileRecurrence(rrule, timezone, anchorMs);
    return () => schedule;
  })(anchorMs);
}

function compile(cronExpr: string, timezone: string): Compiled {
  const zone = zoneOf(timezone);
  if (isEvery(cronExpr)) {
    const intervalMs = parseEvery(cronExpr);
    return (anchorMs) => everyInterval(intervalMs, anchorMs);
  }
  const occurrences = cronOccurrences(parseCron(cronExpr), zone);
  return () => occurrences;
}

/** The series `anchorMs + k·intervalMs`, k ≥ 1. */
function everyInterval(intervalMs: number, anchorMs: number): Schedule {
  /** The number of occurrences up to an instant. */
  const countUntil = (instant: number) => Math.max(0, Math.floor((instant - anchorMs) / intervalMs));
  return {
    next(after) {
      const instant = anchorMs + (countUntil(after) + 1) * intervalMs;
      return instant <= LAST_INSTANT ? instant : undefined;
    },
    latest(after, now) {
      const last = countUntil(now);
      const count = last - countUntil(after);
      return count > 0 ? { at: anchorMs + last * intervalMs, count } : undefined;
    },
    shortestIntervalMs: intervalMs,
  };
}

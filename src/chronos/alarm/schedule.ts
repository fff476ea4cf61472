/**
 * When an alarm rings: the one question every other part of chronos asks of a schedule. Pure; instants are epoch
 * milliseconds.
 */

import { zoneOf } from '../../kit/clock/zone.ts';
import { parseCron } from './cron.ts';
import type { CronSchedule } from './cron-schedule.ts';
import { isEvery, parseEvery } from './every.ts';
import { cronOccurrences, LAST_INSTANT } from './occurrence.ts';

/** What an expression in a zone means before an anchor is known. */
type Compiled = (anchorMs: number) => CronSchedule;

const CACHE_SIZE = 2_000;

/** Compiled expressions, the least recently used first. */
const compiled = new Map<string, Compiled>();

/**
 * Parses and checks a cron expression in a zone. The last 2,000 are kept, so this may stand on the hot path.
 *
 * @param cronExpr five fields, a descriptor such as `@daily`, or `@every <duration>`
 * @param timezone an IANA zone
 * @param anchorMs where an `@every` series starts counting: its occurrences are `anchorMs + k·interval`, k ≥ 1; cron
 *   expressions ignore it
 * @throws ReveilleError `invalid_request` that names cron_expr or timezone, the value and the remedy
 */
export function compileSchedule(cronExpr: string, timezone: string, anchorMs: number): CronSchedule {
  // No zone and no expression holds a line break, so the key of two valid ones is unambiguous.
  const key = `${timezone}\n${cronExpr}`;
  let schedule = compiled.get(key);
  if (schedule) compiled.delete(key);
  else schedule = compile(cronExpr, timezone);
  compiled.set(key, schedule);
  if (compiled.size > CACHE_SIZE) compiled.delete(compiled.keys().next().value!);
  return schedule(anchorMs);
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
function everyInterval(intervalMs: number, anchorMs: number): CronSchedule {
  /** How many occurrences there were up to an instant. */
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

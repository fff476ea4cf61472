/** Whether a wake may go now, by its user's budget; and if not, when, and for which reason. Pure. */

import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import type { Budget } from '../../wire/budget.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { type Breaker, pausedUntil } from './breaker.ts';
import { earliestFree, type Limit, limitsOf, type Taken } from './slots.ts';

/** What is known of a user when a wake arrives. */
export type Situation = {
  /** Epoch milliseconds. */
  now: number;
  /** Wakes that count, and places that were promised to others, ascending. */
  taken: readonly Taken[];
  breaker: Breaker;
  /** How long one try at starting the machine takes at most. */
  probeMs: number;
  urgent: boolean;
};

/** `place`: the hold is a place among the others, to be kept for this wake. */
export type Verdict = { go: true } | { go: false; until: number; reason: string; place: boolean };

/** Quiet hours and limits are asked in turn until both agree. They always do: quiet hours leave some minutes of most days. */
const ROUNDS = 1000;

/** The first instant from `from` on that is not quiet and has room. */
function earliestAllowed(budget: Budget, limits: readonly Limit[], { taken, urgent }: Situation, from: number): number {
  let at = from;
  for (let round = 0; round < ROUNDS; round++) {
    const loud = budget.quiet && !urgent ? (quietUntil(budget.quiet, at) ?? at) : at;
    const free = earliestFree(taken, limits, loud).at;
    if (free === at) return at;
    at = free;
  }
  return at;
}

const times = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

function limitReason({ name, count, spanMs }: Limit, until: number): string {
  const next = `this one may go at ${formatInstant(until)}`;
  if (name === 'gap')
    return `this user's budget leaves at least ${times(spanMs / 1000, 'second')} between two wakes; ${next}`;
  const span = name === 'hour' ? 'hour' : '24 hours';
  return `${times(count, 'wake')} in the last ${span} ${count === 1 ? 'is' : 'are'} this user's budget; ${next}`;
}

/**
 * Judges a wake.
 *
 * @returns `go`, or until when it is held back: first because the machine does not start, then because it is quiet, then because
 *   there have been enough
 */
export function judge(budget: Budget, situation: Situation): Verdict {
  const { now, breaker, probeMs, taken, urgent } = situation;
  const paused = budget.breaker && pausedUntil(breaker, budget.breaker, now, probeMs);
  if (paused !== undefined) {
    const reason = `the machine failed to start ${times(breaker.failures, 'time')} in a row (last: ${breaker.lastError}); tried again at ${formatInstant(paused)}`;
    return { go: false, until: paused, reason, place: false };
  }
  const limits = limitsOf(budget);
  const until = earliestAllowed(budget, limits, situation, now);
  if (until === now) return { go: true };
  const place = limits.length > 0;
  const quiet = budget.quiet && !urgent ? quietUntil(budget.quiet, now) : undefined;
  if (quiet !== undefined) {
    const { to, timezone } = budget.quiet!;
    const turn = until === quiet ? '' : `; by the rest of the budget this one may go at ${formatInstant(until)}`;
    return { go: false, until, reason: `quiet hours of this user until ${to} ${timezone}${turn}`, place };
  }
  const { limit } = earliestFree(taken, limits, now);
  return { go: false, until, reason: limitReason(limit!, until), place };
}

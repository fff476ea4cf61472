/**
 * The breaker of one machine: after so many failed starts in a row nothing is tried for a while, then one wake tries
 * for all. Pure.
 */
import { BREAKER_LONGEST_PAUSE_SECONDS, BREAKER_PAUSE_SECONDS, type BreakerRule } from '../../wire/budget.ts';

export type Breaker = {
  /** In a row. Starts that failed together count as one. */
  readonly failures: number;
  readonly lastError: string;
  /** The present pause, and when it ends, epoch milliseconds; 0 while there was none. */
  readonly pauseMs: number;
  readonly pausedUntil: number;
  /** A wake tries the machine for all others. */
  readonly probing: boolean;
};

export const CLOSED: Breaker = { failures: 0, lastError: '', pauseMs: 0, pausedUntil: 0, probing: false };

const isOpen = ({ failures }: Breaker, rule: BreakerRule) => failures >= rule.failures;

/**
 * Whether a wake may try the machine.
 *
 * @param probeMs how long a try takes at most
 * @returns when it may come again; `undefined` when it may go now
 */
export function pausedUntil(breaker: Breaker, rule: BreakerRule, now: number, probeMs: number): number | undefined {
  if (!isOpen(breaker, rule)) return undefined;
  // A clock that was put back must not make a pause longer than it is.
  const until = Math.min(breaker.pausedUntil, now + breaker.pauseMs);
  if (now < until) return until;
  return breaker.probing ? now + probeMs : undefined;
}

/** A wake goes; while the breaker is open it is the one that tries for all. */
export function trying(breaker: Breaker, rule: BreakerRule): Breaker {
  return isOpen(breaker, rule) ? { ...breaker, probing: true } : breaker;
}

/** The start failed; with the last failure that the rule allows, and with each one after it, a pause begins. */
export function failed(breaker: Breaker, rule: BreakerRule, now: number, error: string): Breaker {
  const failures = breaker.failures + 1;
  const counted = { ...breaker, failures, lastError: error, probing: false };
  if (failures < rule.failures) return counted;
  const first = (rule.pause_seconds ?? BREAKER_PAUSE_SECONDS) * 1000;
  const pauseMs = breaker.pauseMs === 0 ? first : Math.min(breaker.pauseMs * 2, BREAKER_LONGEST_PAUSE_SECONDS * 1000);
  return { ...counted, pauseMs, pausedUntil: now + pauseMs };
}

/** The wake that tried ended before the machine could show whether it starts. */
export function undecided(breaker: Breaker): Breaker {
  return breaker.probing ? { ...breaker, probing: false } : breaker;
}

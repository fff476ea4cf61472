/**
 * The circuit breaker of one machine. After several failed starts in a row it pauses wakes, then one wake probes the
 * machine. Pure.
 */
import { BREAKER_LONGEST_PAUSE_SECONDS, BREAKER_PAUSE_SECONDS, type BreakerRule } from '../../wire/budget.ts';

export type Breaker = {
  /** Consecutive failures. Starts that failed together count as one. */
  readonly failures: number;
  readonly lastError: string;
  /** The current pause and its end, epoch milliseconds; 0 without a pause so far. */
  readonly pauseMs: number;
  readonly pausedUntil: number;
  /** Whether one wake probes the machine. */
  readonly probing: boolean;
};

export const CLOSED: Breaker = { failures: 0, lastError: '', pauseMs: 0, pausedUntil: 0, probing: false };

const isOpen = ({ failures }: Breaker, rule: BreakerRule) => failures >= rule.failures;

/**
 * Whether a wake may start the machine.
 *
 * @param probeMs the longest duration of a probe
 * @returns when the wake may be repeated; `undefined` when it may go now
 */
export function pausedUntil(breaker: Breaker, rule: BreakerRule, now: number, probeMs: number): number | undefined {
  if (!isOpen(breaker, rule)) return undefined;
  // A clock that was set back must not lengthen a pause.
  const until = Math.min(breaker.pausedUntil, now + breaker.pauseMs);
  if (now < until) return until;
  return breaker.probing ? now + probeMs : undefined;
}

/** A wake goes. While the breaker is open, it is the probe. */
export function trying(breaker: Breaker, rule: BreakerRule): Breaker {
  return isOpen(breaker, rule) ? { ...breaker, probing: true } : breaker;
}

/** The start failed. The last allowed failure and each later one begin a pause. */
export function failed(breaker: Breaker, rule: BreakerRule, now: number, error: string): Breaker {
  const failures = breaker.failures + 1;
  const counted = { ...breaker, failures, lastError: error, probing: false };
  if (failures < rule.failures) return counted;
  const first = (rule.pause_seconds ?? BREAKER_PAUSE_SECONDS) * 1000;
  const pauseMs = breaker.pauseMs === 0 ? first : Math.min(breaker.pauseMs * 2, BREAKER_LONGEST_PAUSE_SECONDS * 1000);
  return { ...counted, pauseMs, pausedUntil: now + pauseMs };
}

/** The probe ended before the machine could show whether it starts. */
export function undecided(breaker: Breaker): Breaker {
  return breaker.probing ? { ...breaker, probing: false } : breaker;
}

/**
 * One user's account: the wakes that count, the places that were promised, the breaker. In memory; nothing here waits.
 */

import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import type { Budget } from '../../wire/budget.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { type Breaker, CLOSED, failed, pausedUntil, trying, undecided } from './breaker.ts';
import { earliestFree, type Limit, LONGEST_SPAN_MS, limitsOf, type Taken } from './slots.ts';
import type { CountedWake } from './wake-records.ts';

/** Who comes this much after the instant they were promised pushes nobody behind them back. */
const SLACK_MS = 500;
/** A place that nobody has come for is given up after this long. */
const PROMISE_MS = 120_000;
/** Beyond so many places in line, those who come later are told the last one's instant. */
const LONGEST_LINE = 1000;

/** A wake as an account sees it. */
export type Caller = { fireId: string; urgent: boolean; now: number; probeMs: number };

export class Account {
  /** By fire id, the instants at which they were let in. */
  readonly #counted: Map<string, number>;
  /** By fire id, the instants at which they may come back. */
  readonly #promised = new Map<string, number>();
  #breaker: Breaker = CLOSED;
  /** How many failures have been counted: wakes that were let in before the last one failed together with it. */
  #failures = 0;

  constructor(counted: readonly CountedWake[]) {
    this.#counted = new Map(counted.map(({ fireId, at }) => [fireId, at]));
  }

  /** Whether this fire was let in before and may have been accepted. */
  counts(fireId: string): boolean {
    return this.#counted.has(fireId);
  }

  /** Nothing that would be missed. */
  get isEmpty(): boolean {
    return this.#counted.size === 0 && this.#promised.size === 0 && this.#breaker === CLOSED;
  }

  /**
   * Judges a wake: one that may go is counted from here on, one that may not keeps the place that it was told. What
   * counts already goes without another count and at any time, for it may be under way; only the breaker holds it.
   */
  ask(budget: Budget, { fireId, urgent, now, probeMs }: Caller): Verdict {
    this.forgetBefore(now);
    const known = this.#counted.has(fireId);
    const place = this.#promised.get(fireId);
    this.#promised.delete(fireId);
    const returns = place !== undefined && place <= now;
    const taken = this.#taken(returns ? place : Number.POSITIVE_INFINITY);
    const breakerAlone: Budget = budget.breaker ? { breaker: budget.breaker } : {};
    const rules = known ? breakerAlone : budget;
    const verdict = judge(rules, { now, taken, breaker: this.#breaker, probeMs, urgent });
    if (verdict.go) {
      if (budget.breaker) this.#breaker = trying(this.#breaker, budget.breaker);
      if (!known) this.#counted.set(fireId, now);
    } else if (verdict.place && this.#promised.size < LONGEST_LINE) {
      this.#promised.set(fireId, verdict.until);
    }
    return verdict;
  }

  /**
   * @param before only places before this instant. Who comes back at their time, however late, goes ahead of those who
   *   were promised a
   *   later one; otherwise people who are always late would send each other to the end of the line for ever
   */
  #taken(before: number): Taken[] {
    const counted = [...this.#counted.values()].map((at) => ({ at, latest: at }));
    const ahead = [...this.#promised.values()].filter((at) => at < before);
    const promised = ahead.map((at) => ({ at, latest: at + SLACK_MS }));
    return [...counted, ...promised].sort((one, other) => one.at - other.at);
  }

  /** The fire was not accepted after all. */
  uncount(fireId: string): void {
    this.#counted.delete(fireId);
  }

  /** How many failures there have been; handed to {@link startFailed} by a wake that was let in now. */
  get failures(): number {
    return this.#failures;
  }

  started(): void {
    this.#breaker = CLOSED;
  }

  /**
   * The machine is another one now: what it failed at before, and what is still under way with it, says nothing about
   * it.
   */
  machineChanged(): void {
    this.#failures++;
    this.#breaker = CLOSED;
  }

  /** @param since {@link failures} when the wake was let in */
  startFailed(budget: Budget, { since, now, error }: { since: number; now: number; error: string }): void {
    if (!budget.breaker || since !== this.#failures) return;
    this.#failures++;
    this.#breaker = failed(this.#breaker, budget.breaker, now, error);
  }

  /** @param since {@link failures} when the wake was let in */
  undecided(since: number): void {
    if (since === this.#failures) this.#breaker = undecided(this.#breaker);
  }

  /** Forgets what no limit looks at any more, and places that nobody came for. */
  forgetBefore(now: number): void {
    for (const [fireId, at] of this.#counted) if (at <= now - LONGEST_SPAN_MS) this.#counted.delete(fireId);
    for (const [fireId, at] of this.#promised) if (at <= now - PROMISE_MS) this.#promised.delete(fireId);
  }
}

/** What is known of a user when a wake arrives. */
type Situation = {
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

/**
 * Quiet hours and limits are asked in turn until both agree. They always do: quiet hours leave some minutes of most
 * days.
 */
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
 * @returns `go`, or until when it is held back: first because the machine does not start, then because it is quiet,
 *   then because
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

/** A wake that was let in by nothing but time: 429 with the instant at which it may come again. */
export class HeldBack extends ReveilleError {
  /** Epoch milliseconds. */
  readonly until: number;

  constructor(why: string, until: number, now: number) {
    super('rate_limited', `held back: ${why}`, { retryAfterSeconds: Math.max(1, Math.ceil((until - now) / 1000)) });
    this.until = until;
  }
}

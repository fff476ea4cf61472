/** One user's account: the wakes that count, the places that were promised, the breaker. In memory; nothing here waits. */
import type { Budget } from '../../wire/budget.ts';
import { type Breaker, CLOSED, failed, trying, undecided } from './breaker.ts';
import { LONGEST_SPAN_MS, type Taken } from './slots.ts';
import { judge, type Verdict } from './verdict.ts';
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
   * Judges a wake: one that may go is counted from here on, one that may not keeps the place that it was told. What counts already
   * goes without another count and at any time, for it may be under way; only the breaker holds it.
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
   * @param before only places before this instant. Who comes back at their time, however late, goes ahead of those who were promised a
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

  /** The machine is another one now: what it failed at before, and what is still under way with it, says nothing about it. */
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

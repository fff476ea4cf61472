/**
 * The budget account of one user: counted wakes, promised times and the circuit breaker. It is in memory, and no call
 * waits.
 */
import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import {
  BREAKER_LONGEST_PAUSE_SECONDS,
  BREAKER_PAUSE_SECONDS,
  type BreakerRule,
  type Budget,
} from '../../wire/budget.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { USAGE_FIRES_MAX } from '../../wire/usage.ts';
import { earliestFree, type Limit, LONGEST_SPAN_MS, limitsOf, type Taken } from './slots.ts';
import { type CountedTurn, limitsSpending, REMEMBERED_MS, type Settled, spendingDeferral } from './spending.ts';

/** A wake that returns within this time after its promised time does not delay later wakes, milliseconds. */
const SLACK_MS = 500;
/** A promised time expires this long after it has passed, milliseconds. */
const PROMISE_MS = 120_000;
/** The most promised times an account keeps. Further wakes get the last promised time. */
const MOST_PROMISES = 1000;

/** The members of a wake that the account reads. */
export type WakeRequest = {
  fireId: string;
  alarmId?: string | undefined;
  urgent: boolean;
  now: number;
  probeMs: number;
};

export class Account {
  /** Admitted wakes by fire id. */
  readonly #counted: Map<string, CountedTurn>;
  /** Wakes that count no longer: they say for a while how much a turn may use. */
  #past: CountedTurn[] = [];
  /** Promised return times by fire id. */
  readonly #promised = new Map<string, number>();
  #breaker: Breaker = CLOSED;
  /** The number of counted failures. Wakes that were admitted before the last failure failed together with it. */
  #failures = 0;

  constructor(counted: readonly CountedTurn[]) {
    this.#counted = new Map(counted.map((turn) => [turn.fireId, turn]));
  }

  /** Whether an earlier call of this fire was admitted and may have been accepted. */
  counts(fireId: string): boolean {
    return this.#counted.has(fireId);
  }

  /** Whether the account holds no state that must be kept. */
  get isEmpty(): boolean {
    return this.#counted.size === 0 && this.#promised.size === 0 && this.#breaker === CLOSED;
  }

  /**
   * Decides about a wake. An admitted wake is counted; a deferred one keeps its promised time. A fire that is counted
   * already may be under way, so it passes at any time without another count. Only the circuit breaker defers it.
   */
  decide(budget: Budget, { fireId, alarmId, urgent, now, probeMs }: WakeRequest): AdmissionDecision {
    this.forgetBefore(now);
    const known = this.#counted.has(fireId);
    const promised = this.#promised.get(fireId);
    this.#promised.delete(fireId);
    const returns = promised !== undefined && promised <= now;
    const taken = this.#taken(returns ? promised : Number.POSITIVE_INFINITY);
    const breakerAlone: Budget = budget.breaker ? { breaker: budget.breaker } : {};
    const rules = known ? breakerAlone : budget;
    const spending = limitsSpending(rules)
      ? spendingDeferral(rules, [...this.#past, ...this.#counted.values()], { now, alarmId })
      : undefined;
    const decision = decideAt(rules, { now, taken, breaker: this.#breaker, probeMs, urgent, spending });
    if (decision.go) {
      if (budget.breaker) this.#breaker = trying(this.#breaker, budget.breaker);
      if (!known) this.#counted.set(fireId, { fireId, at: now });
    } else if (decision.promised && this.#promised.size < MOST_PROMISES) {
      this.#promised.set(fireId, decision.until);
    }
    return decision;
  }

  /**
   * @param before only promised times before this instant. A wake that returns at its time, however late, goes before
   *   wakes with a later time. Otherwise wakes that are always late would push each other back for ever
   */
  #taken(before: number): Taken[] {
    const counted = [...this.#counted.values()].map(({ at }) => ({ at, latest: at }));
    const ahead = [...this.#promised.values()].filter((at) => at < before);
    const promised = ahead.map((at) => ({ at, latest: at + SLACK_MS }));
    return [...counted, ...promised].sort((one, other) => one.at - other.at);
  }

  /** The newest wakes of which no end is known. */
  unsettled(): string[] {
    const open = [...this.#counted.values()].filter(({ usage }) => usage === undefined);
    return open.slice(-USAGE_FIRES_MAX).map(({ fireId }) => fireId);
  }

  /** The counted wakes. */
  turns(): CountedTurn[] {
    return [...this.#counted.values()];
  }

  /** The turn of a counted wake has ended. @returns whether that is new */
  settle(fireId: string, usage: Settled): boolean {
    const turn = this.#counted.get(fireId);
    if (turn === undefined || turn.usage !== undefined) return false;
    this.#counted.set(fireId, { ...turn, usage });
    return true;
  }

  /** The target did not accept the fire. */
  uncount(fireId: string): void {
    this.#counted.delete(fireId);
  }

  /** The number of failures so far. An admitted wake passes it to {@link startFailed}. */
  get failures(): number {
    return this.#failures;
  }

  started(): void {
    this.#breaker = CLOSED;
  }

  /** The machine has changed. Earlier failures and starts under way do not count for the new specification. */
  machineChanged(): void {
    this.#failures++;
    this.#breaker = CLOSED;
  }

  /** @param since {@link failures} at the admission of the wake */
  startFailed(budget: Budget, { since, now, error }: { since: number; now: number; error: string }): void {
    if (!budget.breaker || since !== this.#failures) return;
    this.#failures++;
    this.#breaker = failed(this.#breaker, budget.breaker, now, error);
  }

  /** @param since {@link failures} at the admission of the wake */
  undecided(since: number): void {
    if (since === this.#failures) this.#breaker = undecided(this.#breaker);
  }

  /** Removes wakes that are older than every limit, and expired promised times. */
  forgetBefore(now: number): void {
    for (const [fireId, turn] of this.#counted) {
      if (turn.at > now - LONGEST_SPAN_MS) continue;
      this.#counted.delete(fireId);
      if (turn.usage !== undefined) this.#past.push(turn);
    }
    if (this.#past.length > 0) this.#past = this.#past.filter(({ at }) => at > now - REMEMBERED_MS);
    for (const [fireId, at] of this.#promised) if (at <= now - PROMISE_MS) this.#promised.delete(fireId);
  }
}

/** The state of a user at the arrival of a wake. */
type Situation = {
  /** Epoch milliseconds. */
  now: number;
  /** Counted wakes and the promised times of other wakes, ascending. */
  taken: readonly Taken[];
  breaker: Breaker;
  /** The longest duration of one attempt to start the machine, milliseconds. */
  probeMs: number;
  urgent: boolean;
  /** What a budget in tokens or in money demands. */
  spending: ReturnType<typeof spendingDeferral>;
};

/** `promised`: whether `until` is a promised time to be kept for this wake. */
export type AdmissionDecision = { go: true } | { go: false; until: number; reason: string; promised: boolean };

/**
 * Alternates between quiet hours and limits until both agree. They always agree: quiet hours leave some minutes of most
 * days.
 */
const MOST_ROUNDS = 1000;

/** The first instant from `from` on that is outside quiet hours and within the limits. */
function earliestAllowed(budget: Budget, limits: readonly Limit[], { taken, urgent }: Situation, from: number): number {
  let at = from;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const audible = budget.quiet && !urgent ? (quietUntil(budget.quiet, at) ?? at) : at;
    const free = earliestFree(taken, limits, audible).at;
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
 * Decides about a wake.
 *
 * @returns `go`, or the end of the deferral. Rules apply in this order: circuit breaker, quiet hours, limits
 */
export function decideAt(budget: Budget, situation: Situation): AdmissionDecision {
  const { now, breaker, probeMs, taken, urgent } = situation;
  const paused = budget.breaker && pausedUntil(breaker, budget.breaker, now, probeMs);
  if (paused !== undefined) {
    const reason = `the machine failed to start ${times(breaker.failures, 'time')} in a row (last: ${breaker.lastError}); tried again at ${formatInstant(paused)}`;
    return { go: false, until: paused, reason, promised: false };
  }
  if (situation.spending) return { go: false, ...situation.spending, promised: false };
  const limits = limitsOf(budget);
  const until = earliestAllowed(budget, limits, situation, now);
  if (until === now) return { go: true };
  const promised = limits.length > 0;
  const quiet = budget.quiet && !urgent ? quietUntil(budget.quiet, now) : undefined;
  if (quiet !== undefined) {
    const { to, timezone } = budget.quiet!;
    const turn = until === quiet ? '' : `; by the rest of the budget this one may go at ${formatInstant(until)}`;
    return { go: false, until, reason: `quiet hours of this user until ${to} ${timezone}${turn}`, promised };
  }
  const { limit } = earliestFree(taken, limits, now);
  return { go: false, until, reason: limitReason(limit!, until), promised };
}

/**
 * The circuit breaker of one machine. After several failed starts in a row it pauses wakes, then one wake probes the
 * machine.
 */
type Breaker = {
  /** Consecutive failures. Starts that failed together count as one. */
  readonly failures: number;
  readonly lastError: string;
  /** The current pause and its end, epoch milliseconds; 0 without a pause so far. */
  readonly pauseMs: number;
  readonly pausedUntil: number;
  /** Whether one wake probes the machine. */
  readonly probing: boolean;
};

const CLOSED: Breaker = { failures: 0, lastError: '', pauseMs: 0, pausedUntil: 0, probing: false };

const isOpen = ({ failures }: Breaker, rule: BreakerRule) => failures >= rule.failures;

/**
 * Whether a wake may start the machine.
 *
 * @param probeMs the longest duration of a probe
 * @returns when the wake may be repeated; `undefined` when it may go now
 */
function pausedUntil(breaker: Breaker, rule: BreakerRule, now: number, probeMs: number): number | undefined {
  if (!isOpen(breaker, rule)) return undefined;
  // A clock that was set back must not lengthen a pause.
  const until = Math.min(breaker.pausedUntil, now + breaker.pauseMs);
  if (now < until) return until;
  return breaker.probing ? now + probeMs : undefined;
}

/** A wake goes. While the breaker is open, it is the probe. */
function trying(breaker: Breaker, rule: BreakerRule): Breaker {
  return isOpen(breaker, rule) ? { ...breaker, probing: true } : breaker;
}

/** The start failed. The last allowed failure and each later one begin a pause. */
function failed(breaker: Breaker, rule: BreakerRule, now: number, error: string): Breaker {
  const failures = breaker.failures + 1;
  const counted = { ...breaker, failures, lastError: error, probing: false };
  if (failures < rule.failures) return counted;
  const first = (rule.pause_seconds ?? BREAKER_PAUSE_SECONDS) * 1000;
  const pauseMs = breaker.pauseMs === 0 ? first : Math.min(breaker.pauseMs * 2, BREAKER_LONGEST_PAUSE_SECONDS * 1000);
  return { ...counted, pauseMs, pausedUntil: now + pauseMs };
}

/** The probe ended before the machine could show whether it starts. */
function undecided(breaker: Breaker): Breaker {
  return breaker.probing ? { ...breaker, probing: false } : breaker;
}

/** A wake that only time admits: 429 with the instant at which it may be repeated. */
export class WakeDeferred extends ReveilleError {
  /** Epoch milliseconds. */
  readonly until: number;

  constructor(why: string, until: number, now: number) {
    super('rate_limited', `deferred: ${why}`, { retryAfterSeconds: Math.max(1, Math.ceil((until - now) / 1000)) });
    this.until = until;
  }
}

/**
 * The backoff of a machine whose process ends before it is ready. A start has a cost, and the next one would fail as
 * well.
 */
import { backoff } from '../../kit/clock/backoff.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** The pause after several consecutive failures, in milliseconds: 1 s, 2 s, 4 s … 5 min. */
export const restAfter = backoff({ first: 1000, longest: 300_000 });

type Failure = { fingerprint: string; count: number; untilMs: number; message: string };

export class StartBackoff {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failure>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws ReveilleError `unavailable` during the pause, with the last failure and the retry time */
  check(userId: string, fingerprint: string): void {
    const failure = this.#failures.get(userId);
    // Another specification may succeed.
    if (failure?.fingerprint !== fingerprint) return;
    const restMs = failure.untilMs - this.#clock.monotonic();
    if (restMs <= 0) return;
    const seconds = Math.ceil(restMs / 1000);
    const row = failure.count === 1 ? '' : `failure ${failure.count} in a row; `;
    const message = `${failure.message} (${row}it is started again in ${seconds} s at the earliest)`;
    throw new ReveilleError('unavailable', message, { retryAfterSeconds: seconds });
  }

  failed(userId: string, fingerprint: string, message: string): void {
    const before = this.#failures.get(userId);
    const count = before?.fingerprint === fingerprint ? before.count + 1 : 1;
    const untilMs = this.#clock.monotonic() + restAfter(count);
    this.#failures.set(userId, { fingerprint, count, untilMs, message });
  }

  succeeded(userId: string): void {
    this.#failures.delete(userId);
  }
}

/**
 * Checks the health of a connection periodically, and at once when there is reason to believe that the server is gone.
 */
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import { type Connection, describeError } from './connection.ts';
import { Cancelled, withDeadline } from './deadline.ts';

export type HealthWatchOptions = {
  clock: Clock;
  /** Time between two checks. */
  intervalMs: number;
  /** How long a server has to answer a check. */
  timeoutMs: number;
  /** Whether calls are running. */
  isBusy(): boolean;
  /** Aborts a running check. */
  signal: AbortSignal;
};

export class HealthWatch {
  readonly #options: HealthWatchOptions;
  #watched: Connection | undefined;
  #isChecking = false;
  #cancel: CancelTimer = () => {};

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** Checks this connection from now on, in place of the previous one. */
  watch(connection: Connection): void {
    this.stop();
    this.#watched = connection;
    this.#cancel = this.#options.clock.after(this.#options.intervalMs, () => {
      void this.check(connection).then(() => {
        if (connection === this.#watched) this.watch(connection);
      });
    });
  }

  stop(): void {
    this.#cancel();
    this.#watched = undefined;
  }

  /**
   * Checks now if this connection is the current one; ends it when it does not answer.
   *
   * @param evenBusy also while calls are running: a child that handles one request at a time is not dead
   */
  async check(connection: Connection, evenBusy = false): Promise<void> {
    const { clock, timeoutMs, isBusy, signal: outer } = this.#options;
    if (connection !== this.#watched || this.#isChecking || (isBusy() && !evenBusy)) return;
    this.#isChecking = true;
    try {
      await withDeadline(clock, timeoutMs, outer, (signal) => connection.check(signal));
    } catch (thrown) {
      if (!(thrown instanceof Cancelled)) connection.fail(`does not answer: ${describeError(thrown)}`);
    } finally {
      this.#isChecking = false;
    }
  }
}

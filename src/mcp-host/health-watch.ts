/** Looking at a connection from time to time, and whenever there is reason to think that nobody is there any more. */
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import { type Connection, describeError } from './connection.ts';
import { Cancelled, withDeadline } from './deadline.ts';

export type HealthWatchOptions = {
  clock: Clock;
  /** Between two looks. */
  intervalMs: number;
  /** What a server has to answer. */
  timeoutMs: number;
  /** Whether calls are under way. */
  isBusy(): boolean;
  /** Ends a look that is under way. */
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

  /** Looks at this connection from now on, and no longer at another one. */
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
   * Looks now, if this is the connection that is watched; one that gives no answer is ended.
   *
   * @param evenBusy also while calls are under way: a child may do one thing at a time and is not dead for that
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

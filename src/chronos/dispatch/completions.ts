/**
 * Outcomes on their way into the store: gathered for a moment and written together, kept until the store has taken
 * them.
 */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore, Completion } from '../store/store.ts';

const MAX_BATCH = 256;
const RETRY_MS = 500;

type Waiting = { completion: Completion; done: () => void };

/** Whether the store may take later what it did not take now. Any other failure is a defect, and stays one. */
function mayPass(error: unknown): boolean {
  return error instanceof ReveilleError && error.code === 'unavailable' && error.retryable;
}

export class CompletionBuffer {
  readonly #store: AlarmStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onFlushed: () => void;
  readonly #gatherMs: number;
  #waiting: Waiting[] = [];
  #timer: CancelTimer | undefined;
  #flushing = false;
  /** The store refused the last batch; it is given time. */
  #refused = false;
  #stopped = false;

  /**
   * @param options.gatherMs how long an outcome may wait for company
   * @param options.onFlushed called after each batch that the store has taken: what is due next may have changed
   */
  constructor(
    store: AlarmStore,
    clock: Clock,
    log: Logger,
    { gatherMs, onFlushed }: { gatherMs: number; onFlushed: () => void },
  ) {
    this.#gatherMs = gatherMs;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#onFlushed = onFlushed;
  }

  /**
   * Resolves once the outcome is durable, has turned out to belong to someone else's lease, or could not be applied for
   * a defect of ours. Never, when {@link stop} comes first.
   */
  add(completion: Completion): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ completion, done });
      if (this.#stopped) return;
      if (this.#waiting.length >= MAX_BATCH && !this.#refused) this.#flushAfter(0);
      else if (!this.#timer) this.#flushAfter(this.#gatherMs);
    });
  }

  /** Writes what is waiting now, where the store takes anything at all; waits for nothing. */
  flush(): void {
    if (this.#waiting.length === 0 || this.#refused || this.#stopped) return;
    this.#timer?.();
    void this.#flush();
  }

  /** Leaves what is waiting to its leases; the store is not touched again. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    if (this.#waiting.length > 0)
      this.#log.warn(
        { outcomes: this.#waiting.length },
        'outcomes could not be stored in time; the wakes will be repeated',
      );
  }

  #flushAfter(delayMs: number): void {
    this.#timer?.();
    this.#timer = this.#clock.after(delayMs, () => void this.#flush());
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    if (this.#flushing) return;
    this.#flushing = true;
    const unwritten = await this.#write(this.#waiting.splice(0, MAX_BATCH));
    this.#waiting.unshift(...unwritten);
    this.#refused = unwritten.length > 0;
    this.#flushing = false;
    if (this.#waiting.length > 0 && !this.#stopped) this.#flushAfter(this.#refused ? RETRY_MS : 0);
  }

  /** Writes a batch; returns what must be tried again. */
  async #write(batch: Waiting[]): Promise<Waiting[]> {
    if (batch.length === 0) return [];
    try {
      await this.#apply(batch);
      return [];
    } catch (error) {
      if (mayPass(error)) {
        // A store that is down loses nothing: the outcomes wait here, and if this process dies first, their leases run
        // out and the wakes are repeated under the same fire ids.
        this.#log.error({ err: error, waiting: batch.length }, 'outcomes could not be stored; trying again');
        return batch;
      }
      // One outcome that cannot be applied is a defect of ours. It must not hold up the others in its batch; alone, it
      // is let go, and its occurrence returns when the lease has run out.
      if (batch.length > 1) return (await Promise.all(batch.map((waiting) => this.#write([waiting])))).flat();
      const [waiting] = batch;
      this.#log.error({ err: error, fire_id: waiting!.completion.key.fireId }, 'an outcome could not be applied');
      waiting!.done();
      return [];
    }
  }

  async #apply(batch: Waiting[]): Promise<void> {
    const results = await this.#store.complete(batch.map((waiting) => waiting.completion));
    batch.forEach(({ completion, done }, index) => {
      if (results[index] === 'lost_lease')
        this.#log.warn(
          { fire_id: completion.key.fireId, fence: completion.key.fence },
          'lease lost before the outcome was stored',
        );
      done();
    });
    this.#onFlushed();
  }
}

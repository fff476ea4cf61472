/**
 * Outcomes on their way into the store: collected for a moment, written together, and kept until the store has accepted
 * them.
 */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore, Completion, CompletionResult } from '../store/store.ts';

const MAX_BATCH = 256;
/**
 * While the store writes a batch, a second one is sent only from this size on, where it is worth its own round trip.
 */
const SECOND_BATCH_MIN = 96;
const RETRY_MS = 500;

type Waiting = { completion: Completion; done: (result: CompletionResult) => void; fail: (error: unknown) => void };

/** Whether the store may accept the batch later. Any other failure is a defect. */
function isTemporary(error: unknown): boolean {
  return error instanceof ReveilleError && error.code === 'unavailable' && error.retryable;
}

export class CompletionBuffer {
  readonly #store: AlarmStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onFlushed: () => void;
  readonly #batchDelayMs: number;
  readonly #concurrentBatches: number;
  #waiting: Waiting[] = [];
  #timer: CancelTimer | undefined;
  /** The timer is set to the earliest possible time. */
  #isUrgent = false;
  /** Batches that the store is writing. */
  #runningBatches = 0;
  /** The store refused the last batch; the next try waits. */
  #refused = false;
  #stopped = false;

  /**
   * @param options.batchDelayMs how long an outcome may wait for others
   * @param options.concurrentBatches how many batches the store may write concurrently
   * @param options.onFlushed called after each batch that the store has accepted: the next due time may have changed
   */
  constructor(
    store: AlarmStore,
    clock: Clock,
    log: Logger,
    {
      batchDelayMs,
      concurrentBatches = 1,
      onFlushed,
    }: { batchDelayMs: number; concurrentBatches?: number; onFlushed: () => void },
  ) {
    this.#batchDelayMs = batchDelayMs;
    this.#concurrentBatches = concurrentBatches;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#onFlushed = onFlushed;
  }

  /**
   * Resolves once the outcome is durable, or its claim turned out to have ended before. Rejects when it could not be
   * applied because of a defect. It never settles when {@link stop} comes first.
   */
  add(completion: Completion): Promise<CompletionResult> {
    return new Promise((done, fail) => {
      this.#waiting.push({ completion, done, fail });
      this.#schedule(this.#batchDelayMs);
    });
  }

  /** Writes waiting outcomes now, unless the store refused the last batch. Returns at once. */
  flush(): void {
    if (this.#waiting.length === 0 || this.#refused || this.#stopped) return;
    this.#timer?.();
    void this.#flush();
  }

  /** Leaves waiting outcomes: their claims end with this process. The store is not used again. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.();
    if (this.#waiting.length > 0)
      this.#log.warn(
        { outcomes: this.#waiting.length },
        'outcomes could not be stored in time; the wakes will be repeated',
      );
  }

  /** Schedules a write of waiting outcomes, at the latest after this time unless a write is running. */
  #schedule(delayMs: number): void {
    if (this.#stopped || this.#refused || this.#waiting.length === 0 || this.#runningBatches >= this.#concurrentBatches)
      return;
    const isFull = this.#waiting.length >= (this.#runningBatches === 0 ? MAX_BATCH : SECOND_BATCH_MIN);
    if (isFull && !this.#isUrgent) this.#flushAfter(0);
    else if (!this.#timer && this.#runningBatches === 0) this.#flushAfter(delayMs);
    this.#isUrgent ||= isFull;
  }

  #flushAfter(delayMs: number): void {
    this.#timer?.();
    this.#timer = this.#clock.after(delayMs, () => void this.#flush());
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    this.#isUrgent = false;
    if (this.#runningBatches >= (this.#refused ? 1 : this.#concurrentBatches)) return;
    this.#runningBatches++;
    const written = this.#write(this.#waiting.splice(0, MAX_BATCH));
    this.#schedule(0);
    const unwritten = await written;
    this.#runningBatches--;
    this.#waiting.unshift(...unwritten);
    this.#refused = unwritten.length > 0;
    if (!this.#refused) this.#schedule(0);
    else if (!this.#stopped) this.#flushAfter(RETRY_MS);
  }

  /** Writes a batch; returns the outcomes to retry. */
  async #write(batch: Waiting[]): Promise<Waiting[]> {
    if (batch.length === 0) return [];
    try {
      await this.#apply(batch);
      return [];
    } catch (error) {
      if (isTemporary(error)) {
        // A store outage loses nothing. The outcomes wait here. If this process dies first, the wakes are repeated under
        // the same fire ids.
        this.#log.error({ err: error, waiting: batch.length }, 'outcomes could not be stored; retrying');
        return batch;
      }
      // An outcome that cannot be applied is a defect. It must not block the others in its batch.
      if (batch.length > 1) return (await Promise.all(batch.map((waiting) => this.#write([waiting])))).flat();
      batch[0]!.fail(error);
      return [];
    }
  }

  async #apply(batch: Waiting[]): Promise<void> {
    const results = await this.#store.complete(batch.map((waiting) => waiting.completion));
    batch.forEach(({ completion, done }, index) => {
      if (results[index] === 'lost_claim')
        this.#log.warn(
          { fire_id: completion.key.fireId, fence: completion.key.fence },
          'the claim had ended before the outcome was stored; another replica may repeat this wake',
        );
      done(results[index]!);
    });
    this.#onFlushed();
  }
}

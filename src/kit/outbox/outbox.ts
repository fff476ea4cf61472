/**
 * Delivers the items of a durable outbox. An item is written in the transaction that causes it, and is delivered at
 * least once, by this process or a later one. A writer never waits for a delivery.
 */
import { backoff, withJitter } from '../clock/backoff.ts';
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';

export type OutboxItem = {
  /** The same on every attempt, so that the receiver recognises repetitions. */
  readonly id: string;
  readonly attempts: number;
};

/**
 * The port to the items. Instants are those of {@link OutboxOptions.now}. Every operation may throw; it is retried
 * later.
 */
export type OutboxStore<Item extends OutboxItem> = {
  /**
   * The items due at `now`, at most `limit`, longest waiting first. With {@link OutboxOptions.shares}, a store takes the
   * owners in turn, so that one with many items does not fill the answer.
   */
  due(now: number, limit: number): readonly Item[];
  /** When the next item is due; `undefined` if none is left. */
  nextDue(): number | undefined;
  /** The item was delivered. Resolves when that is on disk. */
  done(id: string): void | Promise<void>;
  /** The attempt failed; the item is due again at `at`, in whole milliseconds. */
  later(id: string, at: number, why: string): void | Promise<void>;
  /** The item will never be delivered, or is no longer wanted. */
  drop(id: string, why: string): void | Promise<void>;
  /**
   * Calls `listener` when a new item is on disk. For a store without it, call {@link Outbox.wake}. @returns
   * unsubscribes
   */
  onNew?(listener: () => void): () => void;
};

/** The outcome of one attempt. */
export type Delivery =
  | { readonly result: 'done' }
  /**
   * A later attempt may succeed. `slow`: only after a person has fixed the cause. `everything`: no item can be
   * delivered at present.
   */
  | { readonly result: 'later'; readonly why: string; readonly slow?: boolean; readonly everything?: boolean }
  /** No attempt will succeed, or the item is no longer wanted. */
  | { readonly result: 'drop'; readonly why: string };

export type OutboxOptions<Item extends OutboxItem> = {
  readonly store: OutboxStore<Item>;
  /** Delivers once. A thrown error counts as `later`. */
  readonly deliver: (item: Item, signal: AbortSignal) => Promise<Delivery>;
  /** The clock of the store's instants: the wall clock if they are on disk. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1); spreads retries. */
  readonly random: () => number;
  /** Maximum of concurrent deliveries. */
  readonly concurrency: number;
  /**
   * What an item shares with others, such as its owner and its receiver, and how many deliveries each of them may have at
   * once. One with slow receivers then delays only its own items.
   */
  readonly shares?: { readonly of: (item: Item) => readonly string[]; readonly most: number };
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** After this number of attempts an item is dropped; `undefined`: it is retried without limit. */
  readonly mostAttempts?: (item: Item) => number | undefined;
  /** Subject of the log messages, for example `a turn report`. */
  readonly noun: string;
  /** Log fields of an item. */
  readonly about: (item: Item) => Record<string, unknown>;
  /**
   * How long `close` retries the waiting items once. 0: it only lets the current deliveries end, and the next process
   * takes over the rest.
   */
  readonly lastRoundMs: number;
};

export type Outbox = {
  /** Starts to deliver the waiting items. */
  start(): void;
  /** Call it when there is a new item. */
  wake(): void;
  /** Whether an item waits for its first attempt; false after a few seconds in any case. */
  isBusy(): boolean;
  /** Ends deliveries as `lastRoundMs` specifies. */
  close(): Promise<void>;
};

/** Items per read. */
const BATCH = 100;
/**
 * The store is polled at least this often while items wait: wall clocks jump, and timers stop while a laptop sleeps.
 */
const POLL_MS = 60_000;
const BUSY_MS = 5_000;
/** A new item causes an early retry of an unreachable receiver, but no more often than this. */
const EARLY_RETRY_MS = 500;
/**
 * How long `close` waits for the answers to current deliveries. A receiver that has a request and whose answer is not
 * awaited gets it once more.
 */
const FINISH_MS = 2000;

class OutboxDelivery<Item extends OutboxItem> implements Outbox {
  readonly #options: OutboxOptions<Item>;
  readonly #backoffMs: (failures: number) => number;
  readonly #closing = new AbortController();
  /** Aborts the current deliveries. */
  readonly #aborting = new AbortController();
  readonly #active = new Map<string, Promise<void>>();
  /** Current deliveries of each share. */
  readonly #inUse = new Map<string, number>();
  #queue: Item[] = [];
  #started = false;
  /**
   * Consecutive failures of the store or of every delivery. No attempt is made until `#pausedUntil` (monotonic clock).
   */
  #failures = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Number of announced new items, and the number up to which all were tried. */
  #arrivals = 0;
  #tried = 0;
  #busyUntil = 0;
  #cancelTimer = () => {};
  #unsubscribe: (() => void) | undefined;

  constructor(options: OutboxOptions<Item>) {
    this.#options = options;
    this.#backoffMs = backoff({ first: options.firstPauseMs, longest: options.longestPauseMs });
  }

  start(): void {
    this.#started = true;
    this.#unsubscribe ??= this.#options.store.onNew?.(() => this.wake());
    this.wake();
  }

  wake(): void {
    if (!this.isBusy()) this.#busyUntil = this.#options.clock.monotonic() + BUSY_MS;
    this.#arrivals++;
    this.#pausedUntil = Math.min(this.#pausedUntil, this.#failedAt + EARLY_RETRY_MS);
    // The writer does not wait, and ends its own transaction first.
    queueMicrotask(() => this.#poll());
  }

  isBusy(): boolean {
    return this.#tried < this.#arrivals && this.#options.clock.monotonic() < this.#busyUntil;
  }

  async close(): Promise<void> {
    const { clock, lastRoundMs } = this.#options;
    this.#closing.abort();
    this.#unsubscribe?.();
    this.#cancelTimer();
    const abort = () => this.#aborting.abort(new Error('this process is shutting down'));
    const cancel = clock.after(Math.max(lastRoundMs, FINISH_MS), abort);
    await Promise.all(this.#active.values());
    if (lastRoundMs === 0) abort();
    if (this.#started) await this.#lastRound();
    cancel();
  }

  #poll(): void {
    if (!this.#started || this.#closing.signal.aborted) return;
    this.#cancelTimer();
    const { clock } = this.#options;
    const pausedMs = this.#pausedUntil - clock.monotonic();
    const againInMs = pausedMs > 0 ? pausedMs : this.#begin();
    if (this.#queue.length === 0 && this.#active.size === 0) this.#tried = this.#arrivals;
    if (againInMs !== undefined) this.#cancelTimer = clock.after(Math.min(POLL_MS, againInMs), () => this.#poll());
  }

  /** Starts deliveries up to the limit. @returns the latest time of the next poll, if items wait */
  #begin(): number | undefined {
    const { store, now, concurrency, log, noun } = this.#options;
    try {
      while (this.#active.size < concurrency) {
        let item = this.#takeNext();
        if (item === undefined) {
          const due = store.due(now(), BATCH + this.#active.size);
          this.#queue = due.filter(({ id }) => !this.#active.has(id));
          item = this.#takeNext();
        }
        if (item === undefined) break;
        this.#count(item, 1);
        this.#active.set(item.id, this.#deliver(item));
      }
      const next = store.nextDue();
      if (next === undefined) return undefined;
      const inMs = next - now();
      if (inMs > 0) return inMs;
      // Due items are being delivered, and their end polls again; or an item has just become due.
      return this.#active.size > 0 ? POLL_MS : 0;
    } catch (err) {
      log.error({ err }, `${noun} cannot be read; it is tried again`);
      return this.#pauseAll();
    }
  }

  /** The first item of the queue whose shares have a free delivery. */
  #takeNext(): Item | undefined {
    const { shares } = this.#options;
    const isFree = (item: Item) =>
      shares === undefined || shares.of(item).every((share) => (this.#inUse.get(share) ?? 0) < shares.most);
    const at = this.#queue.findIndex(isFree);
    return at < 0 ? undefined : this.#queue.splice(at, 1)[0];
  }

  #count(item: Item, change: 1 | -1): void {
    for (const share of this.#options.shares?.of(item) ?? []) {
      const count = (this.#inUse.get(share) ?? 0) + change;
      if (count > 0) this.#inUse.set(share, count);
      else this.#inUse.delete(share);
    }
  }

  async #deliver(item: Item): Promise<void> {
    // The map must contain it before it can end.
    await Promise.resolve();
    try {
      await this.#record(item, await this.#attempt(item));
    } finally {
      this.#active.delete(item.id);
      this.#count(item, -1);
      this.#poll();
    }
  }

  async #attempt(item: Item): Promise<Delivery> {
    const { deliver, log, noun, about } = this.#options;
    try {
      return await deliver(item, this.#aborting.signal);
    } catch (err) {
      log.error({ err, ...about(item), attempts: item.attempts }, `${noun} failed with an unexpected error`);
      return { result: 'later', why: 'it failed with an unexpected error; the log has the details' };
    }
  }

  async #record(item: Item, delivery: Delivery): Promise<void> {
    const { store, clock, now, random, log, noun, longestPauseMs, mostAttempts } = this.#options;
    const { id } = item;
    // Deliveries aborted by the shutdown are due for the next process without a pause.
    if (this.#aborting.signal.aborted && delivery.result !== 'done') return;
    if (delivery.result === 'later' && delivery.everything) {
      if (this.#failures === 0)
        log.info({ reason: delivery.why }, `${noun} cannot be delivered at present; trying again`);
      this.#pauseAll();
      return;
    }
    const attempts = item.attempts + 1;
    const about = { ...this.#options.about(item), attempts };
    try {
      if (delivery.result === 'done') {
        await store.done(id);
      } else if (delivery.result === 'drop' || attempts >= (mostAttempts?.(item) ?? Number.POSITIVE_INFINITY)) {
        await store.drop(id, delivery.why);
        log.warn({ ...about, reason: delivery.why }, `${noun} was dropped`);
      } else {
        const longest = delivery.slow ? longestPauseMs : this.#backoffMs(attempts);
        const pause = Math.round(withJitter(longest, random()));
        await store.later(id, Math.ceil(now()) + pause, delivery.why);
        log.warn({ ...about, reason: delivery.why, again_in_ms: pause }, `${noun} was not delivered; trying again`);
      }
      this.#failures = 0;
    } catch (err) {
      log.error({ err, ...about }, `the outcome of ${noun} cannot be stored; it is delivered once more`);
      // The item stays due. Without a pause, it would be delivered again at once.
      await wait(clock, withJitter(this.#backoffMs(++this.#failures), random()), this.#closing.signal);
    }
  }

  /** Starts no delivery for a while, because none can succeed. @returns the length of the pause */
  #pauseAll(): number {
    const { clock, random } = this.#options;
    this.#queue = [];
    this.#failedAt = clock.monotonic();
    const pause = withJitter(this.#backoffMs(++this.#failures), random());
    this.#pausedUntil = this.#failedAt + pause;
    return pause;
  }

  /** Tries each waiting item once more, due or not. */
  async #lastRound(): Promise<void> {
    const { store, log, noun } = this.#options;
    const tried = new Set<string>();
    try {
      for (;;) {
        const waiting = store.due(Number.POSITIVE_INFINITY, BATCH + tried.size).filter(({ id }) => !tried.has(id));
        if (waiting.length === 0) return;
        for (const item of waiting) {
          if (this.#aborting.signal.aborted) return;
          tried.add(item.id);
          const delivery = await this.#attempt(item);
          await this.#record(item, delivery);
          if (delivery.result === 'later' && delivery.everything) return;
        }
      }
    } catch (err) {
      log.warn({ err }, `${noun} cannot be read; the next process tries again`);
    }
  }
}

/** Creates the delivery of an outbox. It begins with `start`. */
export function createOutbox<Item extends OutboxItem>(options: OutboxOptions<Item>): Outbox {
  return new OutboxDelivery(options);
}

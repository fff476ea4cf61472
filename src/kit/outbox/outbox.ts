/**
 * The delivery of a durable outbox. An item is written in the transaction that causes it and is delivered at least
 * once, by this process or by a later one. Whoever writes never waits for a delivery.
 */
import { backoff, withJitter } from '../clock/backoff.ts';
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';

export type OutboxItem = {
  /** The same on every attempt, so that the receiver can recognise a repetition. */
  readonly id: string;
  /** Attempts that failed. */
  readonly attempts: number;
};

/**
 * The port to the items. Instants are those of {@link OutboxOptions.now}. Every operation may throw; it is tried again
 * later.
 */
export type OutboxStore<Item extends OutboxItem> = {
  /** The items that are due at `now`, at most so many, those that have waited longest first. */
  due(now: number, limit: number): readonly Item[];
  /** When the next item is due; `undefined` when none is left. */
  nextDue(): number | undefined;
  /** The item was delivered. Resolves when that is on disk. */
  done(id: string): void | Promise<void>;
  /** The attempt failed; the item is due again at `at`, in whole milliseconds. */
  later(id: string, at: number, why: string): void | Promise<void>;
  /** The item will never be delivered, or is not wanted any more. */
  drop(id: string, why: string): void | Promise<void>;
  /**
   * Calls back when there is a new item on disk; a store without it is followed by {@link Outbox.wake}. @returns ends
   * that
   */
  onNew?(listener: () => void): () => void;
};

/** The outcome of one attempt. */
export type Delivery =
  | { readonly result: 'done' }
  /**
   * A later attempt may succeed. `slow`: only after somebody has put something right. `everything`: no item can be
   * delivered at present.
   */
  | { readonly result: 'later'; readonly why: string; readonly slow?: boolean; readonly everything?: boolean }
  /** No attempt will succeed, or the item is not wanted any more. */
  | { readonly result: 'drop'; readonly why: string };

export type OutboxOptions<Item extends OutboxItem> = {
  readonly store: OutboxStore<Item>;
  /** Delivers once. An error that it throws counts as `later`. */
  readonly deliver: (item: Item, signal: AbortSignal) => Promise<Delivery>;
  /** The clock of the store's instants: the wall clock when they are on disk. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1); spreads retries. */
  readonly random: () => number;
  /** Deliveries that may be under way at a time. */
  readonly concurrency: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** After so many attempts an item is dropped; `undefined` when it is tried for ever. */
  readonly mostAttempts?: (item: Item) => number | undefined;
  /** Begins the messages of the log, for example `a receipt`. */
  readonly noun: string;
  /** What the log says about an item. */
  readonly about: (item: Item) => Record<string, unknown>;
  /**
   * For how long closing tries once more what waits. 0: it aborts what is under way, and the next process takes that
   * up.
   */
  readonly lastRoundMs: number;
};

export type Outbox = {
  /** Begins to deliver what waits. */
  start(): void;
  /** Says that there is a new item. */
  wake(): void;
  /** Whether an item waits that has not been tried yet; false after a few seconds, whatever waits. */
  isBusy(): boolean;
  /** Ends deliveries as `lastRoundMs` says. */
  close(): Promise<void>;
};

/** Items that are read at a time. */
const BATCH = 100;
/**
 * The store is looked into at least this often while something waits: wall clocks jump, and timers stop while a laptop
 * sleeps.
 */
const LOOK_MS = 60_000;
const BUSY_MS = 5_000;
/** A new item makes an unreachable receiver be tried again early, but no more often than this. */
const NEWS_EVERY_MS = 500;

class Delivering<Item extends OutboxItem> implements Outbox {
  readonly #options: OutboxOptions<Item>;
  readonly #backoffMs: (failures: number) => number;
  readonly #closing = new AbortController();
  /** Aborts the deliveries that are under way. */
  readonly #aborting = new AbortController();
  readonly #underWay = new Map<string, Promise<void>>();
  #queue: Item[] = [];
  #started = false;
  /** Of the store or of every delivery, in a row. Until `#pausedUntil`, on the monotonic clock, nothing is tried. */
  #failures = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** How often a new item was announced, and up to which of those times everything has been tried. */
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
    this.#pausedUntil = Math.min(this.#pausedUntil, this.#failedAt + NEWS_EVERY_MS);
    // Whoever wrote the item is not kept waiting, and ends its own transaction first.
    queueMicrotask(() => this.#look());
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
    const cancel = clock.after(lastRoundMs, abort);
    if (lastRoundMs === 0) abort();
    await Promise.all(this.#underWay.values());
    if (this.#started) await this.#lastRound();
    cancel();
  }

  #look(): void {
    if (!this.#started || this.#closing.signal.aborted) return;
    this.#cancelTimer();
    const { clock } = this.#options;
    const pausedMs = this.#pausedUntil - clock.monotonic();
    const againInMs = pausedMs > 0 ? pausedMs : this.#begin();
    if (this.#queue.length === 0 && this.#underWay.size === 0) this.#tried = this.#arrivals;
    if (againInMs !== undefined) this.#cancelTimer = clock.after(Math.min(LOOK_MS, againInMs), () => this.#look());
  }

  /** Begins what there is room for. @returns when to look again at the latest, if something waits */
  #begin(): number | undefined {
    const { store, now, concurrency, log, noun } = this.#options;
    try {
      while (this.#underWay.size < concurrency) {
        if (this.#queue.length === 0) {
          const due = store.due(now(), BATCH + this.#underWay.size);
          this.#queue = due.filter(({ id }) => !this.#underWay.has(id));
        }
        const item = this.#queue.shift();
        if (item === undefined) break;
        this.#underWay.set(item.id, this.#carry(item));
      }
      const next = store.nextDue();
      if (next === undefined) return undefined;
      const inMs = next - now();
      if (inMs > 0) return inMs;
      // What is due already is under way, and its end looks again; or it has become due since it was asked for.
      return this.#underWay.size > 0 ? LOOK_MS : 0;
    } catch (err) {
      log.error({ err }, `${noun} cannot be read; it is tried again`);
      return this.#pauseAll();
    }
  }

  async #carry(item: Item): Promise<void> {
    // The map has it before it can end.
    await Promise.resolve();
    try {
      await this.#record(item, await this.#attempt(item));
    } finally {
      this.#underWay.delete(item.id);
      this.#look();
    }
  }

  async #attempt(item: Item): Promise<Delivery> {
    const { deliver, log, noun, about } = this.#options;
    try {
      return await deliver(item, this.#aborting.signal);
    } catch (err) {
      log.error({ err, ...about(item), attempts: item.attempts }, `${noun} failed in a way that nobody expected`);
      return { result: 'later', why: 'it failed in a way that nobody expected; the log has the details' };
    }
  }

  async #record(item: Item, delivery: Delivery): Promise<void> {
    const { store, clock, now, random, log, noun, longestPauseMs, mostAttempts } = this.#options;
    const { id } = item;
    // What our own end aborted is due for the next process, without a pause.
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
        log.warn({ ...about, reason: delivery.why }, `${noun} was given up`);
      } else {
        const longest = delivery.slow ? longestPauseMs : this.#backoffMs(attempts);
        const pause = Math.round(withJitter(longest, random()));
        await store.later(id, Math.ceil(now()) + pause, delivery.why);
        log.warn({ ...about, reason: delivery.why, again_in_ms: pause }, `${noun} was not delivered; trying again`);
      }
      this.#failures = 0;
    } catch (err) {
      log.error({ err, ...about }, `the outcome of ${noun} cannot be stored; it is delivered once more`);
      // It stays due. Without a pause here it would be delivered again at once.
      await wait(clock, withJitter(this.#backoffMs(++this.#failures), random()), this.#closing.signal);
    }
  }

  /** Nothing can be delivered: begins no delivery for a while. @returns for how long */
  #pauseAll(): number {
    const { clock, random } = this.#options;
    this.#queue = [];
    this.#failedAt = clock.monotonic();
    const pause = withJitter(this.#backoffMs(++this.#failures), random());
    this.#pausedUntil = this.#failedAt + pause;
    return pause;
  }

  /** Tries each item that waits once more, due or not. */
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

/** Makes the delivery of an outbox. It begins with `start`. */
export function createOutbox<Item extends OutboxItem>(options: OutboxOptions<Item>): Outbox {
  return new Delivering(options);
}

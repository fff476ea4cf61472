/**
 * Detects changes once per user, however many pages are open: chronosd's events, hints of the installation, and polls
 * of the machine and of waiting questions while a page is open.
 */

import type { ChronosClient } from '../chronos/client.ts';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { ChangedIds } from '../kit/http/changed-ids.ts';
import type { ConsoleBackend, Hint } from './backend.ts';
import type { Waiting } from './waiting-questions.ts';

/** Short enough that a change reaches the page within a second, also with slow backends. */
const POLL_EVERY_MS = 400;
/** The interval grows with the number of users. */
const PER_USER_MS = 5;
/** A burst of changes of one user loads the pages at most once in this time. */
const GATHER_MS = 200;
/**
 * Users notified per second, after a burst of the same size. Every notified page is loaded again. When the alarms of
 * hundreds of users fire at once, the limit leaves chronosd the capacity to fire.
 */
const NOTIFIED_PER_SECOND = 20;

type Watched = { listeners: Set<(hint: Hint) => void>; stop: () => void };

export class ChangeWatcher {
  readonly #clock: Clock;
  readonly #waiting: (backend: ConsoleBackend) => Waiting;
  readonly #onHint: (user: string) => void;
  readonly #watched = new Map<ConsoleBackend, Watched>();
  /** End of the notification slots that are taken; monotonic ms. */
  #slotsEnd = Number.NEGATIVE_INFINITY;

  /** @param options.onHint called before the listeners, so that they do not reuse older reads */
  constructor(options: {
    clock: Clock;
    waiting: (backend: ConsoleBackend) => Waiting;
    onHint: (user: string) => void;
  }) {
    this.#clock = options.clock;
    this.#waiting = options.waiting;
    this.#onHint = options.onHint;
  }

  /** @returns a function that ends it */
  watch(backend: ConsoleBackend, listener: (hint: Hint) => void): () => void {
    const watched = this.#watched.get(backend) ?? this.#begin(backend);
    watched.listeners.add(listener);
    return () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size > 0) return;
      watched.stop();
      if (this.#watched.get(backend) === watched) this.#watched.delete(backend);
    };
  }

  close(): void {
    for (const { stop } of this.#watched.values()) stop();
    this.#watched.clear();
  }

  #begin(backend: ConsoleBackend): Watched {
    const ended = new AbortController();
    const watched: Watched = { listeners: new Set(), stop: () => ended.abort() };
    const notify = (hint: Hint) => {
      this.#onHint(backend.user);
      for (const listener of [...watched.listeners]) listener(hint);
    };
    this.#watched.set(backend, watched);
    const notifyInSlot = this.#inSlots(notify, ended.signal);
    ended.signal.addEventListener('abort', backend.onHint(notifyInSlot));
    void this.#pollApprovals(backend, () => notifyInSlot('approvals'), ended.signal);
    if ('there' in backend.alarms) void this.#follow(backend.alarms.there, () => notifyInSlot('alarms'), ended.signal);
    return watched;
  }

  /** The next free notification slot, in ms from now. */
  #nextSlot(): number {
    const now = this.#clock.monotonic();
    this.#slotsEnd = Math.max(this.#slotsEnd, now - 1000) + 1000 / NOTIFIED_PER_SECOND;
    return Math.max(0, this.#slotsEnd - now);
  }

  /** Notifies in the next free slot; further hints of the same kind wait with the first. */
  #inSlots(notify: (hint: Hint) => void, signal: AbortSignal): (hint: Hint) => void {
    const waiting = new Set<Hint>();
    const notifiedAt = new Map<Hint, number>();
    return (hint) => {
      if (waiting.has(hint) || signal.aborted) return;
      waiting.add(hint);
      const gathered = (notifiedAt.get(hint) ?? Number.NEGATIVE_INFINITY) + GATHER_MS - this.#clock.monotonic();
      const cancel = this.#clock.after(Math.max(gathered, this.#nextSlot()), () => {
        signal.removeEventListener('abort', cancel);
        waiting.delete(hint);
        notifiedAt.set(hint, this.#clock.monotonic());
        if (!signal.aborted) notify(hint);
      });
      signal.addEventListener('abort', cancel);
    };
  }

  async #follow(alarms: Pick<ChronosClient, 'events'>, onChange: () => void, signal: AbortSignal): Promise<void> {
    const events: typeof alarms.events = (follow) => alarms.events({ ...follow, coalesceMs: GATHER_MS });
    const changed = new ChangedIds({ events, clock: this.#clock, signal });
    while (!signal.aborted) {
      await changed.next();
      onChange();
    }
  }

  async #pollApprovals(backend: ConsoleBackend, notify: () => void, signal: AbortSignal): Promise<void> {
    let before: string | undefined;
    while (!signal.aborted) {
      // The page itself shows the error of an unreachable executor.
      const gates = await this.#waiting(backend)
        .renew()
        .catch(() => undefined);
      const found = gates && JSON.stringify(gates.map(({ gate }) => gate.displayed_sha256));
      if (found !== undefined && before !== undefined && before !== found) notify();
      before = found ?? before;
      await wait(this.#clock, Math.max(POLL_EVERY_MS, this.#watched.size * PER_USER_MS), signal);
    }
  }
}

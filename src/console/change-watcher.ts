/**
 * Detects changes once per user while a page is open, however many are: the events of chronosd and of the executor, and
 * hints of this process about the machine. Nothing is polled. The agent's events are left to its chat page, because
 * following them would keep the machine awake; its questions are the executor's.
 */
import type { Clock } from '../kit/clock/clock.ts';
import { ChangedIds, type ChangedIdsOptions } from '../kit/http/changed-ids.ts';
import type { ConsoleBackend, Hint } from './backend.ts';

/** A burst of changes of one user loads the pages at most once in this time. */
const GATHER_MS = 200;
/**
 * Users notified per second, after a burst of the same size. Every notified page is loaded again. When the alarms of
 * hundreds of users fire at once, the limit leaves chronosd the capacity to fire.
 */
const NOTIFIED_PER_SECOND = 20;

type Events = ChangedIdsOptions['events'];
type Watched = {
  readonly listeners: Set<(hint: Hint) => void>;
  /** Resolves when the streams are open, or could not be opened. Changes from then on are found. */
  readonly opened: Promise<unknown>;
  readonly stop: () => void;
};

export class ChangeWatcher {
  readonly #clock: Clock;
  readonly #onHint: (user: string) => void;
  readonly #watched = new Map<ConsoleBackend, Watched>();
  /** End of the notification slots that are taken; monotonic ms. */
  #slotsEnd = Number.NEGATIVE_INFINITY;

  /** @param options.onHint called before the listeners, so that they do not reuse older reads */
  constructor(options: { clock: Clock; onHint: (user: string) => void }) {
    this.#clock = options.clock;
    this.#onHint = options.onHint;
  }

  watch(backend: ConsoleBackend, listener: (hint: Hint) => void): Pick<Watched, 'opened' | 'stop'> {
    const watched = this.#watched.get(backend) ?? this.#begin(backend);
    watched.listeners.add(listener);
    const stop = () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size > 0) return;
      watched.stop();
      if (this.#watched.get(backend) === watched) this.#watched.delete(backend);
    };
    return { opened: watched.opened, stop };
  }

  close(): void {
    for (const { stop } of this.#watched.values()) stop();
    this.#watched.clear();
  }

  #begin(backend: ConsoleBackend): Watched {
    const ended = new AbortController();
    const listeners: Watched['listeners'] = new Set();
    const notify = (hint: Hint) => {
      this.#onHint(backend.user);
      for (const listener of [...listeners]) listener(hint);
    };
    const notifyInSlot = this.#inSlots(notify, ended.signal);
    ended.signal.addEventListener('abort', backend.onHint(notifyInSlot));
    const follow = (hint: Hint, events: Events) => this.#follow(events, () => notifyInSlot(hint), ended.signal);
    const { alarms, intents } = backend;
    const opened = Promise.all([
      'there' in alarms && follow('alarms', (options) => alarms.there.events({ ...options, coalesceMs: GATHER_MS })),
      'there' in intents && follow('approvals', (options) => intents.there.events(options)),
    ]);
    const watched = { listeners, opened, stop: () => ended.abort() };
    this.#watched.set(backend, watched);
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

  /** @returns as {@link Watched.opened} */
  #follow(events: Events, onChange: () => void, signal: AbortSignal): Promise<void> {
    const changed = new ChangedIds({ events, clock: this.#clock, signal });
    const read = async () => {
      while (!signal.aborted) {
        await changed.next();
        onChange();
      }
    };
    void read();
    return changed.opened;
  }
}

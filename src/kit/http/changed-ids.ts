/**
 * Follows events as hints: gathers the ids of what has changed, for a reader that reads it again. Events that may have
 * been missed become one coarse hint, so the reader works on whatever happens to the stream.
 */
import { type CancelTimer, type Clock, wait } from '../clock/clock.ts';
import type { Connection, FollowStreamOptions } from './follow-stream.ts';

/** What has changed since the last read; `isAll`: anything may have. */
export type Changes = { readonly isAll: boolean; readonly ids: ReadonlySet<string> };

export type ChangedIdsOptions = {
  /** Opens the events. One without an id means that anything may have changed. */
  events: (options: FollowStreamOptions) => AsyncIterable<{
    readonly alarm_id?: string | undefined;
    readonly intent_id?: string | undefined;
    readonly turn_id?: string | undefined;
  }>;
  clock: Clock;
  /** Ends the stream. */
  signal: AbortSignal;
};

/** For a first read. */
export const ALL_CHANGED: Changes = { isAll: true, ids: new Set() };

/** A refused stream, as at a daemon of an earlier version, is tried again after this time, with a coarse hint. */
const REFUSED_MS = 5000;

export class ChangedIds {
  readonly #options: ChangedIdsOptions;
  readonly #opened = Promise.withResolvers<void>();
  #isAll = false;
  #isOpen = false;
  #ids = new Set<string>();
  #wake = () => {};

  constructor(options: ChangedIdsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => this.wake());
    void this.#follow();
  }

  /** Whether the stream is open now. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves when the stream is open for the first time, or could not be opened. Changes from then on are found. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Ends the current wait without a change. */
  wake(): void {
    this.#opened.resolve();
    this.#wake();
  }

  /** Adds a change as an event does; `undefined`: anything may have changed. */
  add(id: string | undefined): void {
    if (id === undefined) this.#isAll = true;
    else this.#ids.add(id);
    this.#wake();
  }

  /** Takes the changes; waits for one if there is none, at most for a time. */
  async next(atMostMs?: number): Promise<Changes> {
    if (!this.#isAll && this.#ids.size === 0 && !this.#options.signal.aborted) {
      const woken = Promise.withResolvers<void>();
      this.#wake = woken.resolve;
      const cancel: CancelTimer =
        atMostMs === undefined ? () => {} : this.#options.clock.after(atMostMs, () => woken.resolve());
      await woken.promise;
      cancel();
    }
    const changes = { isAll: this.#isAll, ids: this.#ids };
    this.#isAll = false;
    this.#ids = new Set();
    return changes;
  }

  /** These changes could not be read: the next wait returns them again. */
  giveBack({ isAll, ids }: Changes): void {
    this.#isAll ||= isAll;
    for (const id of ids) this.#ids.add(id);
  }

  async #follow(): Promise<void> {
    const { events, clock, signal } = this.#options;
    let isLost = false;
    const onConnection = ({ state }: Connection) => {
      const wasLost = isLost;
      isLost = state === 'lost';
      this.#isOpen = !isLost;
      if (isLost !== wasLost) this.add(undefined);
      this.#opened.resolve();
    };
    while (!signal.aborted) {
      try {
        for await (const { alarm_id, intent_id, turn_id } of events({ signal, onConnection }))
          this.add(alarm_id ?? intent_id ?? turn_id);
      } catch {
        this.#isOpen = false;
        // The reader meets the same refusal when it reads, and reports it.
        this.add(undefined);
        this.#opened.resolve();
        await wait(clock, REFUSED_MS, signal);
      }
    }
  }
}

/** Called with what has changed; must not throw. */
type ChangeListener = (changes: Changes) => void;

/** Shares one stream among listeners; it is open while there are any. */
export class ChangeHub {
  readonly #options: Omit<ChangedIdsOptions, 'signal'>;
  readonly #listeners = new Set<ChangeListener>();
  #changed: ChangedIds | undefined;
  #over: AbortController | undefined;

  constructor(options: Omit<ChangedIdsOptions, 'signal'>) {
    this.#options = options;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Whether the stream is open now. */
  get isOpen(): boolean {
    return this.#changed?.isOpen ?? false;
  }

  /** Calls the listener until the returned function is called; also when the stream is opened, or opened again. */
  follow(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    if (!this.#over) {
      this.#over = new AbortController();
      void this.#run(this.#over.signal);
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#over?.abort();
      this.#over = undefined;
      this.#changed = undefined;
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    const changed = new ChangedIds({ ...this.#options, signal });
    this.#changed = changed;
    await changed.opened;
    // Before that, nothing was reported.
    for (let changes = ALL_CHANGED; !signal.aborted; changes = await changed.next())
      for (const listener of [...this.#listeners]) listener(changes);
  }
}

/**
 * The events of followed owners in one process: a short log for each owner, which all its streams read. Everything here
 * follows from the store, so losing it loses nothing: a stream that resumes at another process reads the stored changes
 * since the instant of its last event.
 */
import { randomBytes } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';
import type { CancelTimer, Clock } from '../clock/clock.ts';

/** Events of one owner in the log; an event has a few hundred bytes. */
const LOG_EVENTS = 1000;
/** How long the log of an owner without streams is kept, for a stream that resumes. */
const KEPT_MS = 60_000;
/** Streams of one owner are woken at most once in this time: a burst is sent together. */
const GATHER_MS = 100;
/** A change that another one usually follows soon waits for it. */
const PRELUDE_MS = 75;
/** A change becomes visible after the instant that it carries; a resumed stream reads from this much earlier. */
const OVERLAP_MS = 10_000;
/** A stream that was interrupted for longer reads the state again. */
const LONGEST_GAP_MS = 3_600_000;

/** A stored change; `at` is epoch milliseconds, by the store's clock. */
type FeedChange = { readonly owner: string; readonly at: number };

/** Stored changes and their events. */
export type FeedSource<Change, Event> = {
  /** Reports changes of the followed owners after they are stored. */
  follow(follower: {
    /** The feed changes the set. */
    readonly owners: ReadonlySet<string>;
    /** Must not throw. */
    readonly onChanges: (changes: readonly Change[]) => void;
    /** The store is closed, and reports nothing more. */
    readonly onClosed: () => void;
  }): Promise<{
    /** Resolves when all later changes of the owners that are in the set now will be reported. */
    refresh(): Promise<void>;
  }>;
  /** The changes of an owner since an instant, oldest first; `undefined` when there are too many. */
  changesSince(owner: string, since: number): Promise<readonly Change[] | undefined>;
  /** Changes may be missing. */
  lost(owner: string, at: number): Change;
  /** The same for the same change, however often it is found. */
  keyOf(change: Change): string;
  eventOf(change: Change): Event;
  /** Another change usually follows soon, and both are sent together. */
  isPrelude?(change: Change): boolean;
  /** Makes a function, for the log of one owner, that adds missing changes before a change. */
  completer?(): (change: Change) => readonly Change[];
};

/** An event with its cursor, the `Last-Event-ID`. */
export type FeedItem<Event> = { readonly id: string; readonly event: Event };

/** The items of one stream. */
export type EventReader<Event> = {
  /** The cursor of the beginning. */
  readonly id: string;
  /** Items that are already there; none when there are no new ones. */
  take(): readonly FeedItem<Event>[];
  /** Calls back when there may be new items. */
  onItems(callback: () => void): void;
  /** Calls back when the store was closed: the stream has to be opened again. */
  onClosed(callback: () => void): void;
  end(): void;
};

const CURSOR = /^(\d{1,15})\.([0-9a-f]{8})\.(\d{1,15})$/;

/** Its event is made when a stream takes it. */
type Entry<Change> = { readonly id: string; readonly change: Change };

/** The latest events of one owner. */
class OwnerLog<Change extends FeedChange> {
  readonly #clock: Clock;
  readonly #process: string;
  readonly #isPrelude: (change: Change) => boolean;
  readonly #complete: (change: Change) => readonly Change[];
  readonly #entries: Entry<Change>[] = [];
  readonly #readers = new Set<() => void>();
  #seq = 0;
  #wokenAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #timer: CancelTimer | undefined;
  #latest: number;
  dropAt = Number.POSITIVE_INFINITY;

  constructor(
    clock: Clock,
    process: string,
    { isPrelude, completer }: Pick<FeedSource<Change, unknown>, 'isPrelude' | 'completer'>,
  ) {
    this.#clock = clock;
    this.#process = process;
    this.#isPrelude = isPrelude ?? (() => false);
    this.#complete = completer?.() ?? ((change) => [change]);
    this.#latest = clock.now();
  }

  get readers(): number {
    return this.#readers.size;
  }

  get seq(): number {
    return this.#seq;
  }

  get cursor(): string {
    return `${this.#latest}.${this.#process}.${this.#seq}`;
  }

  /** Adds changes and wakes the readers, at once or with the next burst. */
  add(changes: readonly Change[]): void {
    for (const change of changes) for (const each of this.#complete(change)) this.#push(each);
    const now = this.#clock.monotonic();
    const waitMs = Math.max(this.#wokenAt + GATHER_MS - now, changes.every(this.#isPrelude) ? PRELUDE_MS : 0);
    if (now + waitMs >= this.#wakeAt) return;
    this.#timer?.();
    const wake = () => {
      this.#timer = undefined;
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#wokenAt = this.#clock.monotonic();
      for (const reader of [...this.#readers]) reader();
    };
    if (waitMs <= 0) {
      wake();
    } else {
      this.#wakeAt = now + waitMs;
      this.#timer = this.#clock.after(waitMs, wake);
    }
  }

  /** The entries after a position; `undefined` when some are no longer there. */
  after(seq: number): readonly Entry<Change>[] | undefined {
    if (seq > this.#seq || this.#seq - seq > this.#entries.length) return undefined;
    return seq === this.#seq ? [] : this.#entries.slice(this.#entries.length - (this.#seq - seq));
  }

  /** Calls a reader when there are new entries. @returns ends it */
  listen(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  stop(): void {
    this.#timer?.();
  }

  #push(change: Change): void {
    this.#seq++;
    this.#latest = Math.max(this.#latest, change.at);
    this.#entries.push({ id: this.cursor, change });
    if (this.#entries.length > 2 * LOG_EVENTS) this.#entries.splice(0, LOG_EVENTS);
  }
}

export type EventFeedOptions<Change, Event> = {
  source: FeedSource<Change, Event>;
  /** The store's clock. */
  clock: Clock;
  /** The daemon's name in messages. */
  name: string;
};

export class EventFeed<Change extends FeedChange, Event> {
  readonly #options: EventFeedOptions<Change, Event>;
  /** Distinguishes the positions of different processes. */
  readonly #process = randomBytes(4).toString('hex');
  readonly #logs = new Map<string, OwnerLog<Change>>();
  readonly #owners = new Set<string>();
  readonly #closings = new Set<() => void>();
  #following: ReturnType<FeedSource<Change, Event>['follow']> | undefined;
  #cancelSweep: CancelTimer | undefined;
  #isClosed = false;

  constructor(options: EventFeedOptions<Change, Event>) {
    this.#options = options;
  }

  /**
   * Begins to read an owner's events.
   *
   * @param after the cursor of the last received event; absent: only events from now on
   * @throws ReveilleError `unavailable` when the store cannot be read
   */
  async open(owner: string, after: string | undefined): Promise<EventReader<Event>> {
    this.#dropOld();
    let log = this.#logs.get(owner);
    if (!log) {
      log = new OwnerLog(this.#options.clock, this.#process, this.#options.source);
      this.#logs.set(owner, log);
      this.#owners.add(owner);
    }
    log.dropAt = Number.POSITIVE_INFINITY;
    // The log must not be dropped while the store is read.
    const leave = log.listen(() => {});
    try {
      await (await this.#follow()).refresh();
      const { position, before } = await this.#resume(owner, log, after);
      if (this.#logs.get(owner) !== log) throw new ReveilleError('unavailable', 'the store is being reopened');
      return this.#reader(owner, log, position, before);
    } finally {
      leave();
      if (log.readers === 0) this.#release(owner, log);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#forget();
  }

  #follow(): ReturnType<FeedSource<Change, Event>['follow']> {
    if (this.#isClosed) throw new ReveilleError('unavailable', `${this.#options.name} is shutting down`);
    this.#following ??= this.#options.source
      .follow({
        owners: this.#owners,
        onChanges: (changes) => {
          for (const [owner, own] of Map.groupBy(changes, (change) => change.owner)) this.#logs.get(owner)?.add(own);
        },
        onClosed: () => this.#forget(),
      })
      .catch((error: unknown) => {
        this.#following = undefined;
        throw error;
      });
    return this.#following;
  }

  /** The position in the log, and the events before it. */
  async #resume(
    owner: string,
    log: OwnerLog<Change>,
    after: string | undefined,
  ): Promise<{ position: number; before: readonly FeedItem<Event>[] }> {
    const position = log.seq;
    if (after === undefined) return { position, before: [] };
    const [, at, process, seq] = CURSOR.exec(after) ?? [];
    if (process === this.#process && log.after(Number(seq))) return { position: Number(seq), before: [] };
    const now = this.#options.clock.now();
    const since = Number(at) - OVERLAP_MS;
    const isKnown = at !== undefined && now - since <= LONGEST_GAP_MS;
    const { source } = this.#options;
    const stored = isKnown ? await source.changesSince(owner, since) : undefined;
    // What was reported while the store was read is in both.
    const known = new Set(log.after(position)?.map(({ change }) => source.keyOf(change)));
    const changes = stored?.filter((change) => !known.has(source.keyOf(change))) ?? [source.lost(owner, now)];
    return { position, before: changes.map((change) => this.#item({ id: log.cursor, change })) };
  }

  #reader(owner: string, log: OwnerLog<Change>, start: number, before: readonly FeedItem<Event>[]): EventReader<Event> {
    let position = start;
    let waiting = before;
    let onItems = () => {};
    let onClosed = () => {};
    const leave = log.listen(() => onItems());
    const closed = () => onClosed();
    this.#closings.add(closed);
    return {
      id: log.cursor,
      take: () => {
        const found = log.after(position);
        const items = waiting.concat(found?.map((entry) => this.#item(entry)) ?? [this.#lost(owner, log)]);
        position = log.seq;
        waiting = [];
        return items;
      },
      onItems(callback) {
        onItems = callback;
        if (waiting.length > 0 || position !== log.seq) callback();
      },
      onClosed(callback) {
        onClosed = callback;
      },
      end: () => {
        leave();
        this.#closings.delete(closed);
        if (log.readers === 0) this.#release(owner, log);
      },
    };
  }

  #lost(owner: string, { cursor: id }: OwnerLog<Change>): FeedItem<Event> {
    const { source, clock } = this.#options;
    return this.#item({ id, change: source.lost(owner, clock.now()) });
  }

  #item({ id, change }: Entry<Change>): FeedItem<Event> {
    return { id, event: this.#options.source.eventOf(change) };
  }

  /** The owner has no streams: its log is kept for a moment. */
  #release(owner: string, log: OwnerLog<Change>): void {
    if (this.#logs.get(owner) !== log) return;
    log.dropAt = this.#options.clock.monotonic() + KEPT_MS;
    this.#cancelSweep ??= this.#options.clock.after(KEPT_MS + 1, () => this.#dropOld());
  }

  #dropOld(): void {
    const { clock } = this.#options;
    this.#cancelSweep?.();
    for (const [owner, log] of this.#logs) {
      if (log.dropAt > clock.monotonic()) continue;
      log.stop();
      this.#logs.delete(owner);
      this.#owners.delete(owner);
    }
    const isWaiting = [...this.#logs.values()].some(({ dropAt }) => dropAt < Number.POSITIVE_INFINITY);
    this.#cancelSweep = isWaiting ? clock.after(KEPT_MS / 4, () => this.#dropOld()) : undefined;
  }

  #forget(): void {
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    this.#following = undefined;
    for (const log of this.#logs.values()) log.stop();
    this.#logs.clear();
    this.#owners.clear();
    for (const closed of [...this.#closings]) closed();
    this.#closings.clear();
  }
}

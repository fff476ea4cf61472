/**
 * The events of followed owners in one process: a short log for each owner, which all its streams read. Everything here
 * follows from the store, so losing it loses nothing: a stream that resumes at another process reads the stored changes
 * since the instant of its last event.
 */
import { randomBytes } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';
import type { CancelTimer, Clock } from '../clock/clock.ts';
import { ChangeHints, type HintRequest } from './change-hints.ts';
import { formatEvent } from './sse.ts';

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

/** Of type `reset`: events may be missing. */
type FeedEvent = { readonly type: string };

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
  /** The type of its event. */
  typeOf(change: Change): string;
  /** The event for changes of these types; without it, streams cannot be merged. */
  mergedEventOf?(types: readonly string[], at: number): Event;
  /** Another change usually follows soon, and both are sent together. */
  isPrelude?(change: Change): boolean;
  /** Makes a function, for the log of one owner, that adds missing changes before a change. */
  completer?(): (change: Change) => readonly Change[];
};

/** An event with its cursor, the `Last-Event-ID`. `text`: as `text/event-stream`, if several streams send it. */
export type FeedItem<Event> = { readonly id: string; readonly event: Event; readonly text?: string };

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

/** Its event is made when a stream takes it. `latest`: of the instants up to its position. */
type Entry<Change> = { readonly seq: number; readonly latest: number; readonly change: Change };

/** Where a stream begins: its position in the log, and stored changes before it. */
type Start<Change> = { readonly position: number; readonly before: readonly Change[] };

/** What distinguishes streams of each event from merged ones. */
type Reading<Event> = {
  hasItems(): boolean;
  take(): readonly FeedItem<Event>[];
  /** @returns ends it */
  listen(onItems: () => void): () => void;
};

/** The latest events of one owner. */
class OwnerLog<Change extends FeedChange, Event extends FeedEvent> {
  readonly #owner: string;
  readonly #clock: Clock;
  readonly #process: string;
  readonly #source: FeedSource<Change, Event>;
  readonly #complete: (change: Change) => readonly Change[];
  readonly #entries: Entry<Change>[] = [];
  readonly #readers = new Set<() => void>();
  readonly #hints = new Map<string, ChangeHints<FeedItem<Event>>>();
  #seq = 0;
  #wokenAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #timer: CancelTimer | undefined;
  #latest: number;
  /** Its open streams, and streams that are being opened. */
  users = 0;
  dropAt = Number.POSITIVE_INFINITY;

  constructor(owner: string, clock: Clock, process: string, source: FeedSource<Change, Event>) {
    this.#owner = owner;
    this.#clock = clock;
    this.#process = process;
    this.#source = source;
    this.#complete = source.completer?.() ?? ((change) => [change]);
    this.#latest = clock.now();
  }

  get seq(): number {
    return this.#seq;
  }

  get cursor(): string {
    return this.#cursorAt(this.#latest, this.#seq);
  }

  /** Adds changes and wakes the readers, at once or with the next burst. */
  add(changes: readonly Change[]): void {
    for (const change of changes) for (const each of this.#complete(change)) this.#push(each);
    if (this.#readers.size === 0) return;
    const now = this.#clock.monotonic();
    const { isPrelude = () => false } = this.#source;
    const waitMs = Math.max(this.#wokenAt + GATHER_MS - now, changes.every(isPrelude) ? PRELUDE_MS : 0);
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

  itemOf({ seq, latest, change }: Entry<Change>): FeedItem<Event> {
    return { id: this.#cursorAt(latest, seq), event: this.#source.eventOf(change) };
  }

  /** Calls a reader when there are new entries. @returns ends it */
  listen(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** Merged events; the caller listens to them at once. */
  hints(request: HintRequest): ChangeHints<FeedItem<Event>> {
    for (const [key, { readers }] of this.#hints) if (readers === 0) this.#hints.delete(key);
    const key = ChangeHints.keyOf(request);
    const hints = this.#hints.get(key) ?? new ChangeHints(this.#clock, request, (types) => this.mergedItem(types));
    this.#hints.set(key, hints);
    return hints;
  }

  /** The item of changes up to now. */
  mergedItem(types: readonly string[]): FeedItem<Event> {
    const [id, at] = [this.cursor, this.#clock.now()];
    const isLost = types.includes('reset');
    const event = isLost
      ? this.#source.eventOf(this.#source.lost(this.#owner, at))
      : this.#source.mergedEventOf!(types, at);
    return { id, event, text: formatEvent({ id, event: event.type, data: JSON.stringify(event) }) };
  }

  stop(): void {
    this.#timer?.();
    for (const hints of this.#hints.values()) hints.stop();
  }

  #cursorAt(latest: number, seq: number): string {
    return `${latest}.${this.#process}.${seq}`;
  }

  #push(change: Change): void {
    this.#seq++;
    this.#latest = Math.max(this.#latest, change.at);
    this.#entries.push({ seq: this.#seq, latest: this.#latest, change });
    if (this.#entries.length > 2 * LOG_EVENTS) this.#entries.splice(0, LOG_EVENTS);
    for (const hints of this.#hints.values()) hints.note(this.#source.typeOf(change));
  }
}

export type EventFeedOptions<Change, Event> = {
  source: FeedSource<Change, Event>;
  /** The store's clock. */
  clock: Clock;
  /** The daemon's name in messages. */
  name: string;
};

export class EventFeed<Change extends FeedChange, Event extends FeedEvent> {
  readonly #options: EventFeedOptions<Change, Event>;
  /** Distinguishes the positions of different processes. */
  readonly #process = randomBytes(4).toString('hex');
  readonly #logs = new Map<string, OwnerLog<Change, Event>>();
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
   * @param merged one event for many changes; absent: each event
   * @throws ReveilleError `unavailable` when the store cannot be read
   */
  async open(owner: string, after: string | undefined, merged?: HintRequest): Promise<EventReader<Event>> {
    this.#dropOld();
    let log = this.#logs.get(owner);
    if (!log) {
      log = new OwnerLog(owner, this.#options.clock, this.#process, this.#options.source);
      this.#logs.set(owner, log);
      this.#owners.add(owner);
    }
    log.dropAt = Number.POSITIVE_INFINITY;
    // The log must not be dropped while the store is read.
    log.users++;
    try {
      await (await this.#follow()).refresh();
      const start = await this.#resume(owner, log, after);
      if (this.#logs.get(owner) !== log) throw new ReveilleError('unavailable', 'the store is being reopened');
      const reading = merged ? this.#readMerged(owner, log, start, merged) : this.#readEach(owner, log, start);
      return this.#reader(owner, log, reading);
    } catch (error) {
      this.#leave(owner, log);
      throw error;
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

  async #resume(owner: string, log: OwnerLog<Change, Event>, after: string | undefined): Promise<Start<Change>> {
    const position = log.seq;
    if (after === undefined) return { position, before: [] };
    const [, at, process, seq] = CURSOR.exec(after) ?? [];
    if (process === this.#process && log.after(Number(seq))) return { position: Number(seq), before: [] };
    const { source, clock } = this.#options;
    const now = clock.now();
    const since = Number(at) - OVERLAP_MS;
    const isKnown = at !== undefined && now - since <= LONGEST_GAP_MS;
    const stored = isKnown ? await source.changesSince(owner, since) : undefined;
    // What was reported while the store was read is in both.
    const known = new Set(log.after(position)?.map(({ change }) => source.keyOf(change)));
    const before = stored?.filter((change) => !known.has(source.keyOf(change))) ?? [source.lost(owner, now)];
    return { position, before };
  }

  #readEach(owner: string, log: OwnerLog<Change, Event>, start: Start<Change>): Reading<Event> {
    const { source, clock } = this.#options;
    let { position, before } = start;
    return {
      hasItems: () => before.length > 0 || position !== log.seq,
      take: () => {
        const found = log.after(position)?.map((entry) => log.itemOf(entry));
        const missing = found ? before : [...before, source.lost(owner, clock.now())];
        const items = missing.map((change) => ({ id: log.cursor, event: source.eventOf(change) }));
        position = log.seq;
        before = [];
        return found ? items.concat(found) : items;
      },
      listen: (onItems) => log.listen(onItems),
    };
  }

  #readMerged(
    owner: string,
    log: OwnerLog<Change, Event>,
    { position, before }: Start<Change>,
    request: HintRequest,
  ): Reading<Event> {
    const { source, clock } = this.#options;
    const hints = log.hints(request);
    const later = log.after(position)?.map(({ change }) => change) ?? [source.lost(owner, clock.now())];
    const types = new Set([...before, ...later].map(source.typeOf).filter((type) => hints.isWanted(type)));
    let waiting = types.size === 0 ? [] : [log.mergedItem([...types])];
    return {
      hasItems: () => waiting.length > 0,
      take: () => {
        const items = waiting;
        waiting = [];
        return items;
      },
      listen: (onItems) =>
        hints.listen((item) => {
          waiting.push(item);
          onItems();
        }),
    };
  }

  #reader(owner: string, log: OwnerLog<Change, Event>, { hasItems, take, listen }: Reading<Event>): EventReader<Event> {
    let onItems = () => {};
    let onClosed = () => {};
    const stop = listen(() => onItems());
    const closed = () => onClosed();
    this.#closings.add(closed);
    return {
      id: log.cursor,
      take,
      onItems(callback) {
        onItems = callback;
        if (hasItems()) callback();
      },
      onClosed(callback) {
        onClosed = callback;
      },
      end: () => {
        stop();
        this.#closings.delete(closed);
        this.#leave(owner, log);
      },
    };
  }

  #leave(owner: string, log: OwnerLog<Change, Event>): void {
    log.users--;
    if (log.users === 0) this.#release(owner, log);
  }

  /** The owner has no streams: its log is kept for a moment. */
  #release(owner: string, log: OwnerLog<Change, Event>): void {
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

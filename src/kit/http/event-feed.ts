/**
 * The events of followed owners in one process: a short log for each owner, which all its streams read. Everything here
 * follows from the store, so losing it loses nothing: a stream that resumes at another process reads the stored changes
 * since the instant of its last event.
 */
import { randomBytes } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';
import type { CancelTimer, Clock } from '../clock/clock.ts';
import type { HintRequest } from './change-hints.ts';
import type { FeedChange, FeedEvent, FeedItem, FeedSource } from './feed-source.ts';
import { KEPT_MS, OwnerLog } from './owner-log.ts';

/** A change becomes visible after the instant that it carries; a resumed stream reads from this much earlier. */
const OVERLAP_MS = 10_000;
/** A stream that was interrupted for longer reads the state again. */
const LONGEST_GAP_MS = 3_600_000;

/** The items of one stream. */
export type EventReader<Event> = {
  /** The cursor of the beginning, if no items wait. */
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

/** Where a stream begins: its position in the log, and stored changes before it. */
type Start<Change> = { readonly position: number; readonly before: readonly Change[] };

/** What distinguishes streams of each event from merged ones. */
type Reading<Event> = {
  hasItems(): boolean;
  take(): readonly FeedItem<Event>[];
  /** @returns ends it */
  listen(onItems: () => void): () => void;
};

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
  /** The first position of a new log: after those of dropped ones, whose cursors must not seem to be its own. */
  #first = 0;

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
      log = new OwnerLog(owner, { ...this.#options, process: this.#process, first: this.#first });
      this.#logs.set(owner, log);
      this.#owners.add(owner);
    }
    log.dropAt = Number.POSITIVE_INFINITY;
    // The log must not be dropped while the store is read.
    log.users++;
    if (!merged) log.keep();
    try {
      await (await this.#follow()).refresh();
      const start = await this.#resume(owner, log, after, merged !== undefined);
      if (this.#logs.get(owner) !== log) throw new ReveilleError('unavailable', 'the store is being reopened');
      const reading = merged ? this.#readMerged(log, start, merged) : this.#readEach(owner, log, start, after);
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

  async #resume(
    owner: string,
    log: OwnerLog<Change, Event>,
    after: string | undefined,
    isMerged: boolean,
  ): Promise<Start<Change>> {
    const position = log.seq;
    if (after === undefined) return { position, before: [] };
    const [, at, process, seq] = CURSOR.exec(after) ?? [];
    const isThere = process === this.#process && (isMerged ? log.typesAfter(Number(seq)) : log.after(Number(seq)));
    if (isThere) return { position: Number(seq), before: [] };
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

  #readEach(
    owner: string,
    log: OwnerLog<Change, Event>,
    start: Start<Change>,
    after: string | undefined,
  ): Reading<Event> {
    const { source, clock } = this.#options;
    let { position, before } = start;
    return {
      hasItems: () => before.length > 0 || position !== log.seq,
      take: () => {
        const found = log.after(position)?.map((entry) => log.itemOf(entry));
        const missing = found ? before : [...before, source.lost(owner, clock.now())];
        // A reader that is interrupted between two of them resumes before all of them.
        const isLast = (at: number) => at === missing.length - 1 && (found ?? []).length === 0;
        const items = missing.map((change, at) => {
          const id = isLast(at) ? log.cursor : (after ?? log.cursor);
          return { id, event: source.eventOf(change) };
        });
        position = log.seq;
        before = [];
        return found ? items.concat(found) : items;
      },
      listen: (onItems) => log.listen(onItems),
    };
  }

  #readMerged(log: OwnerLog<Change, Event>, { position, before }: Start<Change>, request: HintRequest): Reading<Event> {
    const hints = log.hints(request);
    const missed = new Set([...before.map(this.#options.source.typeOf), ...log.typesAfter(position)!]);
    const types = [...missed].filter((type) => hints.isWanted(type));
    let waiting = types.length === 0 ? [] : [log.mergedItem(types)];
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
      id: log.cursorNow,
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
      this.#first = Math.max(this.#first, log.seq + 1);
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
    for (const log of this.#logs.values()) {
      log.stop();
      this.#first = Math.max(this.#first, log.seq + 1);
    }
    this.#logs.clear();
    this.#owners.clear();
    for (const closed of [...this.#closings]) closed();
    this.#closings.clear();
  }
}

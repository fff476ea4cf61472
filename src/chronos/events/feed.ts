/**
 * The events of followed owners in one process: a short log for each owner, which all its streams read. Everything here
 * follows from the store, so losing it loses nothing: a stream that resumes at another process reads the stored changes
 * since the instant of its last event.
 */
import { randomBytes } from 'node:crypto';
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { ChronosEventType } from '../../wire/chronos-event.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from '../store/store.ts';
import { changeKey, type Following, type StoredChange } from '../store/stored-change.ts';
import { changedEvent } from './change-hints.ts';
import { eventOf, eventText, typeOf } from './event.ts';
import { OwnerLog } from './owner-log.ts';

/** How long the log of an owner without streams is kept, for a stream that resumes. */
const KEPT_MS = 60_000;
/** A change becomes visible after the instant that it carries; a resumed stream reads from this much earlier. */
const OVERLAP_MS = 10_000;
/** A stream that was interrupted for longer reads the state again. */
const LONGEST_GAP_MS = 3_600_000;

export type EventRequest = {
  readonly owner: string;
  /** The cursor of the last received event; absent: only events from now on. */
  readonly after?: string | undefined;
  /** Only these types, and `reset`; absent: all. */
  readonly types?: readonly ChronosEventType[] | undefined;
  /** Merges the events of this time into one `changed`, as {@link ChangeHints}. */
  readonly coalesceMs?: number | undefined;
};

/** The events of one stream, as `text/event-stream`. */
export type EventReader = {
  /** The cursor of the beginning, the `Last-Event-ID`. */
  readonly id: string;
  /** Events that are already there; none when there are no new ones. */
  take(): readonly string[];
  /** Calls back when there may be new events. */
  onEvents(callback: () => void): void;
  /** Calls back when the store was closed: the stream has to be opened again. */
  onClosed(callback: () => void): void;
  end(): void;
};

/** Where a stream begins: its position in the log, and stored changes before it. */
type Start = { readonly position: number; readonly before: readonly StoredChange[] };

/** What distinguishes the two kinds of streams. */
type Reading = {
  hasEvents(): boolean;
  take(): readonly string[];
  /** @returns ends it */
  listen(callback: () => void): () => void;
};

const CURSOR = /^(\d{1,15})\.([0-9a-f]{8})\.(\d{1,15})$/;

export type EventFeedOptions = {
  store: Pick<AlarmStore, 'follow' | 'changesSince'>;
  /** The store's clock. */
  clock: Clock;
};

export class EventFeed {
  readonly #options: EventFeedOptions;
  /** Distinguishes the positions of different processes. */
  readonly #process = randomBytes(4).toString('hex');
  readonly #logs = new Map<string, OwnerLog>();
  readonly #owners = new Set<string>();
  readonly #closings = new Set<() => void>();
  #following: Promise<Following> | undefined;
  #cancelSweep: CancelTimer | undefined;
  #isClosed = false;

  constructor(options: EventFeedOptions) {
    this.#options = options;
  }

  /**
   * Begins to read an owner's events.
   *
   * @throws ReveilleError `unavailable` when the store cannot be read
   */
  async open(request: EventRequest): Promise<EventReader> {
    const { owner, after, coalesceMs } = request;
    this.#dropOld();
    let log = this.#logs.get(owner);
    if (!log) {
      log = new OwnerLog(this.#options.clock, this.#process);
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
      const read =
        coalesceMs === undefined ? this.#readEach(log, start, request) : this.#readMerged(log, start, request);
      return this.#reader(owner, log, read);
    } catch (error) {
      this.#leave(owner, log);
      throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#forget();
  }

  #follow(): Promise<Following> {
    if (this.#isClosed) throw new ReveilleError('unavailable', 'chronosd is shutting down');
    this.#following ??= this.#options.store
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

  async #resume(owner: string, log: OwnerLog, after: string | undefined): Promise<Start> {
    const position = log.seq;
    if (after === undefined) return { position, before: [] };
    const [, at, process, seq] = CURSOR.exec(after) ?? [];
    if (process === this.#process && log.after(Number(seq))) return { position: Number(seq), before: [] };
    const now = this.#options.clock.now();
    const since = Number(at) - OVERLAP_MS;
    const isKnown = at !== undefined && now - since <= LONGEST_GAP_MS;
    const stored = isKnown ? await this.#options.store.changesSince(owner, since) : undefined;
    // What was reported while the store was read is in both.
    const known = new Set(log.after(position)?.map(({ change }) => changeKey(change)));
    const before = stored?.filter((change) => !known.has(changeKey(change))) ?? [this.#lost(owner)];
    return { position, before };
  }

  /** Each event. */
  #readEach(log: OwnerLog, start: Start, { owner, types }: EventRequest): Reading {
    const wanted = types && new Set<ChronosEventType>([...types, 'reset']);
    const isWanted = (change: StoredChange) => wanted?.has(typeOf(change)) ?? true;
    let { position, before } = start;
    return {
      hasEvents: () => before.length > 0 || position !== log.seq,
      take: () => {
        const { cursor, seq } = log;
        const missing = (changes: readonly StoredChange[]) =>
          changes.filter(isWanted).map((change) => eventText(cursor, eventOf(change)));
        const found = log.after(position)?.filter(({ change }) => isWanted(change));
        const texts = missing(before).concat(found?.map((entry) => log.textOf(entry)) ?? missing([this.#lost(owner)]));
        position = seq;
        before = [];
        return texts;
      },
      listen: (callback) => log.listen(callback),
    };
  }

  /** Merged events, the same for all such streams of the owner. */
  #readMerged(log: OwnerLog, { position, before }: Start, { owner, types, coalesceMs }: EventRequest): Reading {
    const hints = log.hints(coalesceMs!, types);
    const since = log.after(position)?.map(({ change }) => change) ?? [this.#lost(owner)];
    const changes = [...before, ...since];
    const missed = changes.map(typeOf).filter((type) => hints.isWanted(type));
    let waiting = missed.length === 0 ? [] : [eventText(log.cursor, changedEvent(missed, this.#options.clock.now()))];
    return {
      hasEvents: () => waiting.length > 0,
      take: () => {
        const texts = waiting;
        waiting = [];
        return texts;
      },
      listen: (callback) =>
        hints.listen((text) => {
          waiting.push(text);
          callback();
        }),
    };
  }

  #reader(owner: string, log: OwnerLog, { hasEvents, take, listen }: Reading): EventReader {
    let onEvents = () => {};
    let onClosed = () => {};
    const stop = listen(() => onEvents());
    const closed = () => onClosed();
    this.#closings.add(closed);
    return {
      id: log.cursor,
      take,
      onEvents(callback) {
        onEvents = callback;
        if (hasEvents()) callback();
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

  #lost(owner: string): StoredChange {
    return { kind: 'lost', owner, at: this.#options.clock.now() };
  }

  #leave(owner: string, log: OwnerLog): void {
    log.users--;
    if (log.users === 0) this.#release(owner, log);
  }

  /** The owner has no streams: its log is kept for a moment. */
  #release(owner: string, log: OwnerLog): void {
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

/**
 * The events of followed owners in one process: a short log for each owner, which all its streams read. Everything here
 * follows from the store, so losing it loses nothing: a stream that resumes at another process reads the stored changes
 * since the instant of its last event.
 */
import { randomBytes } from 'node:crypto';
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { ChronosEvent } from '../../wire/chronos-event.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AlarmStore } from '../store/store.ts';
import { changeKey, type Following, type StoredChange } from '../store/stored-change.ts';
import { eventOf } from './event.ts';

/** Events of one owner in the log; an event has a few hundred bytes. */
const LOG_EVENTS = 1000;
/** How long the log of an owner without streams is kept, for a stream that resumes. */
const KEPT_MS = 60_000;
/** Streams of one owner are woken at most once in this time: a burst is sent together. */
const GATHER_MS = 100;
/** The start of an attempt waits for its end, which usually follows soon. */
const START_MS = 75;
/** A change becomes visible after the instant that it carries; a resumed stream reads from this much earlier. */
const OVERLAP_MS = 10_000;
/** A stream that was interrupted for longer reads the state again. */
const LONGEST_GAP_MS = 3_600_000;

/** An event with its cursor, the `Last-Event-ID`. */
export type FeedItem = { readonly id: string; readonly event: ChronosEvent };

/** The items of one stream. */
export type EventReader = {
  /** The cursor of the beginning. */
  readonly id: string;
  /** Items that are already there; none when there are no new ones. */
  take(): readonly FeedItem[];
  /** Calls back when there may be new items. */
  onItems(callback: () => void): void;
  /** Calls back when the store was closed: the stream has to be opened again. */
  onClosed(callback: () => void): void;
  end(): void;
};

const CURSOR = /^(\d{1,15})\.([0-9a-f]{8})\.(\d{1,15})$/;

/** Its event is made when a stream takes it. */
type Entry = { readonly id: string; readonly change: StoredChange };

const itemOf = ({ id, change }: Entry): FeedItem => ({ id, event: eventOf(change) });

/** The latest events of one owner. */
class OwnerLog {
  readonly #clock: Clock;
  readonly #process: string;
  readonly #entries: Entry[] = [];
  readonly #readers = new Set<() => void>();
  /** Keys of attempts whose start was reported: an attempt without one gets it with its end. */
  readonly #started = new Set<string>();
  #seq = 0;
  #wokenAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #timer: CancelTimer | undefined;
  #latest: number;
  dropAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, process: string) {
    this.#clock = clock;
    this.#process = process;
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
  add(changes: readonly StoredChange[]): void {
    for (const change of changes) for (const each of this.#withStart(change)) this.#push(each);
    const now = this.#clock.monotonic();
    const isStart = changes.every(({ kind }) => kind === 'claimed');
    const waitMs = Math.max(this.#wokenAt + GATHER_MS - now, isStart ? START_MS : 0);
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
  after(seq: number): readonly Entry[] | undefined {
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

  #withStart(change: StoredChange): StoredChange[] {
    if (change.kind === 'claimed') {
      this.#started.add(`${change.fireId} ${change.attempt}`);
      return [change];
    }
    if (change.kind !== 'attempt' || change.attempt.outcome === 'missed') return [change];
    const { owner, alarmId, fireId, attempt, startedAt } = change.attempt;
    if (this.#started.delete(`${fireId} ${attempt}`)) return [change];
    return [{ kind: 'claimed', owner, alarmId, at: startedAt, fireId, attempt }, change];
  }

  #push(change: StoredChange): void {
    this.#seq++;
    this.#latest = Math.max(this.#latest, change.at);
    this.#entries.push({ id: this.cursor, change });
    if (this.#entries.length > 2 * LOG_EVENTS) this.#entries.splice(0, LOG_EVENTS);
    if (this.#started.size > LOG_EVENTS) this.#started.clear();
  }
}

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
   * @param after the cursor of the last received event; absent: only events from now on
   * @throws ReveilleError `unavailable` when the store cannot be read
   */
  async open(owner: string, after: string | undefined): Promise<EventReader> {
    this.#dropOld();
    let log = this.#logs.get(owner);
    if (!log) {
      log = new OwnerLog(this.#options.clock, this.#process);
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

  /** The position in the log, and the events before it. */
  async #resume(
    owner: string,
    log: OwnerLog,
    after: string | undefined,
  ): Promise<{ position: number; before: readonly FeedItem[] }> {
    const position = log.seq;
    if (after === undefined) return { position, before: [] };
    const [, at, process, seq] = CURSOR.exec(after) ?? [];
    if (process === this.#process && log.after(Number(seq))) return { position: Number(seq), before: [] };
    const now = this.#options.clock.now();
    const since = Number(at) - OVERLAP_MS;
    const isKnown = at !== undefined && now - since <= LONGEST_GAP_MS;
    const stored = isKnown ? await this.#options.store.changesSince(owner, since) : undefined;
    const lost: StoredChange[] = [{ kind: 'lost', owner, at: now }];
    // What was reported while the store was read is in both.
    const known = new Set(log.after(position)?.map(({ change }) => changeKey(change)));
    const changes = stored?.filter((change) => !known.has(changeKey(change))) ?? lost;
    return { position, before: changes.map((change) => ({ id: log.cursor, event: eventOf(change) })) };
  }

  #reader(owner: string, log: OwnerLog, start: number, before: readonly FeedItem[]): EventReader {
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
        const items = waiting.concat(found?.map(itemOf) ?? this.#lost(owner, log));
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

  #lost(owner: string, log: OwnerLog): FeedItem[] {
    return [{ id: log.cursor, event: eventOf({ kind: 'lost', owner, at: this.#options.clock.now() }) }];
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

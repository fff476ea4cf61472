/** The latest changes of one owner in one process, for all its streams. */
import type { CancelTimer, Clock } from '../clock/clock.ts';
import { ChangeHints, type HintRequest } from './change-hints.ts';
import type { FeedChange, FeedEvent, FeedItem, FeedSource } from './feed-source.ts';
import { formatEvent } from './sse.ts';

/** How long the log of an owner without streams is kept, for a stream that resumes. */
export const KEPT_MS = 60_000;
/** Events of one owner in the log; an event has a few hundred bytes. */
const LOG_EVENTS = 1000;
/** Streams of one owner are woken at most once in this time: a burst is sent together. */
const GATHER_MS = 100;
/** A change that another one usually follows soon waits for it. */
const PRELUDE_MS = 75;

/** Its event is made when a stream takes it. `latest`: of the instants up to its position. */
export type Entry<Change> = { readonly seq: number; readonly latest: number; readonly change: Change };

export class OwnerLog<Change extends FeedChange, Event extends FeedEvent> {
  readonly #owner: string;
  readonly #clock: Clock;
  readonly #process: string;
  readonly #source: FeedSource<Change, Event>;
  readonly #complete: (change: Change) => readonly Change[];
  readonly #entries: Entry<Change>[] = [];
  readonly #readers = new Set<() => void>();
  readonly #hints = new Map<string, ChangeHints<FeedItem<Event>>>();
  /** The position of the latest change of each type. */
  readonly #seqOfType = new Map<string, number>();
  /** The position of the beginning; cursors of an earlier log of the owner are before it. */
  readonly #first: number;
  #seq: number;
  /** Until when entries are kept without a reader; monotonic ms. */
  #keptUntil = Number.NEGATIVE_INFINITY;
  #wokenAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #timer: CancelTimer | undefined;
  #latest: number;
  /** Its open streams, and streams that are being opened. */
  users = 0;
  dropAt = Number.POSITIVE_INFINITY;

  constructor(
    owner: string,
    {
      clock,
      source,
      process,
      first,
    }: { clock: Clock; source: FeedSource<Change, Event>; process: string; first: number },
  ) {
    this.#first = first;
    this.#seq = first;
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

  /** The same position, for a reader that has every change until now. */
  get cursorNow(): string {
    return this.#cursorAt(Math.max(this.#latest, this.#clock.now()), this.#seq);
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

  /** Types of the changes after a position; `undefined` for a position of another log. */
  typesAfter(seq: number): readonly string[] | undefined {
    if (seq < this.#first || seq > this.#seq) return undefined;
    return [...this.#seqOfType].filter(([, latest]) => latest > seq).map(([type]) => type);
  }

  /** Keeps entries for a moment, for a stream that is being opened or resumes. */
  keep(): void {
    this.#keptUntil = this.#clock.monotonic() + KEPT_MS;
  }

  /** Calls a reader when there are new entries. @returns ends it */
  listen(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => {
      this.#readers.delete(reader);
      this.keep();
    };
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
    const type = this.#source.typeOf(change);
    this.#seqOfType.set(type, this.#seq);
    for (const hints of this.#hints.values()) hints.note(type);
    // Merged streams need no entries.
    if (this.#readers.size === 0 && this.#clock.monotonic() > this.#keptUntil) this.#entries.length = 0;
    else this.#entries.push({ seq: this.#seq, latest: this.#latest, change });
    if (this.#entries.length > 2 * LOG_EVENTS) this.#entries.splice(0, LOG_EVENTS);
  }
}

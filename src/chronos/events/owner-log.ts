/** The latest changes of one owner in one process, and the streams that read them. */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { ChronosEventType } from '../../wire/chronos-event.ts';
import type { StoredChange } from '../store/stored-change.ts';
import { ChangeHints } from './change-hints.ts';
import { eventOf, eventText, typeOf } from './event.ts';

/** Changes of one owner in the log; an event has a few hundred bytes. */
const LOG_EVENTS = 1000;
/** Streams of one owner are woken at most once in this time: a burst is sent together. */
const GATHER_MS = 100;
/** The start of an attempt waits for its end, which usually follows soon. */
const START_MS = 75;

/** A change and the latest instant so far. Its event is made when a stream takes it. */
export type Entry = { readonly seq: number; readonly latest: number; readonly change: StoredChange };

export class OwnerLog {
  readonly #clock: Clock;
  readonly #process: string;
  readonly #entries: Entry[] = [];
  readonly #readers = new Set<() => void>();
  /** By interval and types, so that equal streams share their events. */
  readonly #hints = new Map<string, ChangeHints>();
  /** Keys of attempts whose start was reported: an attempt without one gets it with its end. */
  readonly #started = new Set<string>();
  #seq = 0;
  #wokenAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #timer: CancelTimer | undefined;
  #latest: number;
  /** Streams of both kinds, and those that are being opened. */
  users = 0;
  dropAt = Number.POSITIVE_INFINITY;

  /** @param process distinguishes the positions of different processes */
  constructor(clock: Clock, process: string) {
    this.#clock = clock;
    this.#process = process;
    this.#latest = clock.now();
  }

  get seq(): number {
    return this.#seq;
  }

  get cursor(): string {
    return this.#cursorAt(this.#latest, this.#seq);
  }

  /** Adds changes and wakes the readers, at once or with the next burst. */
  add(changes: readonly StoredChange[]): void {
    for (const change of changes) for (const each of this.#withStart(change)) this.#push(each);
    if (this.#readers.size === 0) return;
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

  textOf({ seq, latest, change }: Entry): string {
    return eventText(this.#cursorAt(latest, seq), eventOf(change));
  }

  /** Calls a reader when there are new entries. @returns ends it */
  listen(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** The merged changes of some types; the caller listens to them at once. */
  hints(everyMs: number, types: readonly ChronosEventType[] | undefined): ChangeHints {
    const key = `${everyMs} ${types?.toSorted() ?? ''}`;
    const known = this.#hints.get(key);
    if (known) return known;
    const hints = new ChangeHints({
      ...{ clock: this.#clock, everyMs, types, cursor: () => this.cursor },
      onUnused: () => void this.#hints.delete(key),
    });
    this.#hints.set(key, hints);
    return hints;
  }

  stop(): void {
    this.#timer?.();
    for (const hints of this.#hints.values()) hints.stop();
  }

  #cursorAt(latest: number, seq: number): string {
    return `${latest}.${this.#process}.${seq}`;
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
    this.#entries.push({ seq: this.#seq, latest: this.#latest, change });
    if (this.#entries.length > 2 * LOG_EVENTS) this.#entries.splice(0, LOG_EVENTS);
    if (this.#started.size > LOG_EVENTS) this.#started.clear();
    if (this.#hints.size === 0) return;
    const type = typeOf(change);
    for (const hints of this.#hints.values()) hints.note(type);
  }
}

/**
 * One event for many changes: for readers that read the state again after any change. Its cost does not grow with the
 * changes, and its text is the same for all streams.
 */
import type { CancelTimer, Clock } from '../clock/clock.ts';

/** From a first change to its event. Long enough that the start of an attempt is announced with its end. */
const FIRST_MS = 75;

export type HintRequest = {
  /** Minimum time between two events. */
  readonly everyMs: number;
  /** Only changes of these types; absent: all. */
  readonly types?: readonly string[] | undefined;
};

export class ChangeHints<Item> {
  readonly #clock: Clock;
  readonly #request: HintRequest;
  readonly #make: (types: readonly string[]) => Item;
  readonly #readers = new Set<(item: Item) => void>();
  /** Types of the changes that the next event announces. */
  #types = new Set<string>();
  #announcedAt = Number.NEGATIVE_INFINITY;
  #timer: CancelTimer | undefined;

  /** @param make the event of changes up to now */
  constructor(clock: Clock, request: HintRequest, make: (types: readonly string[]) => Item) {
    this.#clock = clock;
    this.#request = request;
    this.#make = make;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** The same for streams that can share their events. */
  static keyOf({ everyMs, types }: HintRequest): string {
    return `${everyMs} ${types?.toSorted() ?? 'all'}`;
  }

  isWanted(type: string): boolean {
    const { types } = this.#request;
    return types === undefined || type === 'reset' || types.includes(type);
  }

  /** Announces a change with the next event. */
  note(type: string): void {
    if (this.#readers.size === 0 || this.#types.has(type) || !this.isWanted(type)) return;
    this.#types.add(type);
    const waitMs = this.#announcedAt + this.#request.everyMs - this.#clock.monotonic();
    this.#timer ??= this.#clock.after(Math.max(FIRST_MS, waitMs), () => this.#announce());
  }

  /** @returns ends it */
  listen(reader: (item: Item) => void): () => void {
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  stop(): void {
    this.#timer?.();
    this.#timer = undefined;
  }

  #announce(): void {
    const item = this.#make([...this.#types]);
    this.#timer = undefined;
    this.#types = new Set();
    this.#announcedAt = this.#clock.monotonic();
    for (const reader of [...this.#readers]) reader(item);
  }
}

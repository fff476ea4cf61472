/**
 * One `changed` event for many: for readers that read the state again after any change. Its cost does not grow with the
 * changes, and its text is the same for all streams.
 */
import type { CancelTimer, Clock } from '../../kit/clock/clock.ts';
import type { ChronosEvent, ChronosEventType } from '../../wire/chronos-event.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { eventText } from './event.ts';

/** From a first change to its event. Long enough that the start of an attempt is announced with its end. */
const FIRST_MS = 75;

export type ChangeHintsOptions = {
  clock: Clock;
  /** Minimum time between two events. */
  everyMs: number;
  /** Only changes of these types; absent: all. */
  types: readonly ChronosEventType[] | undefined;
  /** The position after the latest change. */
  cursor: () => string;
  /** The last reader has left. */
  onUnused: () => void;
};

/** The event for changes of some types. After `reset`, their types are not known. */
export function changedEvent(types: Iterable<ChronosEventType>, now: number): ChronosEvent {
  const found = [...new Set(types)];
  const at = formatInstant(now);
  return found.includes('reset') ? { type: 'reset', at } : { type: 'changed', at, types: found };
}

export class ChangeHints {
  readonly #options: ChangeHintsOptions;
  readonly #wanted: ReadonlySet<ChronosEventType> | undefined;
  readonly #readers = new Set<(text: string) => void>();
  /** Types of the changes that the next event announces. */
  #types = new Set<ChronosEventType>();
  #announcedAt = Number.NEGATIVE_INFINITY;
  #timer: CancelTimer | undefined;

  constructor(options: ChangeHintsOptions) {
    this.#options = options;
    this.#wanted = options.types && new Set([...options.types, 'reset' as const]);
  }

  isWanted(type: ChronosEventType): boolean {
    return this.#wanted?.has(type) ?? true;
  }

  /** Announces a change with the next event. */
  note(type: ChronosEventType): void {
    if (this.#types.has(type) || !this.isWanted(type)) return;
    this.#types.add(type);
    const { clock, everyMs } = this.#options;
    this.#timer ??= clock.after(Math.max(FIRST_MS, this.#announcedAt + everyMs - clock.monotonic()), () =>
      this.#announce(),
    );
  }

  /** @returns ends it */
  listen(reader: (text: string) => void): () => void {
    this.#readers.add(reader);
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) return;
      this.stop();
      this.#options.onUnused();
    };
  }

  stop(): void {
    this.#timer?.();
    this.#timer = undefined;
  }

  #announce(): void {
    const { clock, cursor } = this.#options;
    const types = this.#types;
    this.#timer = undefined;
    this.#types = new Set();
    this.#announcedAt = clock.monotonic();
    const text = eventText(cursor(), changedEvent(types, clock.now()));
    for (const reader of [...this.#readers]) reader(text);
  }
}

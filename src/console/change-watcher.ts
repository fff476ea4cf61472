/**
 * Detects changes once per user, however many pages are open: by hints of the installation, and by polling while a page
 * is open.
 */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { ConsoleBackend, Hint, Part } from './backend.ts';
import type { Waiting } from './waiting-questions.ts';

/** Short enough that a change reaches the page within a second, also with slow backends. */
const POLL_EVERY_MS = 400;
/** The interval grows with the number of users. */
const PER_USER_MS = 5;
const ALARMS_COMPARED = 20;
/**
 * Users notified per second, after a burst of the same size. Every notified page is loaded again. When the alarms of
 * hundreds of users fire at once, the limit leaves chronosd the capacity to fire.
 */
const NOTIFIED_PER_SECOND = 20;

type Watched = { listeners: Set<(hint: Hint) => void>; stop: () => void };

export class ChangeWatcher {
  readonly #clock: Clock;
  readonly #waiting: (backend: ConsoleBackend) => Waiting;
  readonly #onHint: (user: string) => void;
  readonly #watched = new Map<ConsoleBackend, Watched>();
  /** End of the notification slots that are taken; monotonic ms. */
  #slotsEnd = Number.NEGATIVE_INFINITY;

  /** @param options.onHint called before the listeners, so that they do not reuse older reads */
  constructor(options: {
    clock: Clock;
    waiting: (backend: ConsoleBackend) => Waiting;
    onHint: (user: string) => void;
  }) {
    this.#clock = options.clock;
    this.#waiting = options.waiting;
    this.#onHint = options.onHint;
  }

  /** @returns a function that ends it */
  watch(backend: ConsoleBackend, listener: (hint: Hint) => void): () => void {
    const watched = this.#watched.get(backend) ?? this.#begin(backend);
    watched.listeners.add(listener);
    return () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size > 0) return;
      watched.stop();
      if (this.#watched.get(backend) === watched) this.#watched.delete(backend);
    };
  }

  close(): void {
    for (const { stop } of this.#watched.values()) stop();
    this.#watched.clear();
  }

  #begin(backend: ConsoleBackend): Watched {
    const ended = new AbortController();
    const watched: Watched = { listeners: new Set(), stop: () => ended.abort() };
    const notify = (hint: Hint) => {
      this.#onHint(backend.user);
      for (const listener of [...watched.listeners]) listener(hint);
    };
    this.#watched.set(backend, watched);
    const stopListening = backend.onHint(notify);
    ended.signal.addEventListener('abort', stopListening);
    void this.#poll(backend, notify, ended.signal);
    return watched;
  }

  /** The next free notification slot, in ms from now. */
  #nextSlot(): number {
    const now = this.#clock.monotonic();
    this.#slotsEnd = Math.max(this.#slotsEnd, now - 1000) + 1000 / NOTIFIED_PER_SECOND;
    return Math.max(0, this.#slotsEnd - now);
  }

  async #poll(backend: ConsoleBackend, notify: (hint: Hint) => void, signal: AbortSignal): Promise<void> {
    const seen = new Map<Hint, string>();
    const waiting = new Set<Hint>();
    const notifyInSlot = (hint: Hint) => {
      if (waiting.has(hint)) return;
      waiting.add(hint);
      const cancel = this.#clock.after(this.#nextSlot(), () => {
        signal.removeEventListener('abort', cancel);
        waiting.delete(hint);
        if (!signal.aborted) notify(hint);
      });
      signal.addEventListener('abort', cancel);
    };
    const compare = async (hint: Hint, read: () => Promise<string | undefined>) => {
      // The page itself shows the error of an unreachable backend.
      const found = await read().catch(() => undefined);
      const before = seen.get(hint);
      if (found === undefined || signal.aborted) return;
      seen.set(hint, found);
      if (before !== undefined && before !== found) notifyInSlot(hint);
    };
    while (!signal.aborted) {
      await Promise.all([
        compare('alarms', () =>
          of(backend.alarms, async (alarms) => {
            const mark = await alarms.alarmMark({ signal });
            if (mark !== undefined) return mark;
            const [newest, next] = await Promise.all([
              alarms.listAlarms({ limit: ALARMS_COMPARED }, { signal }),
              alarms.listAlarms({ limit: ALARMS_COMPARED, sort: 'next' }, { signal }),
            ]);
            return JSON.stringify([newest.alarms, next.alarms].flat().map(outline));
          }),
        ),
        compare('approvals', async () => {
          const gates = await this.#waiting(backend).renew();
          return JSON.stringify(gates.map(({ gate }) => gate.displayed_sha256));
        }),
        compare('machines', () =>
          of(backend.machines, async (machines) => {
            const { state, running, updated_at } = await machines.show(backend.user);
            return JSON.stringify([state, running, updated_at]);
          }),
        ),
      ]);
      await wait(this.#clock, Math.max(POLL_EVERY_MS, this.#watched.size * PER_USER_MS), signal);
    }
  }
}

const of = async <T>(part: Part<T>, read: (there: T) => Promise<string>) =>
  'there' in part ? read(part.there) : undefined;

type Outlined = {
  id: string;
  status: string;
  next_fire_at?: string | undefined;
  fire_count: number;
  failure_count: number;
};
const outline = (
  alarm: Outlined & { in_flight: boolean; label: string; wake_message: string; last_error?: string | undefined },
) => [
  ...[alarm.id, alarm.status, alarm.next_fire_at, alarm.fire_count, alarm.failure_count],
  ...[alarm.in_flight, alarm.label, alarm.wake_message, alarm.last_error],
];

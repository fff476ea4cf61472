/**
 * Finds out that something has changed, once for each person however many of their consoles are open: by what the
 * installation tells, and by looking, as long as somebody watches.
 */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { Desk, Hint, Part } from './desk.ts';
import type { Waiting } from './waiting-questions.ts';

/** Together with the way to the page, less than a second, also where what is asked takes its time. */
const LOOK_EVERY_MS = 400;
/** With many people, each is looked at less often. */
const PER_PERSON_MS = 5;
const ALARMS_LOOKED_AT = 20;
/**
 * People who are told in a second that something of theirs has changed, after this many at once. Whoever is told reads
 * a page: where the alarms of hundreds ring at one moment, they see it one after the other, and chronosd goes on ringing.
 */
const TOLD_PER_SECOND = 20;

type Watched = { listeners: Set<(hint: Hint) => void>; stop: () => void };

export class ChangeWatcher {
  readonly #clock: Clock;
  readonly #waiting: (backend: Desk) => Waiting;
  readonly #onHint: (user: string) => void;
  readonly #watched = new Map<Desk, Watched>();
  /** Until when turns to be told have been given out; monotonic ms. */
  #givenOut = Number.NEGATIVE_INFINITY;

  /** @param options.onHint told first, so that nobody is given what was read before it */
  constructor(options: { clock: Clock; waiting: (backend: Desk) => Waiting; onHint: (user: string) => void }) {
    this.#clock = options.clock;
    this.#waiting = options.waiting;
    this.#onHint = options.onHint;
  }

  /** @returns ends it */
  watch(backend: Desk, listener: (hint: Hint) => void): () => void {
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

  #begin(backend: Desk): Watched {
    const over = new AbortController();
    const watched: Watched = { listeners: new Set(), stop: () => over.abort() };
    const tell = (hint: Hint) => {
      this.#onHint(backend.user);
      for (const listener of [...watched.listeners]) listener(hint);
    };
    this.#watched.set(backend, watched);
    const stopListening = backend.onHint(tell);
    over.signal.addEventListener('abort', stopListening);
    void this.#look(backend, tell, over.signal);
    return watched;
  }

  /** When it is somebody's turn to be told, in ms from now. */
  #turn(): number {
    const now = this.#clock.monotonic();
    this.#givenOut = Math.max(this.#givenOut, now - 1000) + 1000 / TOLD_PER_SECOND;
    return Math.max(0, this.#givenOut - now);
  }

  async #look(backend: Desk, tell: (hint: Hint) => void, signal: AbortSignal): Promise<void> {
    const seen = new Map<Hint, string>();
    const waiting = new Set<Hint>();
    const tellInTurn = (hint: Hint) => {
      if (waiting.has(hint)) return;
      waiting.add(hint);
      const cancel = this.#clock.after(this.#turn(), () => {
        signal.removeEventListener('abort', cancel);
        waiting.delete(hint);
        if (!signal.aborted) tell(hint);
      });
      signal.addEventListener('abort', cancel);
    };
    const compare = async (hint: Hint, look: () => Promise<string | undefined>) => {
      // What cannot be asked now is told by the page that asks for it.
      const found = await look().catch(() => undefined);
      const before = seen.get(hint);
      if (found === undefined || signal.aborted) return;
      seen.set(hint, found);
      if (before !== undefined && before !== found) tellInTurn(hint);
    };
    while (!signal.aborted) {
      await Promise.all([
        compare('alarms', () =>
          of(backend.alarms, async (alarms) => {
            const mark = await alarms.alarmMark({ signal });
            if (mark !== undefined) return mark;
            const [newest, next] = await Promise.all([
              alarms.listAlarms({ limit: ALARMS_LOOKED_AT }, { signal }),
              alarms.listAlarms({ limit: ALARMS_LOOKED_AT, sort: 'next' }, { signal }),
            ]);
            return JSON.stringify([newest.alarms, next.alarms].flat().map(outline));
          }),
        ),
        compare('approvals', async () => {
          const gates = await this.#waiting(backend).lookAgain();
          return JSON.stringify(gates.map(({ gate }) => gate.displayed_sha256));
        }),
        compare('machines', () =>
          of(backend.machines, async (machines) => {
            const { state, running, updated_at } = await machines.show(backend.user);
            return JSON.stringify([state, running, updated_at]);
          }),
        ),
      ]);
      await wait(this.#clock, Math.max(LOOK_EVERY_MS, this.#watched.size * PER_PERSON_MS), signal);
    }
  }
}

const of = async <T>(part: Part<T>, look: (there: T) => Promise<string>) =>
  'there' in part ? look(part.there) : undefined;

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

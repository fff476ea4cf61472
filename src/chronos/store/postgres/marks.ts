/**
 * Change counters: whether an owner's alarms have changed, without reading them. Replicas exchange changes by
 * notifications, which all of them receive in the same order, their own included. So all replicas have equal counters.
 * Only recently queried owners are included. Without notifications there are no counters. Nothing here is stored.
 */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';

/** An owner without a query for this time is not announced any more. */
const WATCHED_MS = 60_000;
/** Interval of announcements to the other replicas that an owner is queried. */
const REMIND_MS = 20_000;
/** Owners that are tracked at once; further ones have no counter. */
const MOST_WATCHED = 10_000;
/** Minimum interval between notifications. PostgreSQL limits each to less than 8,000 bytes. */
const SAY_EVERY_MS = 200;
const MOST_BYTES = 7000;

type Watched = {
  mark: number;
  /** Monotonic ms. */
  askedAt: number;
  remindedAt: number;
};

export class Marks {
  readonly #clock: Clock;
  readonly #say: (text: string) => Promise<void>;
  readonly #watched = new Map<string, Watched>();
  /** The content of the next notification: owners that changed, and owners that are queried here. */
  readonly #changed = new Set<string>();
  readonly #asked = new Set<string>();
  /** The part that all owners share: after a gap in the notifications, any alarm may have changed. */
  #all = 0;
  #isHearing = false;
  #isOver = false;
  #pause: CancelTimer | undefined;
  #saying = false;

  /**
   * @param say notifies every replica, this one included; may reject
   */
  constructor(clock: Clock, say: (text: string) => Promise<void>) {
    this.#clock = clock;
    this.#say = say;
  }

  /** A text that changes soon after each change of the owner's alarms; `undefined` where changes cannot be detected. */
  of(owner: string): string | undefined {
    const now = this.#clock.monotonic();
    const watched = this.#watch(owner, now);
    if (!watched) return undefined;
    watched.askedAt = now;
    if (now - watched.remindedAt >= REMIND_MS) {
      watched.remindedAt = now;
      this.#asked.add(owner);
      this.#sayNext();
    }
    return this.#isHearing ? `${this.#all}.${watched.mark}` : undefined;
  }

  /** Call it when a change is durable. It is cheap for owners without queries. */
  changed(owner: string): void {
    const watched = this.#watched.get(owner);
    if (!watched) return;
    if (this.#clock.monotonic() - watched.askedAt > WATCHED_MS) {
      this.#watched.delete(owner);
      return;
    }
    this.#changed.add(owner);
    this.#sayNext();
  }

  /** Notifications arrive from now on; earlier ones were lost. */
  connected(): void {
    void this.#say(`all ${this.#all + 1}`).catch(() => {});
  }

  lost(): void {
    this.#isHearing = false;
  }

  hear(text: string): void {
    const [head = '', ...lines] = text.split('\n');
    const [kind, all = ''] = head.split(' ');
    const theirs = Number(all) || 0;
    if (kind === 'all') {
      this.#all = Math.max(this.#all + 1, theirs);
      this.#isHearing = true;
      // A new replica does not know the queried owners, nor the counts of the others.
      for (const owner of this.#watched.keys()) this.#asked.add(owner);
      this.#sayNext();
      return;
    }
    const now = this.#clock.monotonic();
    for (const line of lines) {
      const [count = '', owner = ''] = line.split(' ');
      const mark = Number(count) || 0;
      const watched = this.#watch(owner, now);
      if (!watched) continue;
      if (kind === 'changed') watched.mark = Math.max(watched.mark + 1, mark);
      else if (kind === 'asked') {
        watched.askedAt = now;
        // A replica with a lower count started later: it gets the current one.
        if (mark < watched.mark || theirs < this.#all) this.#asked.add(owner);
        watched.mark = Math.max(watched.mark, mark);
      }
    }
    this.#all = Math.max(this.#all, theirs);
    this.#sayNext();
  }

  stop(): void {
    this.#isOver = true;
    this.#pause?.();
  }

  #watch(owner: string, now: number): Watched | undefined {
    const known = this.#watched.get(owner);
    if (known) return known;
    if (this.#watched.size >= MOST_WATCHED) {
      for (const [name, { askedAt }] of this.#watched) if (now - askedAt > WATCHED_MS) this.#watched.delete(name);
      if (this.#watched.size >= MOST_WATCHED) return undefined;
    }
    const watched = { mark: 0, askedAt: now, remindedAt: Number.NEGATIVE_INFINITY };
    this.#watched.set(owner, watched);
    return watched;
  }

  /** Sends the next notification: at once, or after the current pause. */
  #sayNext(): void {
    if (this.#isOver || this.#pause || this.#saying) return;
    const next = this.#next();
    if (next === undefined) return;
    this.#saying = true;
    void this.#say(next)
      .catch(() => {})
      .finally(() => {
        this.#saying = false;
        if (this.#isOver) return;
        this.#pause = this.#clock.after(SAY_EVERY_MS, () => {
          this.#pause = undefined;
          this.#sayNext();
        });
      });
  }

  #next(): string | undefined {
    const kind = this.#changed.size > 0 ? 'changed' : 'asked';
    const from = kind === 'changed' ? this.#changed : this.#asked;
    if (from.size === 0) return undefined;
    let text = `${kind} ${this.#all}`;
    for (const owner of from) {
      const mark = (this.#watched.get(owner)?.mark ?? 0) + (kind === 'changed' ? 1 : 0);
      const line = `\n${mark} ${owner}`;
      if (Buffer.byteLength(text) + Buffer.byteLength(line) > MOST_BYTES) break;
      text += line;
      from.delete(owner);
    }
    return text;
  }
}

/**
 * Change counters: whether an owner's alarms have changed, without reading them. Replicas exchange changes by
 * notifications, which all of them receive in the same order, their own included. So all replicas have equal counters.
 * Only recently queried owners are included. Without notifications there are no counters. Nothing here is stored.
 */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';

/** An owner without a query for this time is not announced any more. */
const WATCHED_MS = 60_000;
/** Interval of announcements to the other replicas that an owner is queried. */
const ANNOUNCE_INTERVAL_MS = 20_000;
/** Owners that are tracked at once; further ones have no counter. */
const MOST_WATCHED = 10_000;
/** Minimum interval between notifications. PostgreSQL limits each to less than 8,000 bytes. */
const SEND_INTERVAL_MS = 200;
const MOST_BYTES = 7000;

type Watched = {
  count: number;
  /** Monotonic ms. */
  queriedAt: number;
  announcedAt: number;
};

export class ChangeCounters {
  readonly #clock: Clock;
  readonly #send: (text: string) => Promise<void>;
  readonly #watched = new Map<string, Watched>();
  /** The content of the next notification: owners that changed, and owners that are queried here. */
  readonly #changed = new Set<string>();
  readonly #queried = new Set<string>();
  /** The part that all owners share: after a gap in the notifications, any alarm may have changed. */
  #all = 0;
  #isConnected = false;
  #isStopped = false;
  #pause: CancelTimer | undefined;
  #sending = false;

  /**
   * @param send notifies every replica, this one included; may reject
   */
  constructor(clock: Clock, send: (text: string) => Promise<void>) {
    this.#clock = clock;
    this.#send = send;
  }

  /** A text that changes soon after each change of the owner's alarms; `undefined` where changes cannot be detected. */
  of(owner: string): string | undefined {
    const now = this.#clock.monotonic();
    const watched = this.#watch(owner, now);
    if (!watched) return undefined;
    watched.queriedAt = now;
    if (now - watched.announcedAt >= ANNOUNCE_INTERVAL_MS) {
      watched.announcedAt = now;
      this.#queried.add(owner);
      this.#sendNext();
    }
    return this.#isConnected ? `${this.#all}.${watched.count}` : undefined;
  }

  /** Call it when a change is durable. It is cheap for owners without queries. */
  changed(owner: string): void {
    const watched = this.#watched.get(owner);
    if (!watched) return;
    if (this.#clock.monotonic() - watched.queriedAt > WATCHED_MS) {
      this.#watched.delete(owner);
      return;
    }
    this.#changed.add(owner);
    this.#sendNext();
  }

  /** Notifications arrive from now on; earlier ones were lost. */
  connected(): void {
    void this.#send(`all ${this.#all + 1}`).catch(() => {});
  }

  lost(): void {
    this.#isConnected = false;
  }

  receive(text: string): void {
    const [head = '', ...lines] = text.split('\n');
    const [kind, all = ''] = head.split(' ');
    const remoteAll = Number(all) || 0;
    if (kind === 'all') {
      this.#all = Math.max(this.#all + 1, remoteAll);
      this.#isConnected = true;
      // A new replica does not know the queried owners, nor the counts of the others.
      for (const owner of this.#watched.keys()) this.#queried.add(owner);
      this.#sendNext();
      return;
    }
    const now = this.#clock.monotonic();
    for (const line of lines) {
      const [count = '', owner = ''] = line.split(' ');
      const mark = Number(count) || 0;
      const watched = this.#watch(owner, now);
      if (!watched) continue;
      if (kind === 'changed') watched.count = Math.max(watched.count + 1, mark);
      else if (kind === 'asked') {
        watched.queriedAt = now;
        // A replica with a lower count started later: it gets the current one.
        if (mark < watched.count || remoteAll < this.#all) this.#queried.add(owner);
        watched.count = Math.max(watched.count, mark);
      }
    }
    this.#all = Math.max(this.#all, remoteAll);
    this.#sendNext();
  }

  stop(): void {
    this.#isStopped = true;
    this.#pause?.();
  }

  #watch(owner: string, now: number): Watched | undefined {
    const known = this.#watched.get(owner);
    if (known) return known;
    if (this.#watched.size >= MOST_WATCHED) {
      for (const [name, { queriedAt }] of this.#watched) if (now - queriedAt > WATCHED_MS) this.#watched.delete(name);
      if (this.#watched.size >= MOST_WATCHED) return undefined;
    }
    const watched = { count: 0, queriedAt: now, announcedAt: Number.NEGATIVE_INFINITY };
    this.#watched.set(owner, watched);
    return watched;
  }

  /** Sends the next notification: at once, or after the current pause. */
  #sendNext(): void {
    if (this.#isStopped || this.#pause || this.#sending) return;
    const next = this.#next();
    if (next === undefined) return;
    this.#sending = true;
    void this.#send(next)
      .catch(() => {})
      .finally(() => {
        this.#sending = false;
        if (this.#isStopped) return;
        this.#pause = this.#clock.after(SEND_INTERVAL_MS, () => {
          this.#pause = undefined;
          this.#sendNext();
        });
      });
  }

  #next(): string | undefined {
    const kind = this.#changed.size > 0 ? 'changed' : 'asked';
    const from = kind === 'changed' ? this.#changed : this.#queried;
    if (from.size === 0) return undefined;
    let text = `${kind} ${this.#all}`;
    for (const owner of from) {
      const mark = (this.#watched.get(owner)?.count ?? 0) + (kind === 'changed' ? 1 : 0);
      const line = `\n${mark} ${owner}`;
      if (Buffer.byteLength(text) + Buffer.byteLength(line) > MOST_BYTES) break;
      text += line;
      from.delete(owner);
    }
    return text;
  }
}

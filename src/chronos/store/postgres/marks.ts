/**
 * Whether an owner's alarms have changed, without a look at them. Replicas tell each other by notifications, which every
 * one of them hears in the same order, its own among them: so the marks of all are equal, whichever is asked. Only owners
 * that somebody has asked about lately are told of; where notifications do not come through there are no marks. Nothing
 * here is stored.
 */
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';

/** An owner that nobody has asked about for so long is not told of any more. */
const WATCHED_MS = 60_000;
/** The others are reminded so often that somebody asks. */
const REMIND_MS = 20_000;
/** Owners that are followed at once; of further ones there are no marks. */
const MOST_WATCHED = 10_000;
/** Notifications are sent so often at most, however much happens; PostgreSQL takes less than 8,000 bytes in each. */
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
  /** What is to be said next: owners that changed, and owners that are watched here. */
  readonly #changed = new Set<string>();
  readonly #asked = new Set<string>();
  /** Counts what concerns every owner: after a while in which nothing was heard, anything may have changed. */
  #all = 0;
  #isHearing = false;
  #isOver = false;
  #pause: CancelTimer | undefined;
  #saying = false;

  /** @param say notifies every replica, this one too; may reject */
  constructor(clock: Clock, say: (text: string) => Promise<void>) {
    this.#clock = clock;
    this.#say = say;
  }

  /** Another text soon after each change of the owner's alarms; `undefined` where that cannot be known. */
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

  /** To be called when a change is durable; it costs nothing where nobody asks about the owner. */
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

  /** Notifications come from now on; what came before was not heard. */
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
      // Whoever has just come does not know who is asked about, nor how far the others have counted.
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
        // Whoever asks has counted less far: they came later.
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

  /** Says what there is to say: at once, or when a pause is over. */
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

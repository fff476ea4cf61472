/** Limits challenges: clients must not be able to flood a host with them or to probe addresses. */
import type { Clock } from '../../kit/clock/clock.ts';
import { EventsError } from './protocol.ts';
import type { Principal } from './store.ts';

const MINUTE_MS = 60_000;
const OF_SUBJECT = 30;
const OF_HOST = 60;
const MOST_ENTRIES = 10_000;

export class Rates {
  readonly #clock: Clock;
  readonly #counts = new Map<string, number>();
  #minute = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a challenge. @throws EventsError `ResourceExhausted` */
  take({ issuer, subject }: Principal, host: string): void {
    const now = this.#clock.monotonic();
    if (now - this.#minute >= MINUTE_MS) {
      this.#minute = now;
      this.#counts.clear();
    }
    this.#count(`subject ${issuer} ${subject}`, OF_SUBJECT);
    this.#count(`host ${host}`, OF_HOST);
  }

  #count(key: string, max: number): void {
    const count = this.#counts.get(key) ?? 0;
    if (count >= max || this.#counts.size >= MOST_ENTRIES)
      throw new EventsError('ResourceExhausted', 'too many new callbacks; try again in a minute', {
        limit: 'challenges',
        max,
      });
    this.#counts.set(key, count + 1);
  }
}

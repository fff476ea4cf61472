/**
 * What wrong bearer tokens cost whoever sends them: each one from an address is answered later than the one before. A
 * right token is never kept waiting, so a guesser gains nothing by the pause but must hold a connection for it, and
 * only few of those are held.
 */
import { backoff } from '../clock/backoff.ts';
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';

/** A person mistypes, a service restarts with an old secret: so many are answered at once. */
const FREE = 5;
const pauseAfter = backoff({ first: 50, longest: 2000 });
/** Answers that wait at a time, in all and for one address; one more is given at once and ends its connection. */
const WAITING = 64;
const WAITING_PER_ADDRESS = 8;
/** An address that was quiet for so long begins anew. */
const FORGET_MS = 60_000;
const REMEMBERED = 1024;
const LOG_EVERY_MS = 60_000;

type Offender = { wrong: number; waiting: number; lastAt: number };

export class WrongTokens {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** In the order of the last wrong token. */
  readonly #offenders = new Map<string, Offender>();
  readonly #closing = new AbortController();
  #waiting = 0;
  #total = 0;
  #logged = 0;
  #cancelLog: (() => void) | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Wrong tokens since the start. */
  get total(): number {
    return this.#total;
  }

  /**
   * Counts a wrong token, and keeps its sender waiting.
   *
   * @param gone aborts when the sender goes away
   * @returns whether the connection should end with the answer
   */
  async refuse(address: string, gone: AbortSignal): Promise<boolean> {
    this.#total++;
    this.#cancelLog ??= this.#clock.after(LOG_EVERY_MS, () => this.#tell());
    const offender = this.#offender(address);
    offender.wrong++;
    if (offender.wrong <= FREE) return false;
    if (this.#waiting >= WAITING || offender.waiting >= WAITING_PER_ADDRESS) return true;
    this.#waiting++;
    offender.waiting++;
    const pauseMs = pauseAfter(offender.wrong - FREE);
    await wait(this.#clock, pauseMs, AbortSignal.any([gone, this.#closing.signal]));
    this.#waiting--;
    offender.waiting--;
    return false;
  }

  /** Ends all pauses. */
  close(): void {
    this.#closing.abort();
    this.#tell();
  }

  #offender(address: string): Offender {
    const now = this.#clock.monotonic();
    const known = this.#offenders.get(address);
    const isFresh = known !== undefined && (known.waiting > 0 || now - known.lastAt < FORGET_MS);
    const offender = isFresh ? known : { wrong: 0, waiting: 0, lastAt: now };
    offender.lastAt = now;
    this.#offenders.delete(address);
    this.#offenders.set(address, offender);
    if (this.#offenders.size > REMEMBERED) this.#offenders.delete(this.#offenders.keys().next().value!);
    return offender;
  }

  #tell(): void {
    this.#cancelLog?.();
    this.#cancelLog = undefined;
    const count = this.#total - this.#logged;
    if (count === 0) return;
    this.#logged = this.#total;
    // Addresses, not tokens: a wrong one is often a right one somewhere else.
    const addresses = [...this.#offenders].sort(([, one], [, other]) => other.wrong - one.wrong);
    this.#log.warn(
      { count, addresses: addresses.slice(0, 5).map(([address]) => address) },
      'wrong tokens were refused',
    );
  }
}

/**
 * Delays the answers to wrong bearer tokens: each one from an address is answered later than the one before. A right
 * token is never delayed. A guesser must hold a connection during the delay, and only few of those are kept.
 */
import { backoff } from '../clock/backoff.ts';
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';

/** Wrong tokens that are answered at once, for typing errors and for services that restart with an old secret. */
const FREE = 5;
const pauseAfter = backoff({ first: 50, longest: 2000 });
/** Maximum of delayed answers, in total and per address. Another one is sent at once, and its connection is closed. */
const WAITING = 64;
const WAITING_PER_ADDRESS = 8;
/** The count of an address restarts after this time without a wrong token. */
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
   * Counts a wrong token, and delays its answer.
   *
   * @param disconnected aborts when the sender disconnects
   * @returns whether the connection must end with the answer
   */
  async refuse(address: string, disconnected: AbortSignal): Promise<boolean> {
    this.#total++;
    this.#cancelLog ??= this.#clock.after(LOG_EVERY_MS, () => this.#logCount());
    const offender = this.#offender(address);
    offender.wrong++;
    if (offender.wrong <= FREE) return false;
    if (this.#waiting >= WAITING || offender.waiting >= WAITING_PER_ADDRESS) return true;
    this.#waiting++;
    offender.waiting++;
    const pauseMs = pauseAfter(offender.wrong - FREE);
    await wait(this.#clock, pauseMs, AbortSignal.any([disconnected, this.#closing.signal]));
    this.#waiting--;
    offender.waiting--;
    return false;
  }

  /** Ends all pauses. */
  close(): void {
    this.#closing.abort();
    this.#logCount();
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

  #logCount(): void {
    this.#cancelLog?.();
    this.#cancelLog = undefined;
    const count = this.#total - this.#logged;
    if (count === 0) return;
    this.#logged = this.#total;
    // Addresses, not tokens: a token that is wrong here may be valid elsewhere.
    const addresses = [...this.#offenders].sort(([, one], [, other]) => other.wrong - one.wrong);
    this.#log.warn(
      { count, addresses: addresses.slice(0, 5).map(([address]) => address) },
      'wrong tokens were refused',
    );
  }
}

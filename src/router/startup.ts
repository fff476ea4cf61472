/**
 * One start of a machine, or its adoption: run by a provider, waited for by any number of wakes, given up when it takes
 * too long or nobody wants it any more. Whoever waits is answered as soon as the outcome is certain; the provider may
 * need a while to let go.
 */
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { Daemon, Tell } from './providers/provider.ts';

export type StartupOptions = {
  /** The provider's start or adoption. */
  bringUp(signal: AbortSignal, tell: Tell): Promise<Daemon | undefined>;
  clock: Clock;
  /** A start that takes longer is to be given up. */
  limitMs: number;
  /** It takes too long: the supervisor stops the machine, and calls it off with this error. */
  onLate(error: ReveilleError): void;
  /**
   * The daemon is ready, or there is none to adopt. Called before anybody who waits is answered, and not when it was
   * called off.
   */
  onReady(daemon: Daemon | undefined): void;
  /** The provider could not bring the machine up. Called as `onReady` is. */
  onFailed(thrown: unknown): void;
};

/** Ends a start that nobody wants any more; whoever waited for it looks at the machine again. */
export const SUPERSEDED = new Error('the machine was stopped while it started');

export class Startup {
  readonly #abort = new AbortController();
  readonly #outcome = Promise.withResolvers<number>();
  readonly #limitMs: number;
  readonly #cancelLimit: () => void;
  #words: string | undefined;

  /**
   * How long it took, at least 1, or 0 when nothing had to be started or it was superseded. Rejects with why it failed.
   */
  readonly outcome: Promise<number> = this.#outcome.promise;
  /** The provider has let go. Never rejects. */
  readonly settled: Promise<void>;

  /** Begins it. */
  constructor(options: StartupOptions) {
    const { bringUp, clock, limitMs, onLate, onReady, onFailed } = options;
    const began = clock.monotonic();
    this.#limitMs = limitMs;
    this.#cancelLimit = clock.after(limitMs, () => onLate(this.#late()));
    this.outcome.catch(() => {
      // Every waiter hears of it; there may be none left.
    });
    const { resolve, reject } = this.#outcome;
    const tell = (words: string) => {
      this.#words = words;
    };
    this.settled = bringUp(this.#abort.signal, tell).then(
      (daemon) =>
        this.#settle(() => {
          onReady(daemon);
          resolve(daemon?.cold ? Math.max(1, Math.round(clock.monotonic() - began)) : 0);
        }),
      (thrown: unknown) =>
        this.#settle(() => {
          onFailed(thrown);
          reject(toReveilleError(thrown));
        }),
    );
  }

  /** What it waits for, as the provider said last. */
  get waitsFor(): string | undefined {
    return this.#words;
  }

  /**
   * Calls it off: whoever waits is answered at once, with this reason unless it is {@link SUPERSEDED}; see `settled`
   * for the rest.
   */
  callOff(reason: Error): void {
    this.#cancelLimit();
    if (reason === SUPERSEDED) this.#outcome.resolve(0);
    else this.#outcome.reject(reason);
    this.#abort.abort(reason);
  }

  #settle(then: () => void): void {
    this.#cancelLimit();
    if (!this.#abort.signal.aborted) then();
  }

  #late(): ReveilleError {
    const waitedFor = this.#words === undefined ? '' : `: ${this.#words}`;
    const message = `starting the machine took longer than ${this.#limitMs} ms and was given up${waitedFor}`;
    return new ReveilleError('unavailable', message, { status: 504 });
  }
}

/**
 * One start of a machine, or its adoption. A provider runs it, and any number of wakes wait for it. It is cancelled
 * when it takes too long or is not needed any more. Waiters get the outcome as soon as it is certain; the provider may
 * end later.
 */
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { Daemon, OnProgress } from './providers/provider.ts';

export type StartupOptions = {
  /** The provider's start or adoption. */
  run(signal: AbortSignal, onProgress: OnProgress): Promise<Daemon | undefined>;
  clock: Clock;
  /** The time limit of a start, milliseconds. */
  limitMs: number;
  /** It takes too long: the supervisor stops the machine, and cancels it with this error. */
  onLate(error: ReveilleError): void;
  /**
   * The daemon is ready, or there is none to adopt. Called before waiters are answered, and not after a cancellation.
   */
  onReady(daemon: Daemon | undefined): void;
  /** The provider could not start the machine. Called at the same time as `onReady`. */
  onFailed(thrown: unknown): void;
};

/** Ends a start that is not needed any more; its waiters read the machine again. */
export const SUPERSEDED = new Error('the machine was stopped while it started');

export class Startup {
  readonly #abort = new AbortController();
  readonly #outcome = Promise.withResolvers<number>();
  readonly #limitMs: number;
  readonly #cancelLimit: () => void;
  #progress: string | undefined;

  /**
   * Its duration, at least 1. It is 0 when no start was needed or it was superseded. Rejects with the reason of a
   * failure.
   */
  readonly outcome: Promise<number> = this.#outcome.promise;
  /** The provider has ended. Never rejects. */
  readonly settled: Promise<void>;

  constructor(options: StartupOptions) {
    const { run, clock, limitMs, onLate, onReady, onFailed } = options;
    const began = clock.monotonic();
    this.#limitMs = limitMs;
    this.#cancelLimit = clock.after(limitMs, () => onLate(this.#late()));
    this.outcome.catch(() => {
      // Every waiter gets the rejection; there may be none left.
    });
    const { resolve, reject } = this.#outcome;
    const onProgress = (progress: string) => {
      this.#progress = progress;
    };
    this.settled = run(this.#abort.signal, onProgress).then(
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

  /** The last progress from the provider. */
  get waitsFor(): string | undefined {
    return this.#progress;
  }

  /**
   * Cancels it: waiters are answered at once, with this reason unless it is {@link SUPERSEDED}. `settled` resolves when
   * the provider has ended.
   */
  cancel(reason: Error): void {
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
    const waitedFor = this.#progress === undefined ? '' : `: ${this.#progress}`;
    const message = `starting the machine took longer than ${this.#limitMs} ms and was given up${waitedFor}`;
    return new ReveilleError('unavailable', message, { status: 504 });
  }
}

/** Looking at a machine again and again, with growing pauses, through failures that pass. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Tell } from './provider.ts';
import { Hiccup } from './provider-api.ts';

/** The pause after the first look; it doubles up to the longest. */
type Pauses = { readonly firstPauseMs: number; readonly longestPauseMs: number };

export type LooksOptions = {
  clock: Clock;
  /** Ends the looking. */
  signal: AbortSignal;
  /** So many failed looks in a row end the looking; 4 unless told. */
  hiccups?: number;
  /** Hears of failures that are passed over. */
  tell: Tell;
};

/** @param pauses how long to wait between looks */
export function looksAt(pauses: Pauses, options: LooksOptions): Looks {
  const { firstPauseMs, longestPauseMs } = pauses;
  return new Looks({ hiccups: 4, ...options, firstPauseMs, longestPauseMs });
}

class Looks {
  readonly #options: Required<LooksOptions> & Pauses;
  #failed = 0;
  #pauseMs = 0;
  #atLeastMs = 0;

  constructor(options: Required<LooksOptions> & Pauses) {
    this.#options = options;
  }

  /**
   * Looks until there is a result.
   *
   * @param look gives nothing when it must be repeated; a `Hiccup` that it throws is passed over, any other error ends the looking
   * @throws the signal's reason; what `look` threw
   */
  async until<T>(look: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      await this.#pause();
      try {
        const result = await look();
        if (result !== undefined) return result;
        this.#failed = 0;
      } catch (thrown) {
        this.#passOver(thrown);
      }
    }
  }

  /** The next look comes at once. */
  hurry(): void {
    this.#pauseMs = 0;
  }

  async #pause(): Promise<void> {
    const { clock, signal, firstPauseMs, longestPauseMs } = this.#options;
    const pauseMs = Math.max(this.#pauseMs, this.#atLeastMs);
    if (pauseMs > 0) await wait(clock, pauseMs, signal);
    signal.throwIfAborted();
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, firstPauseMs), longestPauseMs);
    this.#atLeastMs = 0;
  }

  #passOver(thrown: unknown): void {
    const { signal, hiccups, tell } = this.#options;
    signal.throwIfAborted();
    if (!(thrown instanceof Hiccup)) throw thrown;
    if (!thrown.patient) this.#failed++;
    if (this.#failed >= hiccups) throw thrown;
    tell(thrown.message);
    this.#atLeastMs = thrown.retryAfterMs;
  }
}

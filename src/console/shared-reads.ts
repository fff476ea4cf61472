/**
 * Reads that many pages make at the same moment are made once: however many consoles are open, a system behind them is
 * asked as often as one would ask. An answer is kept for a moment; after a hint or a write it is not.
 */
import type { Clock } from '../kit/clock/clock.ts';

const MOST = 200;

export class SharedReads {
  readonly #clock: Clock;
  readonly #keepMs: number;
  readonly #answers = new Map<string, { at: number; answer: Promise<unknown> }>();

  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  read<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const kept = this.#answers.get(key);
    if (kept && this.#clock.monotonic() - kept.at < this.#keepMs) return kept.answer as Promise<T>;
    return this.renew(key, ask);
  }

  /** Asks anew, whatever is kept; others are given this answer from now on. */
  renew<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const answer = ask();
    this.#answers.delete(key);
    this.#answers.set(key, { at: now, answer });
    // A failure is told to those who wait for it, and asked about again.
    answer.catch(() => this.#answers.delete(key));
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST) this.#answers.delete(oldest!);
    return answer;
  }

  forget(): void {
    this.#answers.clear();
  }
}

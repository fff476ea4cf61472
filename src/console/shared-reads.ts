/**
 * Shares reads: pages that read the same at the same moment cause one request to a backend, however many are open. An
 * answer is reused for a moment, until a hint or a write.
 */
import type { Clock } from '../kit/clock/clock.ts';

const MAX_ANSWERS = 200;

export class SharedReads {
  readonly #clock: Clock;
  readonly #keepMs: number;
  readonly #answers = new Map<string, { at: number; answer: Promise<unknown> }>();

  constructor(clock: Clock, keepMs: number) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  read<T>(key: string, request: () => Promise<T>): Promise<T> {
    const kept = this.#answers.get(key);
    const now = this.#clock.monotonic();
    if (kept && now - kept.at < this.#keepMs) return kept.answer as Promise<T>;
    const answer = request();
    this.#answers.delete(key);
    this.#answers.set(key, { at: now, answer });
    // A failure reaches its waiting readers and is not reused.
    answer.catch(() => this.#answers.delete(key));
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MAX_ANSWERS) this.#answers.delete(oldest!);
    return answer;
  }

  forget(): void {
    this.#answers.clear();
  }
}

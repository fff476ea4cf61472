/** Calls to chronosd; every request, and every answer or its absence, is written to the client's log. */

import { failedAnswer } from '../checker/answers.ts';
import type { Answer, Operation } from '../checker/history.ts';
import type { ClientRecorder } from '../checker/journal.ts';

export class ClientLog {
  readonly #recorder: ClientRecorder;
  readonly #now: () => number;
  /** Calls whose outcome the client does not know. */
  lost = 0;

  /** @param now the client's clock, epoch milliseconds */
  constructor(recorder: ClientRecorder, now: () => number) {
    this.#recorder = recorder;
    this.#now = now;
  }

  /**
   * Makes a call; rejects with the call's error.
   *
   * @param answerOf the part of the result that is logged
   */
  async ask<T>(
    user: string,
    operation: Operation,
    call: () => Promise<T>,
    answerOf: (result: T) => Answer,
  ): Promise<T> {
    const answered = this.#recorder.invoke(user, operation, this.#now());
    try {
      const result = await call();
      answered(answerOf(result), this.#now());
      return result;
    } catch (thrown) {
      const answer = failedAnswer(thrown);
      if (answer.answer === 'lost') this.lost++;
      answered(answer, this.#now());
      throw thrown;
    }
  }
}

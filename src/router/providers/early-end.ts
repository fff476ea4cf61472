/** A process ended before it was ready. */
import { ReveilleError } from '../../wire/errors.ts';
import { lastWords } from './last-words.ts';

const PORT_TAKEN = /EADDRINUSE|address already in use/i;

export class EarlyEnd extends ReveilleError {
  /** Whether it found another program on its port. */
  readonly portTaken: boolean;

  /**
   * @param ending how, in words that finish the sentence "the process …"
   * @param output its last
   * @param secrets must not be repeated
   */
  constructor(ending: string, output: string, secrets: readonly string[]) {
    const words = lastWords(output, secrets);
    super('unavailable', `the process ${ending} before it was ready${words && `: ${words}`}`);
    this.portTaken = PORT_TAKEN.test(output);
  }
}

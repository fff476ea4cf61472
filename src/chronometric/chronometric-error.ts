/** The errors that the tools of chronometric answer with, as `{code, message}`. */
import type { ChronometricErrorCode } from '../wire/chronometric-words.ts';

/** `message` names the argument, what is wrong with it and the remedy. It never carries an intent or a summary. */
export class ChronometricError extends Error {
  readonly code: ChronometricErrorCode;

  constructor(code: ChronometricErrorCode, message: string) {
    super(message);
    this.name = 'ChronometricError';
    this.code = code;
  }
}

/** The errors of chronometric's tools, as `{code, message}`. */
import type { ChronometricErrorCode } from '../wire/chronometric-words.ts';

/** `message` names the argument, the problem and the remedy. It never contains an intent or a summary. */
export class ChronometricError extends Error {
  readonly code: ChronometricErrorCode;

  constructor(code: ChronometricErrorCode, message: string) {
    super(message);
    this.name = 'ChronometricError';
    this.code = code;
  }
}

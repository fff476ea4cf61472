/** A wrong command line: exit status 2. A command that was understood and failed has exit status 1. */
import { ReveilleError } from '../../wire/errors.ts';

export class UsageError extends ReveilleError {
  /** @param message names the flag, the problem and a correct value */
  constructor(message: string, cause?: unknown) {
    super('invalid_request', message, { cause });
    this.name = 'UsageError';
  }
}

/**
 * A command line that cannot be meant: it ends with status 2, where a command that was understood and failed ends with
 * 1.
 */
import { ReveilleError } from '../../wire/errors.ts';

export class UsageError extends ReveilleError {
  /** @param message names the flag, what is wrong with it, and what would be right */
  constructor(message: string, cause?: unknown) {
    super('invalid_request', message, { cause });
    this.name = 'UsageError';
  }
}

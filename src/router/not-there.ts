/** The refusal of a wake because what it is for is not there to be started: the one kind that the breaker counts (budget/breaker.ts). */
import { ReveilleError } from '../wire/errors.ts';

/** A program or a folder that is missing, a program that cannot be started, a server that nobody listens at. */
export class NotThere extends ReveilleError {
  constructor(message: string) {
    super('unavailable', message);
  }
}

/** The refusal of a wake that may come again later: a hold, which is not a failure. */
import { ReveilleError } from '../../wire/errors.ts';

/** A wake that was let in by nothing but time: 429 with the instant at which it may come again. */
export class HeldBack extends ReveilleError {
  /** Epoch milliseconds. */
  readonly until: number;

  constructor(why: string, until: number, now: number) {
    super('rate_limited', `held back: ${why}`, { retryAfterSeconds: Math.max(1, Math.ceil((until - now) / 1000)) });
    this.until = until;
  }
}

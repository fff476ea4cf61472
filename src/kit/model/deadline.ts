/** When a request to a model endpoint is given up. */

import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';

export type Deadline = {
  /** Fires with the caller's signal, or when the endpoint is silent or takes too long. */
  readonly signal: AbortSignal;
  /** Something arrived. */
  heard(): void;
  /** The request is over; what is still under way of it ends too. */
  end(): void;
};

/**
 * Starts to wait for an endpoint.
 *
 * @param silenceMs how long nothing may arrive
 * @param totalMs how long all of it may take
 */
export function startDeadline(signal: AbortSignal, clock: Clock, silenceMs: number, totalMs: number): Deadline {
  const overdue = new AbortController();
  const giveUp = (what: string) => () => overdue.abort(new ReveilleError('unavailable', `the model endpoint ${what}`));
  const cancelTotal = clock.after(totalMs, giveUp(`had not finished after ${totalMs / 1000} s`));
  const silent = giveUp(`sent nothing for ${silenceMs / 1000} s`);
  let cancelSilence = clock.after(silenceMs, silent);
  return {
    signal: AbortSignal.any([signal, overdue.signal]),
    heard() {
      cancelSilence();
      cancelSilence = clock.after(silenceMs, silent);
    },
    end() {
      cancelSilence();
      cancelTotal();
      overdue.abort();
    },
  };
}

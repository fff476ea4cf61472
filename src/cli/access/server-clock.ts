/** A daemon's clock, from the `Date` header of its responses: whole seconds, truncated. */
import type { Clock } from '../../kit/clock/clock.ts';
import { below, exchange } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';

export type ServerTime = {
  /** The second in which the daemon answered, epoch ms by its own clock. */
  second: number;
  /** How far its clock is ahead of ours, in ms. Differences within the header's resolution and the travel time are zero. */
  aheadMs: number;
};

const SECOND = 1000;

/**
 * How far another clock is ahead.
 *
 * @param second the other clock's time, truncated to seconds
 * @param sent our clock's time before the request
 * @param received our clock's time after the response
 */
export function aheadBy(second: number, sent: number, received: number): number {
  if (second > received) return second - received;
  // The other clock showed at most this when it answered, and ours at least `sent`.
  if (second + SECOND <= sent) return second + SECOND - 1 - sent;
  return 0;
}

/**
 * Reads a daemon's clock.
 *
 * @returns `undefined` when it does not answer within `timeoutMs`, or without a readable date
 */
export async function serverTime(url: string, clock: Clock, timeoutMs = 3000): Promise<ServerTime | undefined> {
  const sent = clock.now();
  const limit = { clock, ms: timeoutMs };
  const answer = await exchange(plainTransport, { method: 'GET', url: below(url, '/healthz'), maxBytes: 0, limit });
  // Callers that need the daemon get its error from their own request.
  if (answer.result !== 'answered') return undefined;
  const second = Date.parse(String(answer.headers.date));
  return Number.isNaN(second) ? undefined : { second, aheadMs: aheadBy(second, sent, clock.now()) };
}

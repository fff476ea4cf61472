/** What time a daemon has, as the `Date` of its answers says it: whole seconds, cut off. */
import type { Clock } from '../../kit/clock/clock.ts';
import { below, exchange } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';

export type ServerTime = {
  /** The beginning of the second in which the daemon answered, epoch ms by its own clock. */
  second: number;
  /**
   * How far its clock is ahead of ours, in ms; what the resolution of the header and the way there leave open counts as
   * zero.
   */
  aheadMs: number;
};

const SECOND = 1000;

/**
 * How far another clock is ahead.
 *
 * @param second the other clock's time, cut to seconds
 * @param sent our clock's time before the question
 * @param received our clock's time after the answer
 */
export function aheadBy(second: number, sent: number, received: number): number {
  if (second > received) return second - received;
  // The other clock showed at most this when it answered, and we had at least `sent`.
  if (second + SECOND <= sent) return second + SECOND - 1 - sent;
  return 0;
}

/**
 * Asks a daemon for its time.
 *
 * @returns `undefined` when it does not answer within `timeoutMs`, or without a readable date
 */
export async function serverTime(url: string, clock: Clock, timeoutMs = 3000): Promise<ServerTime | undefined> {
  const sent = clock.now();
  const limit = { clock, ms: timeoutMs };
  const answer = await exchange(plainTransport, { method: 'GET', url: below(url, '/healthz'), maxBytes: 0, limit });
  // Whoever needs the daemon itself finds out why it does not answer.
  if (answer.result !== 'answered') return undefined;
  const second = Date.parse(String(answer.headers.date));
  return Number.isNaN(second) ? undefined : { second, aheadMs: aheadBy(second, sent, clock.now()) };
}

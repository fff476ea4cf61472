/** Putting a wake into a daemon's conversation: `POST <daemon>/chat` (contracts §4). */
import type { Dispatcher } from 'undici';
import { below, exchange, reasonOf } from '../kit/http/exchange.ts';
import { encodeJson } from '../wire/json.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import { WAKE_HEADERS, WAKE_ORIGIN, type WakeRequest } from '../wire/wake.ts';
import type { Machine } from './machines/machine.ts';

/** A daemon's answer, to be passed on as it is. */
export type DaemonAnswer = {
  status: number;
  contentType: string | undefined;
  retryAfter: string | undefined;
  /** At most {@link ANSWER_MAX_BYTES}. */
  body: Buffer;
};

export type Delivery =
  | { result: 'answered'; answer: DaemonAnswer }
  /** The daemon did not receive the wake. */
  | { result: 'unsent'; why: string }
  /** The daemon may have accepted the wake. */
  | { result: 'unknown'; why: string };

export const ANSWER_MAX_BYTES = 64 * 1024;

/** The body for a daemon: message and payload as they came, byte for byte. */
function chatBody(wake: WakeRequest): string {
  return encodeJson({
    message: wake.message,
    conversation_id: wake.conversation_id,
    payload: wake.payload,
    origin: WAKE_ORIGIN,
    alarm_id: wake.alarm_id,
    fire_id: wake.fire_id,
    scheduled_for: formatInstant(wake.scheduled_for),
    missed_count: wake.missed_count,
    label: wake.label,
    set_at: wake.set_at === undefined ? undefined : formatInstant(wake.set_at),
    set_by: wake.set_by,
  });
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Delivers a wake. Never rejects.
 *
 * @param dispatcher keeps connections per daemon
 * @param url the daemon's base address, as its provider gave it
 * @param signal ends the attempt; a wake that may have left by then is `unknown`
 */
export async function deliver(
  dispatcher: Dispatcher,
  { url, machine, wake, signal }: { url: string; machine: Machine; wake: WakeRequest; signal: AbortSignal },
): Promise<Delivery> {
  const outcome = await exchange(dispatcher, {
    method: 'POST',
    url: below(url, '/chat'),
    headers: {
      authorization: `Bearer ${machine.token}`,
      'content-type': 'application/json',
      accept: 'application/json',
      [WAKE_HEADERS.user]: machine.userId,
      [WAKE_HEADERS.origin]: WAKE_ORIGIN,
      [WAKE_HEADERS.alarm]: wake.alarm_id,
      [WAKE_HEADERS.fire]: wake.fire_id,
    },
    body: chatBody(wake),
    maxBytes: ANSWER_MAX_BYTES,
    signal,
  });
  if (outcome.result !== 'answered') return { result: outcome.result, why: reasonOf(outcome.error) };
  const { status, headers, body } = outcome;
  const contentType = single(headers['content-type']);
  return { result: 'answered', answer: { status, contentType, retryAfter: single(headers['retry-after']), body } };
}

/**
 * What the router asks of a daemon: to take a wake into its conversation, and what became of the turn
 * (docs/contracts.md §4, §5). Neo is one; others serve `POST /chat` and need not tell of their turns.
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../kit/clock/clock.ts';
import { below, type Exchange, exchange, reasonOf } from '../kit/http/exchange.ts';
import { encodeJson } from '../wire/json.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import { pathOf } from '../wire/route.ts';
import { WAKE_HEADERS, WAKE_ORIGIN, type Wake } from '../wire/wake.ts';
import { NEO_ROUTES } from './http/routes.ts';

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
/** A reply of Neo is bounded by the model's own limit; this is far beyond it. */
const TURN_MAX_BYTES = 4 * 1024 * 1024;
/** A daemon that is asked for a turn answers at once, or is stuck. */
const ASK_MS = 5000;

/** A daemon's base address, as its provider gave it, and the bearer that it takes. */
export type DaemonAddress = { readonly url: string; readonly token: string };

/** Which turn a daemon has begun for a wake. */
export type AcceptedTurn = { readonly conversation_id: string; readonly turn_id: string };

/** The body for a daemon: message and payload as they came, byte for byte. */
function chatBody(wake: Wake): string {
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
  { url, token, userId, wake, signal }: DaemonAddress & { userId: string; wake: Wake; signal: AbortSignal },
): Promise<Delivery> {
  const outcome = await exchange(dispatcher, {
    method: 'POST',
    url: below(url, NEO_ROUTES.chat.path),
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json',
      [WAKE_HEADERS.user]: userId,
      [WAKE_HEADERS.origin]: WAKE_ORIGIN,
      ...(wake.alarm_id === undefined ? {} : { [WAKE_HEADERS.alarm]: wake.alarm_id }),
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

/** Asks how a turn stands. Never rejects. */
export function askTurn(
  dispatcher: Dispatcher,
  { url, token, turn, clock, signal }: DaemonAddress & { turn: AcceptedTurn; clock: Clock; signal: AbortSignal },
): Promise<Exchange> {
  return exchange(dispatcher, {
    method: 'GET',
    url: below(url, pathOf(NEO_ROUTES.getTurn, { id: turn.conversation_id, turn_id: turn.turn_id })),
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    maxBytes: TURN_MAX_BYTES,
    signal,
    limit: { clock, ms: ASK_MS },
  });
}

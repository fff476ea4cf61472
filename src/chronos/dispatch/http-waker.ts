/** The wake over HTTP: one signed POST to the router (docs/contracts.md §3), and what its answer means. */

import type { Clock } from '../../kit/clock/clock.ts';
import { Pool } from '../../kit/http/dispatchers.ts';
import { Answer, type Exchange, retryAfterOf } from '../../kit/http/exchange.ts';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import type { AbsenceReason } from '../../wire/alarm.ts';
import { errorMessageOf } from '../../wire/envelope.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { beginningOf } from '../../wire/text.ts';
import { HELD_UNTIL_HEADER, MACHINE_READY_HEADER, WAKE_ORIGIN } from '../../wire/wake.ts';
import type { Claim } from '../store/store.ts';
import type { Hold, WakeResult, Waker } from './waker.ts';

export type HttpWakerOptions = {
  url: string;
  /** Shared with the router; absent only in development. */
  token: string | undefined;
  clock: Clock;
  /** For one wake as a whole. */
  timeoutMs: number;
  /** Most wakes at once, and so connections. */
  connections: number;
};

/** The body of a wake. Message and payload go out as they were stored. */
export function wakeBody({ alarm, occurrence }: Claim, late?: AbsenceReason): string {
  const body = JSON.stringify({
    user_id: alarm.owner,
    conversation_id: alarm.conversationId ?? undefined,
    message: alarm.wakeMessage,
    alarm_id: alarm.id,
    origin: WAKE_ORIGIN,
    fire_id: occurrence.fireId,
    scheduled_for: formatInstant(occurrence.scheduledFor),
    attempt: occurrence.attempt,
    missed_count: occurrence.missedCount,
    label: alarm.label,
    set_at: formatInstant(alarm.createdAt),
    set_by: alarm.setBy === null ? undefined : { kind: 'person', name: alarm.setBy },
    urgent: alarm.urgent || undefined,
    late_because: late,
  });
  // The payload is JSON already, and its digits must stay as they are.
  return alarm.payload === null ? body : `${body.slice(0, -1)},"payload":${alarm.payload}}`;
}

/** How much of a refusal's words the error keeps. */
const ERROR_BODY_CHARACTERS = 300;
/**
 * How much of a refusal's body is read: an envelope that is cut is no envelope, and its message could not be told from
 * the rest.
 */
const ERROR_BODY_BYTES = 16 * 1024;
/** An answer longer than this is not read to its end: a new connection costs less. */
const LONGEST_ANSWER_BYTES = 128 * 1024;

/**
 * What hears of one wake. The status of a 2xx is all that is wanted of it: it settles with the head, and what follows
 * is only drained for the connection's sake.
 *
 * @param url for error messages
 * @param settle gets the result, once
 * @param onEnd called when the connection is free again, or gone
 */
export function wakeAnswer(url: string, settle: (result: WakeResult | Hold) => void, onEnd: () => void): Answer {
  return new Answer({
    maxBytes: ERROR_BODY_BYTES,
    drainBytes: LONGEST_ANSWER_BYTES - ERROR_BODY_BYTES,
    needsNoBody: (status) => status < 300,
    settle: (exchange) => settle(wakeResult(url, exchange)),
    onEnd,
  });
}

/**
 * What came of a wake. One that cannot have left has failed and may be sent again; where that is not certain it is
 * unknown.
 */
function wakeResult(url: string, exchange: Exchange): WakeResult | Hold {
  if (exchange.result !== 'answered') {
    const { code } = exchange.error as NodeJS.ErrnoException;
    const words = `${code ? `${code}: ` : ''}${exchange.error.message}`;
    if (exchange.result === 'unsent') {
      const error = `the router at ${url} could not be reached (${words})`;
      return { outcome: 'failed', httpStatus: null, error, final: false };
    }
    const error = `the router at ${url} did not answer; whether it accepted the wake is not known (${words})`;
    return { outcome: 'unknown', httpStatus: null, error };
  }
  const { status, headers, body } = exchange;
  const machineReadyMs = wholeNumber(headers[MACHINE_READY_HEADER]);
  const readiness = machineReadyMs === undefined ? {} : { machineReadyMs };
  if (status < 300) return { outcome: 'delivered', httpStatus: status, ...readiness };
  const text = body.toString('utf8');
  const message = errorMessageOf(text);
  const words = storable(
    message === undefined ? text.slice(0, ERROR_BODY_CHARACTERS) : beginningOf(message, ERROR_BODY_CHARACTERS),
  );
  // A header that is no instant leaves a refusal like any other.
  const heldUntil = status === 429 ? parseInstant(String(headers[HELD_UNTIL_HEADER])) : undefined;
  if (heldUntil !== undefined) return { outcome: 'held', until: heldUntil, reason: words };
  // "At once" is taken as a second: a receiver that keeps saying it would use up every attempt in no time.
  const wait = retryAfterOf(headers['retry-after']);
  return {
    outcome: 'failed',
    httpStatus: status,
    error: `the router answered ${status}: ${words}`,
    final: status === 410,
    ...readiness,
    ...(wait === undefined ? {} : { retryAfterSeconds: Math.max(1, wait) }),
  };
}

function wholeNumber(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

/** It is stored as text: half of a surrogate pair or a NUL would not survive that everywhere. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}

/** A waker that keeps its connections to the router open. */
export function createHttpWaker({ url, token, clock, timeoutMs, connections }: HttpWakerOptions): Waker {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    // A wake is bounded as a whole, by the timer below: an answer that drips in byte by byte must not hold its slot.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
    // Longer than any pause between two rings matters little; shorter than the router's own keep-alive avoids its
    // resets.
    keepAliveTimeout: 4_000,
  });

  const path = `${pathname}${search}`;
  const sign = token === undefined ? undefined : webhookSigner(token);

  /** Name, value, name, value: what the client would make of an object anyway. */
  function headersOf(fireId: string, body: string): string[] {
    if (!sign) return ['content-type', 'application/json'];
    const signed = sign({ id: fireId, timestampSeconds: clock.now() / 1000, body });
    return ['content-type', 'application/json', 'authorization', `Bearer ${token}`, ...Object.entries(signed).flat()];
  }

  return {
    wake(claim, late) {
      const body = wakeBody(claim, late);
      const headers = headersOf(claim.occurrence.fireId, body);
      return new Promise((settle) => {
        const answer = wakeAnswer(url, settle, () => done());
        const done = clock.after(timeoutMs, () => answer.abort(new Error(`it took more than ${timeoutMs} ms`)));
        pool.dispatch({ method: 'POST', path, headers, body }, answer);
      });
    },
    close: () => pool.destroy(),
  };
}

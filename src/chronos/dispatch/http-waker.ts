/** The wake over HTTP: one signed POST to the router (docs/reference/api.md, "The wake"), and the interpretation of its answer. */

import type { Clock } from '../../kit/clock/clock.ts';
import { Pool } from '../../kit/http/dispatchers.ts';
import { Answer, type Exchange, retryAfterOf } from '../../kit/http/exchange.ts';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import { TRACEPARENT, traceparent } from '../../kit/trace/trace.ts';
import type { AbsenceReason } from '../../wire/alarm.ts';
import { CHECK_HEADER, longestCheckMs, readVerdict } from '../../wire/check-verdict.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import { errorMessageOf } from '../../wire/envelope.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { readSetBy } from '../../wire/set-by.ts';
import { beginningOf } from '../../wire/text.ts';
import { DEFERRED_UNTIL_HEADER, MACHINE_READY_HEADER, WAKE_ORIGIN } from '../../wire/wake.ts';
import { checkMembers } from '../alarm/checks.ts';
import { optionsOf } from '../alarm/options.ts';
import { textAuthorsOf } from '../alarm/text-authors.ts';
import type { Claim } from '../store/store.ts';
import type { WakeOutcome, Waker } from './waker.ts';

export type HttpWakerOptions = {
  url: string;
  /** Shared with the router; absent only in development. */
  token: string | undefined;
  clock: Clock;
  /** For one complete wake, beside its check. */
  timeoutMs: number;
  /** Maximum number of concurrent wakes, and of connections. */
  connections: number;
};

/** The payload of a wake with events, as source text: the events in their order beside the alarm's own payload. */
function payloadWith(events: readonly AlarmEvent[], payload: string | null): string {
  const list = events.map(({ id, receivedAt, data }) => {
    const about = JSON.stringify({ id, received_at: formatInstant(receivedAt) });
    return `${about.slice(0, -1)},"data":${data}}`;
  });
  return `{"events":[${list.join()}]${payload === null ? '' : `,"payload":${payload}`}}`;
}

/** The body of a wake. Message, payload and events are sent as stored. */
export function wakeBody({ alarm, occurrence }: Claim, late?: AbsenceReason, events?: readonly AlarmEvent[]): string {
  const { model, tools, deliver, run, run_by_person } = optionsOf(alarm);
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
    set_by: alarm.setBy === null ? undefined : readSetBy(alarm.setBy),
    text_by: textAuthorsOf(alarm),
    ...{ model, tools, deliver, run: run && { ...run, by_person: run_by_person } },
    urgent: alarm.urgent || undefined,
    ...checkMembers(alarm, occurrence),
    late_because: late,
  });
  // The payload is JSON already, and its digits must not change.
  const payload = events ? payloadWith(events, alarm.payload) : alarm.payload;
  return payload === null ? body : `${body.slice(0, -1)},"payload":${payload}}`;
}

/** Characters of a refusal's text that the error keeps. */
const ERROR_BODY_CHARACTERS = 300;
/** Bytes of a refusal's body to read. A truncated envelope is invalid, and its message could not be extracted. */
const ERROR_BODY_BYTES = 16 * 1024;
/** A longer answer is not read completely: a new connection costs less. */
const LONGEST_ANSWER_BYTES = 128 * 1024;

/**
 * Handler for the answer to one wake. Of a 2xx only the status is needed: it settles with the head, and the body is
 * drained so that the connection can be reused.
 *
 * @param url for error messages
 * @param settle gets the result, once
 * @param onEnd called when the connection is free again, or closed
 */
export function wakeAnswer(url: string, settle: (result: WakeOutcome) => void, onEnd: () => void): Answer {
  return new Answer({
    maxBytes: ERROR_BODY_BYTES,
    drainBytes: LONGEST_ANSWER_BYTES - ERROR_BODY_BYTES,
    needsNoBody: (status) => status < 300,
    settle: (exchange) => settle(wakeResult(url, exchange)),
    onEnd,
  });
}

/**
 * The result of a wake. A wake that cannot have been sent has failed and may be repeated. If that is not certain, the
 * result is unknown.
 */
function wakeResult(url: string, exchange: Exchange): WakeOutcome {
  if (exchange.result !== 'answered') {
    const { code } = exchange.error as NodeJS.ErrnoException;
    const text = `${code ? `${code}: ` : ''}${exchange.error.message}`;
    if (exchange.result === 'unsent') {
      const error = `the router at ${url} could not be reached (${text})`;
      return { outcome: 'failed', httpStatus: null, error, final: false };
    }
    const error = `the router at ${url} did not answer; whether it accepted the wake is not known (${text})`;
    return { outcome: 'unknown', httpStatus: null, error };
  }
  const { status, headers, body } = exchange;
  const machineReadyMs = wholeNumber(headers[MACHINE_READY_HEADER]);
  const readiness = machineReadyMs === undefined ? {} : { machineReadyMs };
  const verdict = readVerdict(headers[CHECK_HEADER]);
  if (status < 300 && verdict?.verdict === 'skip') return { outcome: 'skipped', httpStatus: status, verdict };
  if (status < 300) return { outcome: 'delivered', httpStatus: status, ...readiness, ...(verdict && { verdict }) };
  const answer = body.toString('utf8');
  const message = errorMessageOf(answer);
  const text = storable(
    message === undefined ? answer.slice(0, ERROR_BODY_CHARACTERS) : beginningOf(message, ERROR_BODY_CHARACTERS),
  );
  // With an invalid header the answer is an ordinary refusal.
  const deferredUntil = status === 429 ? parseInstant(String(headers[DEFERRED_UNTIL_HEADER])) : undefined;
  if (deferredUntil !== undefined) return { outcome: 'held', until: deferredUntil, reason: text };
  // "Retry at once" becomes one second: a receiver that always requests it would use up every attempt in no time.
  const wait = retryAfterOf(headers['retry-after']);
  return {
    outcome: 'failed',
    httpStatus: status,
    error: `the router answered ${status}: ${text}`,
    final: status === 410,
    ...readiness,
    ...(wait === undefined ? {} : { retryAfterSeconds: Math.max(1, wait) }),
  };
}

function wholeNumber(header: unknown): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

/** The error is stored as text: half of a surrogate pair or a NUL would not survive in every database. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}

/** A waker that keeps its connections to the router open. */
export function createHttpWaker({ url, token, clock, timeoutMs, connections }: HttpWakerOptions): Waker {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    // The timer below limits a wake as a whole: a slow answer must not occupy its slot for ever.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
    // Shorter than the router's own keep-alive, which avoids its resets. Longer than most pauses between two fires.
    keepAliveTimeout: 4_000,
  });

  const path = `${pathname}${search}`;
  const sign = token === undefined ? undefined : webhookSigner(token);
  const bearer = `Bearer ${token}`;

  /** Name, value, name, value: the client's own form of headers. */
  function headersOf(fireId: string, body: string): string[] {
    const headers = ['content-type', 'application/json'];
    const trace = traceparent();
    if (trace !== undefined) headers.push(TRACEPARENT, trace);
    if (!sign) return headers;
    const signed = sign({ id: fireId, timestampSeconds: clock.now() / 1000, body });
    headers.push('authorization', bearer);
    for (const [name, value] of Object.entries(signed)) headers.push(name, value);
    return headers;
  }

  return {
    wake(claim, late, events) {
      const body = wakeBody(claim, late, events);
      const { check } = optionsOf(claim.alarm);
      const limitMs = timeoutMs + (check ? longestCheckMs(check) : 0);
      const headers = headersOf(claim.occurrence.fireId, body);
      return new Promise((settle) => {
        const answer = wakeAnswer(url, settle, () => done());
        const done = clock.after(limitMs, () => answer.abort(new Error(`it took more than ${limitMs} ms`)));
        pool.dispatch({ method: 'POST', path, headers, body }, answer);
      });
    },
    close: () => pool.destroy(),
  };
}

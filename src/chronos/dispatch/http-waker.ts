/** The wake over HTTP: one signed POST to the router (contracts §3). */
import { type Dispatcher, Pool } from 'undici';
import type { Clock } from '../../clock/clock.ts';
import { signWebhook } from '../../identity/webhook-signature.ts';
import { formatInstant } from '../../wire/instant.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import { WAKE_ORIGIN } from '../../wire/wake.ts';
import type { Claim } from '../store/store.ts';
import type { WakeResult, Waker } from './waker.ts';

/** How much of a refusal's body the error keeps. */
const ERROR_BODY_CHARACTERS = 300;
const ERROR_BODY_BYTES = 4 * ERROR_BODY_CHARACTERS;

/** Errors that occur before a single byte of the request has left. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

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
export function wakeBody({ alarm, occurrence }: Claim): string {
  return encodeJson({
    user_id: alarm.owner,
    conversation_id: alarm.conversationId ?? undefined,
    message: alarm.wakeMessage,
    payload: alarm.payload === null ? undefined : new RawJson(alarm.payload),
    alarm_id: alarm.id,
    origin: WAKE_ORIGIN,
    fire_id: occurrence.fireId,
    scheduled_for: formatInstant(occurrence.scheduledFor),
    attempt: occurrence.attempt,
    missed_count: occurrence.missedCount,
    label: alarm.label,
    set_at: formatInstant(alarm.createdAt),
  });
}

async function startOfBody(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes >= ERROR_BODY_BYTES) break;
  }
  const text = Buffer.concat(chunks).toString('utf8').slice(0, ERROR_BODY_CHARACTERS);
  // It is stored as text: half of a surrogate pair or a NUL would not survive that everywhere.
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}

/**
 * `Retry-After` in seconds; the form with a date is rare between daemons and taken as absent. "At once" is taken as a second: a
 * receiver that keeps saying it would use up every attempt in no time.
 */
function retryAfterSeconds(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header.trim()) ? Math.max(1, Number(header)) : undefined;
}

function transportFailure(thrown: unknown, url: string): WakeResult {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const words = `${code ? `${code}: ` : ''}${error.message}`;
  if (NOT_SENT.has(code))
    return {
      outcome: 'failed',
      httpStatus: null,
      error: `the router at ${url} could not be reached (${words})`,
      final: false,
    };
  return {
    outcome: 'unknown',
    httpStatus: null,
    error: `the router at ${url} did not answer; whether it accepted the wake is not known (${words})`,
  };
}

/** A signal that aborts after a while, unless it is told that the work is done. */
function deadline(clock: Clock, timeoutMs: number): { signal: AbortSignal; done: () => void } {
  const controller = new AbortController();
  const done = clock.after(timeoutMs, () => controller.abort(new Error(`it took more than ${timeoutMs} ms`)));
  return { signal: controller.signal, done };
}

/** A waker that keeps its connections to the router open. */
export function createHttpWaker({ url, token, clock, timeoutMs, connections }: HttpWakerOptions): Waker {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    // A wake is bounded as a whole, by the signal below: an answer that drips in byte by byte must not hold its slot.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
    // Longer than any pause between two rings matters little; shorter than the router's own keep-alive avoids its resets.
    keepAliveTimeout: 4_000,
  });

  return {
    async wake(claim) {
      const body = wakeBody(claim);
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (token !== undefined) {
        headers.authorization = `Bearer ${token}`;
        Object.assign(
          headers,
          signWebhook({
            id: claim.occurrence.fireId,
            timestampSeconds: Math.floor(clock.now() / 1000),
            body,
            secret: token,
          }),
        );
      }
      const { signal, done } = deadline(clock, timeoutMs);
      try {
        const path = `${pathname}${search}`;
        const response = await pool.request({ method: 'POST', path, headers, body, signal });
        const { statusCode } = response;
        if (statusCode >= 200 && statusCode < 300) {
          // The status decides; the rest of the answer only has to be drained for the connection's sake.
          await response.body.dump().catch(() => undefined);
          return { outcome: 'delivered', httpStatus: statusCode };
        }
        const text = await startOfBody(response.body).catch(() => '');
        const retryAfter = retryAfterSeconds(response.headers['retry-after']);
        return {
          outcome: 'failed',
          httpStatus: statusCode,
          error: `the router answered ${statusCode}: ${text}`,
          final: statusCode === 410,
          ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
        };
      } catch (thrown) {
        return transportFailure(thrown, url);
      } finally {
        done();
      }
    },
    close: () => pool.destroy(),
  };
}

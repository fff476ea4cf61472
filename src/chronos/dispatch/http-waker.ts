/** The wake over HTTP: one signed POST to the router (contracts §3). */
import { Pool } from 'undici';
import type { Clock } from '../../kit/clock/clock.ts';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { WAKE_ORIGIN } from '../../wire/wake.ts';
import type { Claim } from '../store/store.ts';
import { WakeExchange } from './wake-exchange.ts';
import type { Waker } from './waker.ts';

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
  });
  // The payload is JSON already, and its digits must stay as they are.
  return alarm.payload === null ? body : `${body.slice(0, -1)},"payload":${alarm.payload}}`;
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
    // Longer than any pause between two rings matters little; shorter than the router's own keep-alive avoids its resets.
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
    wake(claim) {
      const body = wakeBody(claim);
      const headers = headersOf(claim.occurrence.fireId, body);
      return new Promise((settle) => {
        const exchange = new WakeExchange(url, settle, () => done());
        const done = clock.after(timeoutMs, () => exchange.abandon(new Error(`it took more than ${timeoutMs} ms`)));
        pool.dispatch({ method: 'POST', path, headers, body }, exchange);
      });
    },
    close: () => pool.destroy(),
  };
}

/** Webhooks on their way to chronosd, which verifies them. The router reads nothing of them. */

import type { Clock } from '../../kit/clock/clock.ts';
import { bodyBytes } from '../../kit/http/body.ts';
import { exchange } from '../../kit/http/exchange.ts';
import type { HttpContext } from '../../kit/http/handlers.ts';
import type { Transport } from '../../kit/http/plain-transport.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { HOOK_HEADERS } from '../../wire/hook.ts';

/** The time limit of one event. */
const TIMEOUT_MS = 15_000;
const ANSWER_BYTES = 16 * 1024;

export type HookForwarding = { chronosUrl: () => string | undefined; transport: Transport; clock: Clock };

const unavailable = (why: string) => new ReveilleError('unavailable', why, { retryAfterSeconds: 5 });

/** Passes a request on, and answers with chronosd's answer. */
export async function passHookOn(c: HttpContext, { chronosUrl, transport, clock }: HookForwarding): Promise<Response> {
  const base = chronosUrl();
  if (base === undefined) throw unavailable('this router knows no chronosd; its operator sets ROUTER_CHRONOS_URL');
  const headers = HOOK_HEADERS.flatMap((name) => {
    const value = c.req.header(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const answer = await exchange(transport, {
    method: c.req.method === 'POST' ? 'POST' : 'GET',
    url: new URL(c.env.incoming.url ?? '/', base),
    headers: Object.fromEntries(headers),
    ...(c.req.method === 'POST' && { body: new Uint8Array(bodyBytes(c)) }),
    maxBytes: ANSWER_BYTES,
    limit: { clock, ms: TIMEOUT_MS },
  });
  if (answer.result !== 'answered') throw unavailable('chronosd did not answer; send the event again');
  const { status, body } = answer;
  const retryAfter = answer.headers['retry-after'];
  return c.newResponse(new Uint8Array(body), status as 200, {
    'content-type': 'application/json; charset=utf-8',
    ...(typeof retryAfter === 'string' && { 'retry-after': retryAfter }),
  });
}

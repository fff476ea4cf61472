/** Passes webhooks and reads of calendar feeds on to chronosd, which verifies them. The router does not read them. */

import type { Clock } from '../../kit/clock/clock.ts';
import { bodyBytes } from '../../kit/http/body.ts';
import { exchange } from '../../kit/http/exchange.ts';
import type { HttpContext } from '../../kit/http/handlers.ts';
import type { Transport } from '../../kit/http/plain-transport.ts';
import { FEED_ANSWER_HEADERS, FEED_MAX_BYTES, FEED_REQUEST_HEADERS } from '../../wire/calendar-feed.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { HOOK_HEADERS } from '../../wire/hook.ts';

/** The time limit of one event. */
const TIMEOUT_MS = 15_000;
const ANSWER_BYTES = 16 * 1024;

export type HookForwarding = { chronosUrl: () => string | undefined; transport: Transport; clock: Clock };

const unavailable = (why: string) => new ReveilleError('unavailable', why, { retryAfterSeconds: 5 });

type ForwardedRoute = {
  readonly requestHeaders: readonly string[];
  readonly answerHeaders: readonly string[];
  readonly maxBytes: number;
  /** The error if chronosd does not answer. */
  readonly unanswered: string;
};

const JSON_TYPE = 'application/json; charset=utf-8';

const HOOK: ForwardedRoute = {
  requestHeaders: HOOK_HEADERS,
  answerHeaders: ['retry-after'],
  maxBytes: ANSWER_BYTES,
  unanswered: 'chronosd did not answer; send the event again',
};
const FEED: ForwardedRoute = {
  requestHeaders: FEED_REQUEST_HEADERS,
  answerHeaders: FEED_ANSWER_HEADERS,
  maxBytes: FEED_MAX_BYTES,
  unanswered: 'chronosd did not answer; read the calendar again later',
};

/** Passes a request on, and answers with chronosd's answer. */
async function passOn(c: HttpContext, route: ForwardedRoute, { chronosUrl, transport, clock }: HookForwarding) {
  const base = chronosUrl();
  if (base === undefined) throw unavailable('this router knows no chronosd; its operator sets ROUTER_CHRONOS_URL');
  const headers = route.requestHeaders.flatMap((name) => {
    const value = c.req.header(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const answer = await exchange(transport, {
    method: c.req.method === 'POST' ? 'POST' : 'GET',
    url: new URL(c.env.incoming.url ?? '/', base),
    headers: Object.fromEntries(headers),
    ...(c.req.method === 'POST' && { body: new Uint8Array(bodyBytes(c)) }),
    maxBytes: route.maxBytes,
    limit: { clock, ms: TIMEOUT_MS },
  });
  if (answer.result !== 'answered') throw unavailable(route.unanswered);
  const { status, body } = answer;
  const passed = route.answerHeaders.flatMap((name) => {
    const value = answer.headers[name];
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  const given = { 'content-type': JSON_TYPE, ...Object.fromEntries(passed) };
  return status === 304
    ? c.newResponse(null, 304, Object.fromEntries(passed))
    : c.newResponse(new Uint8Array(body), status as 200, given);
}

/** Webhooks and heartbeats. */
export const passHookOn = (c: HttpContext, forwarding: HookForwarding): Promise<Response> =>
  passOn(c, HOOK, forwarding);

/** Reads of calendar feeds. */
export const passFeedOn = (c: HttpContext, forwarding: HookForwarding): Promise<Response> =>
  passOn(c, FEED, forwarding);

/** `Authorization: Bearer …`, compared in constant time. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { ReveilleError } from '../../wire/errors.ts';
import { markProved } from './body.ts';
import { addressOf } from './connections.ts';
import type { HttpContext, HttpEnv } from './handlers.ts';

const BEARER = /^bearer +(\S+)$/i;
const sha256 = (text: string) => hash('sha256', text, 'buffer');

/** The token in an Authorization header. */
export function bearerOf(header: string | undefined): string | undefined {
  return BEARER.exec(header ?? '')?.[1];
}

/** Error message for a missing or wrong token. */
export const NEEDS_BEARER = 'this route needs "Authorization: Bearer <token>" with the token of this server';

/** Whether an Authorization header has `token`. It compares digests, so timing reveals neither content nor length. */
export function bearerMatches(header: string | undefined, token: string): boolean {
  return matches(header, sha256(token));
}

function matches(header: string | undefined, digest: Buffer): boolean {
  const given = bearerOf(header) ?? '';
  return timingSafeEqual(sha256(given), digest) && given !== '';
}

/**
 * Counts a wrong token and delays the answer. A request without a token is not counted.
 *
 * @returns the error to throw, the same for every wrong credential
 */
export async function refuseBearer(c: HttpContext, message: string): Promise<ReveilleError> {
  const { incoming, outgoing, wrongTokens } = c.env;
  if (c.req.header('authorization') !== undefined) {
    const disconnected = new AbortController();
    outgoing.once('close', () => disconnected.abort());
    if (await wrongTokens.refuse(addressOf(incoming.socket), disconnected.signal))
      outgoing.setHeader('connection', 'close');
  }
  return new ReveilleError('unauthorized', message);
}

/**
 * @param token `undefined` allows every request: a daemon started for development without a secret
 * @throws ReveilleError `unauthorized`, the same for every wrong credential
 */
export function requireBearer(token: string | undefined): MiddlewareHandler<HttpEnv> {
  const digest = token === undefined ? undefined : sha256(token);
  return async (c, next) => {
    if (digest !== undefined && !matches(c.req.header('authorization'), digest)) {
      throw await refuseBearer(c, NEEDS_BEARER);
    }
    markProved(c.env.incoming);
    await next();
  };
}

/** `Authorization: Bearer …`, compared in constant time. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { ReveilleError } from '../../wire/errors.ts';
import { addressOf } from './connections.ts';
import type { HttpContext, HttpEnv } from './environment.ts';

const BEARER = /^bearer +(\S+)$/i;
const sha256 = (text: string) => hash('sha256', text, 'buffer');

/** The token that an Authorization header carries. */
export function bearerOf(header: string | undefined): string | undefined {
  return BEARER.exec(header ?? '')?.[1];
}

/** What is said to whoever has no token, or a wrong one. */
export const NEEDS_BEARER = 'this route needs "Authorization: Bearer <token>" with the token of this server';

/**
 * Whether an Authorization header carries `token`. Digests are compared, so neither contents nor length show in the
 * time taken.
 */
export function bearerMatches(header: string | undefined, token: string): boolean {
  return matches(header, sha256(token));
}

function matches(header: string | undefined, digest: Buffer): boolean {
  const given = bearerOf(header) ?? '';
  return timingSafeEqual(sha256(given), digest) && given !== '';
}

/**
 * Counts a wrong token and keeps its sender waiting; a request without one is nobody's guess.
 *
 * @returns what to throw, in the same words whatever was wrong
 */
export async function refuseBearer(c: HttpContext, message: string): Promise<ReveilleError> {
  const { incoming, outgoing, wrongTokens } = c.env;
  if (c.req.header('authorization') !== undefined) {
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    if (await wrongTokens.refuse(addressOf(incoming.socket), gone.signal)) outgoing.setHeader('connection', 'close');
  }
  return new ReveilleError('unauthorized', message);
}

/**
 * Lets only requests with the token pass.
 *
 * @param token `undefined` lets everything pass: a daemon started for development without a secret
 * @throws ReveilleError `unauthorized`, in the same words whatever was wrong
 */
export function requireBearer(token: string | undefined): MiddlewareHandler<HttpEnv> {
  const digest = token === undefined ? undefined : sha256(token);
  return async (c, next) => {
    if (digest !== undefined && !matches(c.req.header('authorization'), digest)) {
      throw await refuseBearer(c, NEEDS_BEARER);
    }
    await next();
  };
}

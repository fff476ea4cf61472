/** `Authorization: Bearer …`, compared in constant time. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { ReveilleError } from '../wire/errors.ts';
import { addressOf } from './connections.ts';
import type { HttpContext, HttpEnv } from './environment.ts';

const BEARER = /^bearer +(\S+)$/i;
const sha256 = (text: string) => hash('sha256', text, 'buffer');

/** Whether an Authorization header carries `token`. Digests are compared, so neither contents nor length show in the time taken. */
export function bearerMatches(header: string | undefined, token: string): boolean {
  const given = BEARER.exec(header ?? '')?.[1] ?? '';
  return timingSafeEqual(sha256(given), sha256(token)) && given !== '';
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
  return async (c, next) => {
    if (token !== undefined && !bearerMatches(c.req.header('authorization'), token)) {
      throw await refuseBearer(c, 'this route needs "Authorization: Bearer <token>" with the token of this server');
    }
    await next();
  };
}

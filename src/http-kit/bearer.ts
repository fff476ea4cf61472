/** `Authorization: Bearer …`, compared in constant time. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { ReveilleError } from '../wire/errors.ts';
import type { HttpEnv } from './environment.ts';

const BEARER = /^bearer +(\S+)$/i;
const sha256 = (text: string) => hash('sha256', text, 'buffer');

/** Whether an Authorization header carries `token`. Digests are compared, so neither contents nor length show in the time taken. */
export function bearerMatches(header: string | undefined, token: string): boolean {
  const given = BEARER.exec(header ?? '')?.[1] ?? '';
  return timingSafeEqual(sha256(given), sha256(token)) && given !== '';
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
      throw new ReveilleError(
        'unauthorized',
        'this route needs "Authorization: Bearer <token>" with the token of this server',
      );
    }
    await next();
  };
}

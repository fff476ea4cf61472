/**
 * The caller of a request and the user whose intents it is about (docs/reference/api.md, "Executor"). The operator's transport
 * token may act for the user that a request names. A submitter's token is bound to one user. The admin token gives
 * access to the rosters only. No token answers a question: an answer needs an approver's signature.
 */
import type { Context, MiddlewareHandler } from 'hono';
import { z } from 'zod';
import { bearerMatches, bearerOf, NEEDS_BEARER, refuseBearer } from '../../kit/http/bearer.ts';
import { markProved } from '../../kit/http/body.ts';
import type { HttpContext, HttpEnv } from '../../kit/http/handlers.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { SUBMITTER_PREFIX, type SubmitterView } from '../../wire/submitter.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';
import type { ExecutorConfig } from '../config.ts';
import type { Submitters } from '../journal/submitter-table.ts';

type Caller = { readonly kind: 'operator' } | { readonly kind: 'submitter'; readonly submitter: SubmitterView };

/** The executor's additions to the HTTP context. */
export type ExecutorEnv = HttpEnv & { Variables: { caller?: Caller } };

const headerSchema = z.object({ 'X-Matrix-User': labelSchema });

/**
 * Requires the admin token. Without a configured one every request is refused: the transport token must not give access
 * to the rosters.
 */
export function requireAdmin({ adminToken }: Pick<ExecutorConfig, 'adminToken'>): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    if (adminToken === undefined)
      throw new ReveilleError(
        'forbidden',
        'EXECUTOR_ADMIN_TOKEN is not set at this executor, so approvers and submitters cannot be enrolled',
      );
    if (!bearerMatches(c.req.header('authorization'), adminToken))
      throw await refuseBearer(c as HttpContext, NEEDS_BEARER);
    markProved(c.env.incoming);
    await next();
  };
}

/** Authenticates the operator or a submitter and stores the caller in the context. */
export function requireCaller(
  { token }: Pick<ExecutorConfig, 'token'>,
  submitters: Pick<Submitters, 'holder'>,
): MiddlewareHandler<ExecutorEnv> {
  return async (c, next) => {
    const header = c.req.header('authorization');
    const given = bearerOf(header);
    const submitter = given === undefined ? undefined : submitters.holder(given);
    if (submitter) c.set('caller', { kind: 'submitter', submitter });
    // In development mode a revoked submitter token must not count as the operator.
    else if (token === undefined ? given?.startsWith(SUBMITTER_PREFIX) : !bearerMatches(header, token))
      throw await refuseBearer(c as HttpContext, NEEDS_BEARER);
    else c.set('caller', { kind: 'operator' });
    markProved(c.env.incoming);
    await next();
  };
}

/** Whether the token of a request is still accepted: that of a submitter may have been revoked since. */
export function isStillAccepted(c: Context<HttpEnv>, submitters: Pick<Submitters, 'holder'>): boolean {
  const caller = (c as Context as Context<ExecutorEnv>).get('caller');
  const given = bearerOf(c.req.header('authorization'));
  return caller?.kind === 'operator' || (given !== undefined && submitters.holder(given) !== undefined);
}

/**
 * The user of the request's intents: a label, in lower case when it is a UUID.
 *
 * @throws ReveilleError `invalid_request` when the operator names no user or an invalid label, `forbidden` when a
 *   submitter names another user
 */
export function userOf(c: Context<HttpEnv>): string {
  const caller = (c as Context as Context<ExecutorEnv>).get('caller');
  const given = c.req.header(WAKE_HEADERS.user);
  if (caller?.kind === 'submitter' && given === undefined) return caller.submitter.user;
  const named = ownerOf(parseOrThrow(headerSchema, { 'X-Matrix-User': given })['X-Matrix-User']);
  if (caller?.kind !== 'submitter' || named === caller.submitter.user) return named;
  throw new ReveilleError(
    'forbidden',
    `X-Matrix-User must be ${caller.submitter.user}, the user of this submitter token, or be omitted (got ${named})`,
  );
}

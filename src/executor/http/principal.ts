/**
 * Who calls, and whose intents a request is about (docs/contracts.md §9a). The operator's transport token vouches for
 * the user whom its requests name; a submitter's token is bound to one user; the administrator's token opens the
 * rosters and nothing else. None of them answers a question: that takes an approver's signature, whoever carries it
 * here.
 */
import type { Context, MiddlewareHandler } from 'hono';
import { z } from 'zod';
import { bearerMatches, bearerOf, NEEDS_BEARER, refuseBearer } from '../../kit/http/bearer.ts';
import type { HttpContext, HttpEnv } from '../../kit/http/environment.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { SUBMITTER_PREFIX, type SubmitterView } from '../../wire/submitter.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';
import type { ExecutorConfig } from '../config.ts';
import type { Submitters } from '../journal/submitter-table.ts';

type Caller = { readonly kind: 'operator' } | { readonly kind: 'submitter'; readonly submitter: SubmitterView };

/** What the executor's handlers find in their context, besides what every daemon's do. */
export type ExecutorEnv = HttpEnv & { Variables: { caller?: Caller } };

const headerSchema = z.object({ 'X-Matrix-User': labelSchema });

/** Lets the administrator in. Without a token of its own nobody is: the transport token must not open the rosters. */
export function requireAdmin({ adminToken }: Pick<ExecutorConfig, 'adminToken'>): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    if (adminToken === undefined)
      throw new ReveilleError(
        'forbidden',
        'EXECUTOR_ADMIN_TOKEN is not set at this executor, so nobody can enrol anybody',
      );
    if (!bearerMatches(c.req.header('authorization'), adminToken))
      throw await refuseBearer(c as HttpContext, NEEDS_BEARER);
    await next();
  };
}

/** Lets the operator and submitters in, and remembers which of them it is. */
export function requireCaller(
  { token }: Pick<ExecutorConfig, 'token'>,
  submitters: Pick<Submitters, 'holder'>,
): MiddlewareHandler<ExecutorEnv> {
  return async (c, next) => {
    const header = c.req.header('authorization');
    const given = bearerOf(header);
    const submitter = given === undefined ? undefined : submitters.holder(given);
    if (submitter) c.set('caller', { kind: 'submitter', submitter });
    // A token that was a submitter's does not become the operator's where none is needed.
    else if (token === undefined ? given?.startsWith(SUBMITTER_PREFIX) : !bearerMatches(header, token))
      throw await refuseBearer(c as HttpContext, NEEDS_BEARER);
    else c.set('caller', { kind: 'operator' });
    await next();
  };
}

/**
 * The user as intents are filed under them: a label, in lower case when it is a UUID.
 *
 * @throws ReveilleError `invalid_request` when the operator names nobody or no label, `forbidden` when a submitter
 *   names somebody else
 */
export function userOf(c: Context<HttpEnv>): string {
  const caller = (c as Context as Context<ExecutorEnv>).get('caller');
  const given = c.req.header(WAKE_HEADERS.user);
  if (caller?.kind === 'submitter' && given === undefined) return caller.submitter.user;
  const named = ownerOf(parseOrThrow(headerSchema, { 'X-Matrix-User': given })['X-Matrix-User']);
  if (caller?.kind !== 'submitter' || named === caller.submitter.user) return named;
  throw new ReveilleError(
    'forbidden',
    `X-Matrix-User must be ${caller.submitter.user}, whose submitter this token is, or be left out (got ${named})`,
  );
}

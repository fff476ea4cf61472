/** Proof of identity, and the operator's routes for keys: enrol, list and revoke (docs/reference/api.md). */
import { z } from 'zod';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import {
  challengeRequestSchema,
  type EnrolledKey,
  enrollRequestSchema,
  revokeRequestSchema,
  verifyRequestSchema,
} from '../../wire/agent.ts';
import { didOf, ownerOf, parseDid } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { checkAnswer, issueChallenge } from '../auth/challenge.ts';
import { admit } from '../auth/enrollment.ts';
import { mintPrincipalToken } from '../auth/principal.ts';
import type { AgentKey } from '../store/store.ts';
import { trustOf } from './admission.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import type { ChronosService } from './service.ts';

const KEYS_PER_PAGE = 500;
const listQuerySchema = z.strictObject({ cursor: z.string().max(400).optional() });
const positionSchema = z.object({ owner: z.string(), publicKey: z.string() });

function viewKey(key: AgentKey): EnrolledKey {
  return {
    label: key.label,
    public_key: key.publicKey,
    did: didOf(key.label, key.publicKey),
    source: key.source,
    enrolled_at: formatInstant(key.enrolledAt),
    ...(key.revokedAt === null ? {} : { revoked_at: formatInstant(key.revokedAt) }),
  };
}

/** `POST /v1/agent/auth/challenge` and `…/verify`. */
export function agentRoutes(app: HttpApp, service: ChronosService): void {
  const { store, clock, auth, admission } = service;

  /**
   * Nothing is proved yet, and a caller in an owner's name must not use up the owner's rate from elsewhere. So the
   * limit is per owner and address. Unknown names share the limit of their address.
   */
  const bound = async (c: HttpContext, did: string) => {
    if (!admission) return;
    const claimed = parseDid(did);
    const keys = claimed ? await store.keysOf(claimed.owner) : [];
    const key = keys.find(({ publicKey }) => publicKey.startsWith(claimed!.fingerprint));
    const trust = trustOf(key, clock.now());
    const address = c.env.incoming.socket.remoteAddress ?? '';
    admission.enter('challenges', key ? `${key.owner} ${address}` : address, trust);
  };

  serve(app, CHRONOS_ROUTES.challenge, async (c) => {
    const { did } = parseOrThrow(challengeRequestSchema, await readJson(c));
    await bound(c, did);
    return sendOk(c, await issueChallenge(store, did, clock.now()));
  });

  serve(app, CHRONOS_ROUTES.verify, async (c) => {
    const answer = parseOrThrow(verifyRequestSchema, await readJson(c), ['public_key', 'nonce', 'signature']);
    await bound(c, answer.did);
    const now = clock.now();
    const key = await checkAnswer(store, answer, now);
    const mayPin = answer.pin !== false;
    await admit(store, key, { mode: auth.enrollment, now, mayPin, pins: admission?.bounds.pins });
    const expiresAt = now + auth.principalTtlSeconds * 1000;
    const token = mintPrincipalToken({ owner: key.owner, publicKey: key.publicKey }, expiresAt, auth.principalSecret);
    return sendOk(c, { token, owner_user_id: key.owner, expires_in: auth.principalTtlSeconds });
  });
}

/** `POST|GET|DELETE /v1/admin/agents`. */
export function agentAdminRoutes(app: HttpApp, { store, clock }: ChronosService): void {
  serve(app, CHRONOS_ROUTES.enrollAgent, async (c) => {
    const { label, public_key } = parseOrThrow(enrollRequestSchema, await readJson(c), ['public_key']);
    const key: AgentKey = {
      owner: ownerOf(label),
      label,
      publicKey: public_key.toLowerCase(),
      source: 'enrolled',
      enrolledAt: clock.now(),
      revokedAt: null,
    };
    await store.enrollKey(key);
    return sendOk(c, viewKey(key));
  });

  serve(app, CHRONOS_ROUTES.listAgents, async (c) => {
    const { cursor } = parseOrThrow(listQuerySchema, c.req.query());
    const after = cursor === undefined ? undefined : decodeCursor(positionSchema, cursor);
    const keys = await store.listKeys({ limit: KEYS_PER_PAGE, ...(after ? { after } : {}) });
    const last = keys.length === KEYS_PER_PAGE ? keys.at(-1) : undefined;
    return sendOk(c, {
      agents: keys.map(viewKey),
      count: keys.length,
      next_cursor: last && encodeCursor({ owner: last.owner, publicKey: last.publicKey }),
    });
  });

  serve(app, CHRONOS_ROUTES.revokeAgent, async (c) => {
    const { label, public_key } = parseOrThrow(revokeRequestSchema, await readJson(c), ['public_key']);
    const revoked = await store.revokeKeys(ownerOf(label), public_key?.toLowerCase(), clock.now());
    if (revoked.length === 0)
      throw new ReveilleError('not_found', `no key that can be revoked is enrolled for ${label}`);
    return sendOk(c, { revoked: revoked.map(viewKey), count: revoked.length });
  });
}

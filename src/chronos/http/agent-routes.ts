/** Proof of identity, and the operator's routes for keys: enrol, list and revoke (docs/reference/api.md). */
import { z } from 'zod';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import type { Logger } from '../../kit/log/log.ts';
import {
  challengeRequestSchema,
  type EnrolledKey,
  enrollRequestSchema,
  type Orphan,
  reownRequestSchema,
  revokeRequestSchema,
  rotateRequestSchema,
  verifyRequestSchema,
} from '../../wire/agent.ts';
import { didOf, ownerOf, parseDid } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { madeByKey } from '../../wire/set-by.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { nextFireAt } from '../alarm/view.ts';
import { checkAnswer, issueChallenge } from '../auth/challenge.ts';
import { admit, isAccepted } from '../auth/enrollment.ts';
import { mintPrincipalToken } from '../auth/principal.ts';
import { rotate } from '../auth/rotation.ts';
import { type AgentKey, MOVE_STEP, type MoveAlarmsResult } from '../store/store.ts';
import { trustOf } from './admission.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import type { ChronosService } from './service.ts';

const KEYS_PER_PAGE = 500;
const listQuerySchema = z.strictObject({ cursor: z.string().max(400).optional() });
const positionSchema = z.object({ owner: z.string(), publicKey: z.string() });

const addressOf = (c: HttpContext) => c.env.incoming.socket.remoteAddress ?? '';

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

/** `POST /v1/agent/auth/challenge`, `…/verify` and `…/rotate`. */
export function agentRoutes(app: HttpApp, service: ChronosService, log: Logger): void {
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
    const address = addressOf(c);
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

  serve(app, CHRONOS_ROUTES.rotateKey, async (c) => {
    const secrets = ['public_key', 'new_public_key', 'nonce', 'signature', 'new_signature'];
    const request = parseOrThrow(rotateRequestSchema, await readJson(c), secrets);
    await bound(c, request.did);
    const rotated = await rotate(store, request, { mode: auth.enrollment, now: clock.now() });
    const { did, owner_user_id: owner, revoked_public_key: revoked, repeated } = rotated;
    if (!repeated) log.info({ owner, did, revoked, address: addressOf(c) }, 'an agent key was rotated');
    return sendOk(c, rotated);
  });
}

/** Why alarms cannot move, with counts. */
function notMoved(
  refused: MoveAlarmsResult & { result: 'refused' },
  { label, to, moved }: { label: string; to: string; moved: number },
): ReveilleError {
  const { inFlight, sharedKeys, open, stored, bytes, exceeded } = refused;
  const reasons = [
    ...(inFlight > 0 ? [`${inFlight} of its fires are in delivery; try again when they have ended`] : []),
    ...(sharedKeys > 0
      ? [
          `both have alarms with the same idempotency_key (${sharedKeys}); cancel those of ${to}, or choose another label`,
        ]
      : []),
    ...(exceeded
      ? [
          `${to} would have ${open} waiting alarms, ${stored} in all with ${bytes} bytes, more than allowed (CHRONOS_MAX_ACTIVE_ALARMS, CHRONOS_MAX_STORED_ALARMS, CHRONOS_MAX_STORED_MIB)`,
        ]
      : []),
  ];
  const done = moved > 0 ? `${moved} alarms of ${label} were moved, the others not` : `no alarm of ${label} was moved`;
  return new ReveilleError('conflict', `${done}: ${reasons.join('; ')}`, { retryable: inFlight > 0 });
}

/** `POST|GET|DELETE /v1/admin/agents`, `GET /v1/admin/orphans` and `POST /v1/admin/alarms/reown`. */
export function agentAdminRoutes(app: HttpApp, service: ChronosService, log: Logger): void {
  const { store, clock, auth } = service;
  const pageOfKeys = async (c: HttpContext) => {
    const { cursor } = parseOrThrow(listQuerySchema, c.req.query());
    const after = cursor === undefined ? undefined : decodeCursor(positionSchema, cursor);
    const keys = await store.listKeys({ limit: KEYS_PER_PAGE, ...(after ? { after } : {}) });
    const last = keys.length === KEYS_PER_PAGE ? keys.at(-1) : undefined;
    return { keys, next_cursor: last && encodeCursor({ owner: last.owner, publicKey: last.publicKey }) };
  };

  /** The owner as an orphan; `undefined` when it has a usable key, or no alarm that waits. */
  const orphanOf = async (owner: string, keys: readonly AgentKey[]): Promise<Orphan | undefined> => {
    if (keys.some((key) => isAccepted(key, auth.enrollment))) return undefined;
    const { open } = await store.countOpen(owner);
    if (open === 0) return undefined;
    const [next] = await store.upcoming(owner, { limit: 1 });
    const dueAt = next && nextFireAt(next);
    const revokedAt = Math.max(...keys.map((key) => key.revokedAt ?? 0));
    return {
      label: keys[0]!.label,
      open_alarms: open,
      ...(dueAt ? { next_fire_at: formatInstant(dueAt) } : {}),
      ...(revokedAt > 0 ? { revoked_at: formatInstant(revokedAt) } : {}),
    };
  };

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
    log.info(
      { owner: key.owner, did: didOf(label, key.publicKey), address: addressOf(c) },
      'an operator enrolled a key',
    );
    return sendOk(c, viewKey(key));
  });

  serve(app, CHRONOS_ROUTES.listAgents, async (c) => {
    const { keys, next_cursor } = await pageOfKeys(c);
    return sendOk(c, { agents: keys.map(viewKey), count: keys.length, next_cursor });
  });

  serve(app, CHRONOS_ROUTES.listOrphans, async (c) => {
    const { keys: page, next_cursor } = await pageOfKeys(c);
    const orphans: Orphan[] = [];
    for (const [owner, [first, ...others]] of Map.groupBy(page, (key) => key.owner)) {
      if ([first!, ...others].some((key) => isAccepted(key, auth.enrollment))) continue;
      const keys = await store.keysOf(owner);
      // An owner whose keys are on two pages belongs to the page of the first.
      if (keys.some(({ publicKey }) => publicKey < first!.publicKey)) continue;
      const orphan = await orphanOf(owner, keys);
      if (orphan) orphans.push(orphan);
    }
    return sendOk(c, { orphans, count: orphans.length, next_cursor });
  });

  serve(app, CHRONOS_ROUTES.reownAlarms, async (c) => {
    const { label, to } = parseOrThrow(reownRequestSchema, await readJson(c));
    const [from, target] = [ownerOf(label), ownerOf(to)];
    if (from === target) throw new ReveilleError('invalid_request', `label and to are the same owner (${from})`);
    const usable = async (owner: string) => (await store.keysOf(owner)).some((key) => isAccepted(key, auth.enrollment));
    if (await usable(from))
      throw new ReveilleError('conflict', `${label} has a key that is accepted; revoke it before its alarms move`);
    if (!(await usable(target)))
      throw new ReveilleError('conflict', `${to} has no key that is accepted; enrol one before alarms move there`);
    const limits = { ...service.admission?.bounds.stored, maxActive: service.limits.maxActiveAlarms };
    let moved = 0;
    try {
      for (let step = MOVE_STEP; step === MOVE_STEP; moved += step) {
        const answer = await store.moveAlarms({ from, to: target, limits, now: clock.now() });
        if (answer.result === 'refused') throw notMoved(answer, { label, to, moved });
        step = answer.moved;
      }
    } finally {
      if (moved > 0) service.onDue(clock.now());
      log.info({ from, to: target, moved, address: addressOf(c) }, 'alarms moved to another owner by an operator');
    }
    return sendOk(c, { label, to, moved });
  });

  serve(app, CHRONOS_ROUTES.revokeAgent, async (c) => {
    const { label, public_key } = parseOrThrow(revokeRequestSchema, await readJson(c), ['public_key']);
    const revoked = await store.revokeKeys(ownerOf(label), public_key?.toLowerCase(), clock.now());
    if (revoked.length === 0)
      throw new ReveilleError('not_found', `no key that can be revoked is enrolled for ${label}`);
    // A thief's feed would stay readable otherwise.
    const made = new Set(revoked.map((key) => madeByKey(key.publicKey)));
    const feeds = (await store.feedsOf(ownerOf(label))).filter(({ madeBy }) => madeBy !== null && made.has(madeBy));
    for (const { owner, id } of feeds) await store.removeFeed(owner, id);
    const dids = revoked.map((key) => didOf(key.label, key.publicKey));
    log.info({ owner: ownerOf(label), dids, address: addressOf(c) }, 'an operator revoked keys');
    return sendOk(c, { revoked: revoked.map(viewKey), count: revoked.length });
  });
}

/**
 * A small chronosd for tests of its clients: docs/reference/api.md, "chronosd: alarms" as far as the three tools need it, real ed25519
 * proofs, and ways to misbehave. It stores alarms in memory and fires none of them.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifySignature } from '../../../src/kit/identity/keys.ts';
import {
  challengeMessage,
  challengeRequestSchema,
  PRINCIPAL_HEADER,
  verifyRequestSchema,
} from '../../../src/wire/agent.ts';
import { alarmCreateSchema, alarmListQuerySchema, RAW_ALARM_FIELDS } from '../../../src/wire/alarm.ts';
import { FINGERPRINT_LENGTH, parseDid } from '../../../src/wire/did.ts';
import { errorEnvelope, okEnvelope } from '../../../src/wire/envelope.ts';
import { ReveilleError, toReveilleError } from '../../../src/wire/errors.ts';
import { parseJsonObject, type RawJson } from '../../../src/wire/json.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';

export type SeenRequest = { method: string; path: string; body: string; principal: string | undefined };

export type StandInChronosd = {
  readonly url: string;
  readonly token: string;
  /** Every request, in the order of arrival. */
  readonly seen: SeenRequest[];
  /** Issued principal tokens. */
  readonly issued: string[];
  /** Handles a request differently from chronosd; `true` when it did. */
  misbehave: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Changes the answer to a challenge. */
  tamperWithChallenge: ((challenge: Record<string, unknown>) => Record<string, unknown>) | undefined;
  /** Invalidates the principal tokens, as a chronosd with another secret would. */
  forgetPrincipals(): void;
  close(): Promise<void>;
};

type StoredAlarm = { owner: string; view: Record<string, unknown> };

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

export async function startStandInChronosd(token = 'stand-in-transport-token'): Promise<StandInChronosd> {
  const seen: SeenRequest[] = [];
  const issued: string[] = [];
  const nonces = new Map<string, string>();
  const owners = new Map<string, string>();
  const alarms = new Map<string, StoredAlarm>();
  let createdCount = 0;

  const ownerOf = (request: IncomingMessage): string => {
    const owner = owners.get(String(request.headers[PRINCIPAL_HEADER]));
    if (!owner) throw new ReveilleError('unauthorized', 'X-Chronos-Agent must carry a principal token that is valid');
    return owner;
  };

  const verify = (body: string) => {
    const proof = parseOrThrow(verifyRequestSchema, parseJsonObject(body));
    const did = parseDid(proof.did);
    const fresh = nonces.get(proof.nonce) === proof.did;
    nonces.delete(proof.nonce);
    const message = challengeMessage(proof.did, proof.nonce);
    const own = did?.fingerprint === proof.public_key.slice(0, FINGERPRINT_LENGTH);
    if (!fresh || !did || !own || !verifySignature(proof.public_key, message, proof.signature)) {
      throw new ReveilleError('unauthorized', 'the proof of identity was not accepted');
    }
    const principal = randomBytes(24).toString('base64url');
    owners.set(principal, did.owner);
    issued.push(principal);
    return { token: principal, owner_user_id: did.owner, expires_in: 300 };
  };

  const create = (owner: string, body: string) => {
    const fields = parseJsonObject(body, RAW_ALARM_FIELDS);
    parseOrThrow(alarmCreateSchema, fields);
    if (fields.kind === 'once' && fields.delay_seconds === undefined && fields.fire_at === undefined) {
      throw new ReveilleError('invalid_request', 'an alarm of kind "once" needs delay_seconds or fire_at');
    }
    const id = randomUUID();
    createdCount++;
    const view = { id, label: '', ...fields, status: 'active', created_at: `2026-01-01T00:00:00.${createdCount}Z` };
    alarms.set(id, { owner, view: { ...view, fire_count: 0, failure_count: 0, in_flight: false } });
    return { id, next_fire_at: '2026-06-15T08:10:00.000Z', status: 'active', deduped: false };
  };

  const find = (owner: string, id: string): StoredAlarm => {
    const alarm = alarms.get(id);
    if (alarm?.owner !== owner) throw new ReveilleError('not_found', 'you have no alarm with this id');
    return alarm;
  };

  const viewsOf = (owner: string) =>
    [...alarms.values()].filter((alarm) => alarm.owner === owner).map(({ view }) => view);

  const route = (request: IncomingMessage, url: URL, body: string): unknown => {
    const [method, path] = [request.method, url.pathname];
    if (path === '/healthz') return { status: 'ok' };
    if (request.headers.authorization !== `Bearer ${token}`) throw new ReveilleError('unauthorized', 'wrong bearer');
    if (method === 'POST' && path === '/v1/agent/auth/challenge') {
      const { did } = parseOrThrow(challengeRequestSchema, parseJsonObject(body));
      const nonce = randomBytes(32).toString('hex');
      nonces.set(nonce, did);
      const challenge = { did, nonce, message: challengeMessage(did, nonce), expires_in: 120 };
      return chronosd.tamperWithChallenge?.(challenge) ?? challenge;
    }
    if (method === 'POST' && path === '/v1/agent/auth/verify') return verify(body);
    const owner = ownerOf(request);
    if (method === 'POST' && path === '/v1/alarms') return create(owner, body);
    if (method === 'GET' && path === '/v1/alarms') {
      const query = parseOrThrow(alarmListQuerySchema, Object.fromEntries(url.searchParams));
      const { limit = 100, kind, status = query.sort && 'active' } = query;
      const isAsked = (view: Record<string, unknown>) =>
        (status === undefined || view.status === status) && (kind === undefined || view.kind === kind);
      const page = viewsOf(owner).filter(isAsked).slice(0, limit);
      return { alarms: page, count: page.length };
    }
    if (method === 'GET' && path === '/v1/alarms/totals')
      return { active: viewsOf(owner).filter(({ status }) => status === 'active').length, wakes_per_day: 0 };
    const id = /^\/v1\/alarms\/([^/]+)$/.exec(path)?.[1];
    if (id && method === 'GET') return find(owner, id).view;
    if (id && method === 'DELETE') {
      const alarm = find(owner, id);
      alarm.view = { ...alarm.view, status: 'cancelled' };
      return alarm.view;
    }
    throw new ReveilleError('not_found', `no route ${method} ${path}`);
  };

  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const url = new URL(request.url ?? '/', 'http://stand-in');
    const principal = request.headers[PRINCIPAL_HEADER];
    seen.push({
      method: request.method ?? '',
      path: `${url.pathname}${url.search}`,
      body,
      principal: typeof principal === 'string' ? principal : undefined,
    });
    if (chronosd.misbehave?.(request, response)) return;
    response.setHeader('content-type', 'application/json');
    try {
      response.end(okEnvelope(route(request, url, body)));
    } catch (thrown) {
      const error = toReveilleError(thrown);
      response.writeHead(error.status).end(errorEnvelope(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const chronosd: StandInChronosd = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    seen,
    issued,
    misbehave: undefined,
    tamperWithChallenge: undefined,
    forgetPrincipals: () => owners.clear(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return chronosd;
}

/** The payload of a created alarm as the stand-in got it. */
export function payloadTextOf(request: SeenRequest): string {
  return (parseJsonObject(request.body, RAW_ALARM_FIELDS).payload as RawJson).text;
}

/** chronosd's HTTP server on a real SQLite file, without a dispatcher, and authenticated callers. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { alarmFeedSource } from '../../../src/chronos/events/event.ts';
import { Admission, type AdmissionSettings } from '../../../src/chronos/http/admission.ts';
import { type ChronosServerOptions, startChronosServer } from '../../../src/chronos/http/server.ts';
import type { ChronosService } from '../../../src/chronos/http/service.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { KeyRing } from '../../../src/chronos/turn-reports/key-ring.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { EventFeed } from '../../../src/kit/http/event-feed.ts';
import { type AgentIdentity, agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { ReadKeys } from '../../../src/router/client.ts';
import type { EnrolledKey } from '../../../src/wire/agent.ts';
import type { AlarmCreated, AlarmPreview, AlarmView, FireView } from '../../../src/wire/alarm.ts';

export const TRANSPORT = 'transport-token-canary';
export const ADMIN = 'admin-token-canary-01';
export const SECRET = 'principal-secret-canary';

export type Answer = { status: number; headers: Headers; text: string; ok: boolean; data: Data; error: Failure };
/** Any member of any answer; the assertion that reads one checks that it exists. */
export type Data = AlarmCreated &
  AlarmView &
  Pick<AlarmPreview, 'occurrences' | 'notes'> & {
    alarms: AlarmView[];
    fires: FireView[];
    agents: EnrolledKey[];
    revoked: EnrolledKey[];
    count: number;
    next_cursor?: string;
    fire_id: string;
    did: string;
    nonce: string;
    token: string;
    owner_user_id: string;
    expires_in: number;
    name: string;
  };
export type Failure = { code: string; message: string; retryable: boolean };

export type CallOptions = {
  /** An object is sent as JSON; text and bytes unchanged. */
  body?: unknown;
  headers?: Record<string, string>;
  bearer?: string | undefined;
  principal?: string | undefined;
};

export type ServiceOverrides = Partial<Omit<ChronosService, 'limits' | 'auth' | 'floods'>> & {
  floods?: AdmissionSettings;
  /** Where events come from, instead of the store. */
  eventStore?: Parameters<typeof alarmFeedSource>[0];
  streams?: { perOwner: number; inAll: number };
  /** The store that the service uses, around the real one. */
  storeAround?: (store: AlarmStore) => AlarmStore;
  limits?: Partial<ChronosService['limits']>;
  auth?: Partial<ChronosService['auth']>;
  log?: ChronosServerOptions['log'];
  /** Returns the keys with which a user's machine signs turn reports. */
  askKeys?: ReadKeys;
};

export async function createHttpBench(t: TestContext, overrides: ServiceOverrides = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-http-'));
  const clock = new ManualClock();
  const log = overrides.log ?? silentLogger;
  const opened = openSqliteStore({ path: join(folder, 'chronos.db'), clock, log });
  const store = overrides.storeAround?.(opened) ?? opened;
  const due: number[] = [];
  const service: ChronosService = {
    store,
    clock,
    onDue(dueAt) {
      due.push(dueAt);
      overrides.onDue?.(dueAt);
    },
    ...(overrides.floods && { admission: new Admission(overrides.floods, store, clock) }),
    ...(overrides.ledgerDays && { ledgerDays: overrides.ledgerDays }),
    ...(overrides.onRefused && { onRefused: overrides.onRefused }),
    ...(overrides.calendars && { calendars: overrides.calendars }),
    limits: { minIntervalSeconds: 10, maxFailures: 100, maxActiveAlarms: 1000, ...overrides.limits },
    auth: {
      transportToken: TRANSPORT,
      adminToken: ADMIN,
      wakeToken: undefined,
      principalSecret: SECRET,
      principalTtlSeconds: 300,
      enrollment: 'tofu',
      ...overrides.auth,
    },
  };
  const ready = () => store.ping().then(() => ({ ready: true }));
  const receipts = new KeyRing({ ask: overrides.askKeys ?? (async () => undefined), clock });
  const events = {
    feed: new EventFeed({
      source: alarmFeedSource(overrides.eventStore ?? store),
      clock: systemClock,
      name: 'chronosd',
    }),
    limits: overrides.streams ?? { perOwner: 32, inAll: 64 },
    figures: { open: 0, sent: 0 },
  };
  const server = await startChronosServer({
    host: '127.0.0.1',
    port: 0,
    service,
    events,
    turnReportKeys: receipts,
    ready,
    log,
    clock: systemClock,
  });
  t.after(async () => {
    events.feed.close();
    await server.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });

  async function call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { body, bearer = TRANSPORT, principal } = options;
    const headers: Record<string, string> = { ...options.headers };
    if (bearer) headers.authorization ??= `Bearer ${bearer}`;
    if (principal !== undefined) headers['x-chronos-agent'] = principal;
    const init: RequestInit = { method, headers };
    if (body !== undefined) {
      headers['content-type'] ??= 'application/json';
      init.body = typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body);
    }
    const response = await fetch(`${server.url}${path}`, init);
    const text = await response.text();
    const envelope = text === '' ? {} : JSON.parse(text);
    return {
      status: response.status,
      headers: response.headers,
      text,
      ok: envelope.ok,
      data: envelope.data,
      error: envelope.error,
    };
  }

  async function challenge(did: string): Promise<string> {
    const { status, data } = await call('POST', '/v1/agent/auth/challenge', { body: { did } });
    assert.equal(status, 200);
    return data.nonce;
  }

  async function prove(who: AgentIdentity): Promise<Answer> {
    const nonce = await challenge(who.did);
    const signature = who.sign(`matrix-chronos-auth:${who.did}:${nonce}`);
    return call('POST', '/v1/agent/auth/verify', {
      body: { did: who.did, public_key: who.publicKeyHex, nonce, signature },
    });
  }

  return {
    url: server.url,
    port: server.port,
    clock,
    store,
    due,
    events,
    call,
    challenge,
    prove,
    /** An authorized agent with a key of its own. */
    async agent(label: string, key = generateKey()) {
      const who = agentIdentity(label, key);
      const proof = await prove(who);
      assert.equal(proof.status, 200, proof.text);
      const principal: string = proof.data.token;
      return {
        ...who,
        key,
        principal,
        call: (method: string, path: string, options: CallOptions = {}) =>
          call(method, path, { principal, ...options }),
        /** Creates an alarm and returns its id. */
        async set(body: Record<string, unknown> = {}): Promise<string> {
          const alarm = { kind: 'once', wake_message: 'hello', delay_seconds: 3600, ...body };
          const { status, data, text } = await call('POST', '/v1/alarms', { principal, body: alarm });
          assert.equal(status, 200, text);
          return data.id;
        },
      };
    },
  };
}

/** Asserts a refusal, by its exact text or by a pattern. */
export function refused(
  { status, ok, error, text }: Answer,
  expected: number,
  code: string,
  message?: string | RegExp,
): void {
  assert.equal(status, expected, text);
  assert.equal(ok, false);
  assert.equal(error.code, code, text);
  if (typeof message === 'string') assert.equal(error.message, message);
  else if (message) assert.match(error.message, message);
}

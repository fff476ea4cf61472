/** Rotation of agent keys: its proofs, races and repeats, and the alarms before and after it. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { type AgentIdentity, agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { createLogger } from '../../../src/kit/log/log.ts';
import { eventually } from '../../support/eventually.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import { listening, temporaryFolder } from '../../support/temporary.ts';
import { ADMIN, type Answer, createHttpBench, refused } from './http-bench.ts';

const NOT_PROVEN = 'the proof of identity was not accepted; ask for a new challenge and sign it';

type Bench = Awaited<ReturnType<typeof createHttpBench>>;

/** The body of a rotation, signed by both keys. */
function rotationBody(from: AgentIdentity, to: AgentIdentity, nonce: string) {
  const message = `matrix-chronos-rotate:${from.label}:${from.publicKeyHex}:${to.publicKeyHex}:${nonce}`;
  return {
    did: from.did,
    public_key: from.publicKeyHex,
    new_public_key: to.publicKeyHex,
    nonce,
    signature: from.sign(message),
    new_signature: to.sign(message),
  };
}

const send = (bench: Bench, body: object): Promise<Answer> => bench.call('POST', '/v1/agent/auth/rotate', { body });
const rotate = async (bench: Bench, from: AgentIdentity, to: AgentIdentity) =>
  send(bench, rotationBody(from, to, await bench.challenge(from.did)));

test('the new key has the alarms; the old key and its token end at once', async (t) => {
  const bench = await createHttpBench(t);
  const old = await bench.agent('ada');
  const id = await old.set();
  const key = generateKey();
  const next = agentIdentity('ada', key);
  const { status, data, text } = await rotate(bench, old, next);
  assert.equal(status, 200, text);
  assert.deepEqual(data, {
    did: next.did,
    owner_user_id: 'ada',
    public_key: next.publicKeyHex,
    revoked_public_key: old.publicKeyHex,
    repeated: false,
  });
  refused(await old.call('GET', `/v1/alarms/${id}`), 401, 'unauthorized', /prove your identity again/);
  refused(await bench.prove(old), 403, 'forbidden', /this key was revoked .*reveille agent enroll/);
  const after = await bench.agent('ada', key);
  assert.equal((await after.call('GET', `/v1/alarms/${id}`)).data.id, id);
});

test('a repeated request, and a new one for the same two keys, are answered as done', async (t) => {
  const bench = await createHttpBench(t);
  const old = await bench.agent('ada');
  const next = agentIdentity('ada', generateKey());
  const body = rotationBody(old, next, await bench.challenge(old.did));
  const answers = await Promise.all([send(bench, body), send(bench, body)]);
  assert.ok(answers.some(({ data }) => data && (data as { repeated?: boolean }).repeated === false));
  for (const again of [await send(bench, body), await rotate(bench, old, next)]) {
    assert.equal(again.status, 200, again.text);
    assert.equal((again.data as { repeated?: boolean }).repeated, true);
  }
});

test('the first rotation of a key wins; the thief with the same key is refused with the reason', async (t) => {
  const bench = await createHttpBench(t);
  const old = await bench.agent('ada');
  const successors = Array.from({ length: 8 }, () => agentIdentity('ada', generateKey()));
  const answers = await Promise.all(successors.map((next) => rotate(bench, old, next)));
  const winners = answers.filter(({ status }) => status === 200);
  assert.equal(winners.length, 1);
  for (const answer of answers)
    if (answer.status !== 200) refused(answer, 403, 'forbidden', /revoked or replaced by another key/);
  const [winner] = successors.filter((_, n) => answers[n]!.status === 200);
  // The thief's rotation, repeated, stays refused; the winner can rotate on, but not back.
  const [loser] = successors.filter((one) => one !== winner);
  refused(await rotate(bench, old, loser!), 403, 'forbidden');
  refused(await rotate(bench, winner!, old), 409, 'conflict', /create another one/);
  assert.equal((await rotate(bench, winner!, loser!)).status, 200);
});

test('wrong signatures, keys, labels and nonces prove nothing and change nothing', async (t) => {
  const bench = await createHttpBench(t);
  const old = await bench.agent('ada');
  const eve = await bench.agent('eve');
  const next = agentIdentity('ada', generateKey());
  const other = agentIdentity('ada', generateKey());
  const body = async () => rotationBody(old, next, await bench.challenge(old.did));
  const { did, publicKeyHex } = old;
  const wrong: object[] = [
    { ...(await body()), signature: next.sign('x') },
    { ...(await body()), new_signature: old.sign('x') },
    // Both signatures are of another new key.
    { ...(await body()), new_public_key: other.publicKeyHex },
    // The new key proves nothing about its possession.
    { ...(await body()), new_public_key: other.publicKeyHex, new_signature: '0'.repeat(128) },
    // A nonce that chronosd did not issue, and one of another DID.
    rotationBody(old, next, '0'.repeat(64)),
    rotationBody(old, next, await bench.challenge(eve.did)),
    // The label of another owner with one's own key.
    { ...rotationBody(eve, next, await bench.challenge(old.did)), did },
    { ...rotationBody(eve, next, await bench.challenge(did)), did, public_key: publicKeyHex },
  ];
  for (const [n, sent] of wrong.entries()) {
    const answer = await send(bench, sent);
    assert.equal(answer.error?.message, NOT_PROVEN, `${n}: ${answer.text}`);
    assert.equal(answer.status, 401);
  }
  // The signature of a challenge is none of a rotation, and the reverse.
  const nonce = await bench.challenge(did);
  const proof = old.sign(`matrix-chronos-auth:${did}:${nonce}`);
  refused(await send(bench, { ...rotationBody(old, next, nonce), signature: proof }), 401, 'unauthorized', NOT_PROVEN);
  const second = await bench.challenge(did);
  const { signature } = rotationBody(old, next, second);
  const verify = { did, public_key: publicKeyHex, nonce: second, signature };
  refused(await bench.call('POST', '/v1/agent/auth/verify', { body: verify }), 401, 'unauthorized', NOT_PROVEN);
  refused(await rotate(bench, old, old), 400, 'invalid_request', /create a new one/);
  refused(await send(bench, { ...(await body()), pin: true }), 400, 'invalid_request');
  assert.equal((await old.call('GET', '/v1/alarms')).status, 200);
  assert.deepEqual(
    (await bench.store.keysOf('ada')).map((key) => [key.publicKey, key.revokedAt]),
    [[publicKeyHex, null]],
  );
});

test('a revoked, an unknown and, where enrolment is required, a pinned key may not rotate', async (t) => {
  const bench = await createHttpBench(t);
  const old = await bench.agent('ada');
  const next = agentIdentity('ada', generateKey());
  await bench.call('DELETE', '/v1/admin/agents', { bearer: ADMIN, body: { label: 'ada' } });
  refused(await rotate(bench, old, next), 403, 'forbidden', /reveille agent revoke --label ada/);
  refused(await rotate(bench, agentIdentity('new', generateKey()), next), 403, 'forbidden');
  const stranger = agentIdentity('ada', generateKey());
  refused(await rotate(bench, stranger, next), 403, 'forbidden');

  const strict = await createHttpBench(t, { auth: { enrollment: 'required' } });
  const who = agentIdentity('ada', generateKey());
  await strict.store.pinFirstKey({
    ...{ owner: 'ada', label: 'ada', publicKey: who.publicKeyHex, source: 'tofu' as const },
    ...{ enrolledAt: 1, revokedAt: null },
  });
  refused(await rotate(strict, who, next), 403, 'forbidden');
});

test('owners without a usable key are listed with their alarms, and re-owned by an operator', async (t) => {
  let logged = '';
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    logged += chunk;
    done();
  };
  const bench = await createHttpBench(t, { log: pino({ level: 'info' }, new Writable({ write })) });
  const admin = (method: string, path: string, body?: object) =>
    bench.call(method, path, { bearer: ADMIN, ...(body && { body }) });
  const ada = await bench.agent('Ada');
  const ids = [await ada.set({ idempotency_key: 'k' }), await ada.set({ delay_seconds: 60 })];
  await ada.call('POST', `/v1/alarms/${ids[0]}/pause`);
  const none = await admin('GET', '/v1/admin/orphans');
  assert.deepEqual((none.data as unknown as { orphans: unknown[] }).orphans, []);
  const move = { label: 'Ada', to: 'bob' };
  refused(await admin('POST', '/v1/admin/alarms/reown', move), 409, 'conflict', /Ada has a key .* revoke it/);
  await admin('DELETE', '/v1/admin/agents', { label: 'Ada' });
  const { orphans } = (await admin('GET', '/v1/admin/orphans')).data as unknown as { orphans: object[] };
  const due = new Date(bench.clock.now() + 60_000).toISOString().replace('.000Z', 'Z');
  assert.equal(orphans.length, 1);
  const [{ revoked_at, next_fire_at, ...orphan }] = orphans as [{ revoked_at: string; next_fire_at: string }];
  assert.deepEqual(orphan, { label: 'Ada', open_alarms: 2 });
  assert.equal(Date.parse(next_fire_at), Date.parse(due));
  assert.equal(Date.parse(revoked_at), bench.clock.now());

  refused(await admin('POST', '/v1/admin/alarms/reown', move), 409, 'conflict', /bob has no key .* enrol one/);
  const bob = await bench.agent('bob');
  const clash = await bob.set({ idempotency_key: 'k' });
  refused(await admin('POST', '/v1/admin/alarms/reown', move), 409, 'conflict', /no alarm .* idempotency_key \(1\)/);
  await bob.call('DELETE', `/v1/alarms/${clash}`);
  const [claimed] = await bench.store.claim({
    ...{ now: bench.clock.now() + 90_000, limit: 9, perOwner: 9, inFlight: new Map<string, number>() },
  });
  refused(await admin('POST', '/v1/admin/alarms/reown', move), 409, 'conflict', /1 of its fires are in delivery/);
  const { owner, alarmId, fireId, fence } = claimed!.occurrence;
  const settle = (state: Parameters<Parameters<typeof bench.store.update>[2]>[0]) => state;
  await bench.store.complete([{ key: { owner, alarmId, fireId, fence }, attempt: null, settle }]);
  refused(await admin('POST', '/v1/admin/alarms/reown', { label: 'bob', to: 'bob' }), 400, 'invalid_request');
  const done = await admin('POST', '/v1/admin/alarms/reown', move);
  assert.deepEqual(done.data, { ...move, moved: 2 });
  const audited = logged
    .split('\n')
    .find((line) => line.includes('moved to another owner') && line.includes('"moved":2'));
  assert.match(audited ?? '', /"from":"Ada","to":"bob".*"address":"[^"]+"/);
  assert.match(
    logged,
    /"owner":"Ada","dids":\["did:matrix:Ada:[0-9a-f]+"\],"address":"[^"]+".*an operator revoked keys/,
  );
  const later = generateKey();
  await admin('POST', '/v1/admin/agents', { label: 'Ada', public_key: later.publicKeyHex });
  assert.match(logged, /"did":"did:matrix:Ada:[0-9a-f]+","address":"[^"]+".*an operator enrolled a key/);
  assert.deepEqual(
    (await bob.call('GET', '/v1/alarms')).data.alarms.map(({ id }) => id),
    [clash, ...ids.toReversed()],
  );
  refused(await bench.call('POST', '/v1/admin/alarms/reown', { body: move }), 401, 'unauthorized');
  assert.deepEqual((await admin('GET', '/v1/admin/orphans')).data.count, 0);
});

// 1,000 alarms before a rotation and 1,000 after it, on both databases.

const TOKEN = 'transport-token-of-the-test';
const log = createLogger('chronosd', 'error');

async function startCounted(t: TestContext, settings: Record<string, string>) {
  const arrivals = new Map<string, number>();
  const router = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      const { fire_id } = JSON.parse(text);
      arrivals.set(fire_id, (arrivals.get(fire_id) ?? 0) + 1);
      response.end('{}');
    });
  });
  const url = await listening(t, router);
  const chronos: RunningChronos = await startChronos({
    config: parseChronosConfig({
      CHRONOS_ENROLLMENT: 'tofu',
      CHRONOS_PORT: '0',
      CHRONOS_TOKEN: TOKEN,
      CHRONOS_ADMIN_TOKEN: 'admin-token-of-the-test',
      CHRONOS_AGENT_AUTH_SECRET: 'secret-of-the-principals',
      CHRONOS_WAKE_TOKEN: 'wake-token-of-the-test',
      CHRONOS_ROUTER_WAKE_URL: `${url}/internal/wake`,
      CHRONOS_CREATES_PER_MINUTE: '0',
      CHRONOS_CREATES_PER_MINUTE_IN_ALL: '0',
      ...settings,
    }),
    clock: systemClock,
    log,
  });
  t.after(() => chronos.close());
  return { chronos, arrivals };
}

async function fireAroundRotation(t: TestContext, settings: Record<string, string>): Promise<void> {
  const { chronos, arrivals } = await startCounted(t, settings);
  const [old, next] = [agentIdentity('fleet', generateKey()), agentIdentity('fleet', generateKey())];
  const clientOf = (identity: AgentIdentity) =>
    createChronosClient({ url: chronos.url, token: TOKEN, identity, principal: holdPrincipal() });
  // They fall due while others are set, and during the rotation. A thousand connections at once could not send their
  // headers in time on a busy computer.
  const set = async (client: ReturnType<typeof clientOf>) => {
    const alarms: { id: string }[] = [];
    const create = () => client.createAlarm({ kind: 'once', wake_message: 'x', delay_seconds: 1 });
    while (alarms.length < 1000) alarms.push(...(await Promise.all(Array.from({ length: 50 }, create))));
    return alarms;
  };
  const before = clientOf(old);
  await before.listAlarms();
  const ids = (await set(before)).map(({ id }) => id);
  await before.rotateKey(old, next);
  await assert.rejects(before.listAlarms(), {
    code: 'forbidden',
    message: /this key was revoked .* use the key that replaced it/,
  });
  const after = clientOf(next);
  await after.listAlarms();
  ids.push(...(await set(after)).map(({ id }) => id));
  await eventually('all alarms arrive', () => arrivals.size >= 2000);
  assert.deepEqual(new Set([...arrivals.keys()].map((fire) => fire.split('@')[0])), new Set(ids));
  assert.ok([...arrivals.values()].every((count) => count === 1));
  await eventually('all have ended', async () => (await after.listAlarms({ status: 'active' })).count === 0);
}

test('2,000 alarms around a rotation fire once each on SQLite', async (t) => {
  await fireAroundRotation(t, { CHRONOS_DATA_DIR: temporaryFolder(t) });
});

test('2,000 alarms around a rotation fire once each on PostgreSQL', async (t) => {
  const postgres = await startPostgres();
  t.after(() => postgres.remove());
  const uri = postgres.uri(await postgres.createDatabase());
  await fireAroundRotation(t, { CHRONOS_POSTGRES_URI: uri, CHRONOS_DATA_DIR: '/nowhere' });
});

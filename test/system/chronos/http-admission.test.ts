/** One transport token, ever new owners: the bounds, and the effect on well-behaved clients meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdmissionSettings } from '../../../src/chronos/http/admission.ts';
import { RateLimit } from '../../../src/chronos/http/admission.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { type AgentIdentity, agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { type Answer, createHttpBench } from './http-bench.ts';

const MANY = { perMinute: 100_000, inAll: 1_000_000 };
const HOUR_MS = 3_600_000;

function bounds(change: Partial<AdmissionSettings> = {}): AdmissionSettings {
  return {
    challenges: MANY,
    creates: MANY,
    triggers: MANY,
    events: MANY,
    pins: { perHour: 1000, keysInAll: 1000 },
    stored: { maxActive: 1000, maxStored: 1000, maxBytes: 1e9, maxTriggers: 1000 },
    bytesInAll: 1e9,
    ...change,
  };
}

const ALARM = { kind: 'once', wake_message: 'words', delay_seconds: 60 };

function assertRefused(answer: Answer, setting: RegExp): void {
  assert.equal(answer.status, 429);
  assert.equal(answer.error.code, 'rate_limited');
  assert.match(answer.error.message, setting);
  assert.ok(Number(answer.headers.get('retry-after')) >= 1);
}

type Bench = Awaited<ReturnType<typeof createHttpBench>>;

async function prove(bench: Bench, { did, publicKeyHex, sign }: AgentIdentity): Promise<Answer> {
  const challenge = await bench.call('POST', '/v1/agent/auth/challenge', { body: { did } });
  if (!challenge.ok) return challenge;
  const { nonce } = challenge.data;
  const signature = sign(`matrix-chronos-auth:${did}:${nonce}`);
  return bench.call('POST', '/v1/agent/auth/verify', { body: { did, nonce, public_key: publicKeyHex, signature } });
}

const newAgent = (label: string) => agentIdentity(label, generateKey());
const create = (bench: Bench, principal: string, body: object = ALARM) =>
  bench.call('POST', '/v1/alarms', { body, principal });

test('creates of one owner are bounded, and leave capacity for others; a minute later there is more', async (t) => {
  const refused: string[] = [];
  const bench = await createHttpBench(t, {
    floods: bounds({ creates: { perMinute: 3, inAll: 1000 } }),
    onRefused: (bound) => void refused.push(bound),
  });
  const [ada, bob] = [
    (await prove(bench, newAgent('ada'))).data.token,
    (await prove(bench, newAgent('bob'))).data.token,
  ];
  for (let n = 0; n < 3; n++) assert.equal((await create(bench, ada)).status, 200);
  assertRefused(await create(bench, ada), /CHRONOS_CREATES_PER_MINUTE\)/);
  assert.equal((await create(bench, bob)).status, 200);
  const { alarms } = (await bench.call('GET', '/v1/alarms', { principal: ada })).data;
  assert.equal(alarms.length, 3);
  assertRefused(
    await bench.call('PATCH', `/v1/alarms/${alarms[0]!.id}`, { body: { label: 'x' }, principal: ada }),
    /CREATES/,
  );
  const cancelled = await bench.call('DELETE', `/v1/alarms/${alarms[0]!.id}`, { principal: ada });
  assert.equal(cancelled.status, 200, 'cancelling is always admitted');
  await bench.clock.advance(20_000);
  assert.equal((await create(bench, ada)).status, 200);
  assert.deepEqual(refused, ['creates', 'creates']);
});

test('a flood of new owners cannot exhaust the share that is reserved for earlier owners', async (t) => {
  const bench = await createHttpBench(t, {
    floods: bounds({ creates: { perMinute: 5, inAll: 20 } }),
    auth: { principalTtlSeconds: 86_400 },
  });
  const old = (await prove(bench, newAgent('old'))).data.token;
  await bench.clock.advance(HOUR_MS);
  let stored = 0;
  for (let n = 0; n < 6; n++) {
    const { token } = (await prove(bench, newAgent(`invented-${n}`))).data;
    for (let m = 0; m < 5; m++) if ((await create(bench, token)).ok) stored++;
  }
  assert.equal(stored, 10, 'half of the common bound');
  for (let n = 0; n < 5; n++) assert.equal((await create(bench, old)).status, 200);
});

test('new owners are bounded by the hour, for all kinds of requests', async (t) => {
  const bench = await createHttpBench(t, { floods: bounds({ pins: { perHour: 2, keysInAll: 10 } }) });
  const known = newAgent('known');
  assert.equal((await prove(bench, known)).status, 200);
  assert.equal((await prove(bench, newAgent('next'))).status, 200);
  assertRefused(await prove(bench, newAgent('third')), /CHRONOS_NEW_OWNERS_PER_HOUR/);
  assert.equal((await prove(bench, known)).status, 200);
});

test('challenges of unknown names share one bound, and known names have their own', async (t) => {
  const bench = await createHttpBench(t, { floods: bounds({ challenges: { perMinute: 6, inAll: 1000 } }) });
  const known = newAgent('known');
  assert.equal((await prove(bench, known)).status, 200);
  const ask = (n: number) =>
    bench.call('POST', '/v1/agent/auth/challenge', { body: { did: newAgent(`invented-${n}`).did } });
  const answers = [];
  for (let n = 0; n < 10; n++) answers.push(await ask(n));
  // Challenge and answer of the now known client counted as those of an unknown one.
  assert.equal(answers.filter(({ ok }) => ok).length, 4);
  assertRefused(answers.at(-1)!, /CHRONOS_CHALLENGES_PER_MINUTE\)/);
  assert.equal((await prove(bench, known)).status, 200);
});

test('triggers are bounded', async (t) => {
  const bench = await createHttpBench(t, { floods: bounds({ triggers: { perMinute: 2, inAll: 100 } }) });
  const { token } = (await prove(bench, newAgent('ada'))).data;
  const { id } = (await create(bench, token)).data;
  const trigger = () => bench.call('POST', `/v1/alarms/${id}/trigger`, { principal: token });
  assert.equal((await trigger()).status, 200);
  assert.equal((await trigger()).status, 200);
  assertRefused(await trigger(), /CHRONOS_TRIGGERS_PER_MINUTE/);
});

test('a client that sets and cancels for ever is not refused and fills nothing; one that only sets is refused', async (t) => {
  const stored = { maxActive: 100, maxStored: 3, maxBytes: 1e9, maxTriggers: 10 };
  const bench = await createHttpBench(t, { floods: bounds({ stored }) });
  const { token } = (await prove(bench, newAgent('ada'))).data;
  for (let n = 0; n < 20; n++) {
    const { status, data } = await create(bench, token);
    assert.equal(status, 200);
    await bench.call('DELETE', `/v1/alarms/${data.id}`, { principal: token });
    assert.ok((await bench.store.usage()).alarms <= 3);
  }
  for (let n = 0; n < 3; n++) assert.equal((await create(bench, token)).status, 200);
  assertRefused(await create(bench, token), /CHRONOS_MAX_STORED_ALARMS/);
});

test('a redriven alarm counts as active', async (t) => {
  const bench = await createHttpBench(t, { limits: { maxActiveAlarms: 1 } });
  const ada = await bench.agent('ada');
  const id = await ada.set();
  await bench.store.update('ada', id, ({ alarm, occurrences }) => ({
    alarm: { ...alarm, status: 'failed' },
    occurrences: occurrences.map((occurrence) => ({ ...occurrence, dueAt: null })),
  }));
  assert.equal((await create(bench, ada.principal)).status, 200);
  const redriven = await ada.call('POST', `/v1/alarms/${id}/redrive`);
  assertRefused(redriven, /1 waiting alarms/);
});

test('when the store fills up, new owners are refused first, and each known one keeps a share', async (t) => {
  const kib = 1024;
  const bench = await createHttpBench(t, {
    floods: bounds({ bytesInAll: 400 * kib }),
    auth: { principalTtlSeconds: 86_400 },
  });
  const long = { ...ALARM, wake_message: 'x'.repeat(30 * kib) };
  const old = (await prove(bench, newAgent('old'))).data.token;
  await bench.clock.advance(HOUR_MS);
  const flood = (await prove(bench, newAgent('flood'))).data.token;
  let stored = 0;
  while ((await create(bench, flood, long)).ok) stored++;
  // Three fifths are common, and new owners fill half of those: 120 KiB, the last alarm over the edge.
  assert.equal(stored, 4);
  assertRefused(await create(bench, flood, long), /CHRONOS_MAX_STORED_MIB_IN_ALL/);
  assert.equal((await create(bench, old, long)).status, 200);
});

test('a limiter fills steadily, keeps its floors, and forgets idle clients', async () => {
  const clock = new ManualClock();
  const gate = new RateLimit({ perMinute: 0, inAll: 8 }, clock);
  const passes = (rank: 'fresh' | 'known' | 'enrolled') => {
    let count = 0;
    while (!gate.enter('x', rank)) count++;
    return count;
  };
  assert.deepEqual([passes('fresh'), passes('known'), passes('enrolled'), passes('enrolled')], [4, 2, 2, 0]);
  await clock.advance(30_000);
  assert.deepEqual([passes('fresh'), passes('known'), passes('enrolled')], [0, 2, 2]);
  assert.deepEqual(gate.enter('x', 'fresh'), { waitSeconds: 38, whose: 'all' });
});

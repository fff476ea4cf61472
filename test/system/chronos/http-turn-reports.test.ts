import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settleDelivered } from '../../../src/chronos/alarm/settlement.ts';
import { turnReportKey, webhookSigner } from '../../../src/kit/identity/webhook-signature.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { type Answer, createHttpBench, refused, TRANSPORT } from './http-bench.ts';

type Bench = Awaited<ReturnType<typeof createHttpBench>>;

const ADA_KEY = turnReportKey('the token of the machine of ada');
const EVE_KEY = turnReportKey('the token of the machine of eve');
const KEYS = new Map([
  ['ada', ADA_KEY],
  ['eve', EVE_KEY],
]);
const UNKNOWN = 'this user has no such fire, or it has been deleted';

/** A bench whose router knows the machines of ada and eve, and counts its queries. */
async function benchWithKeys(
  t: Parameters<typeof createHttpBench>[0],
  overrides: Parameters<typeof createHttpBench>[1] = {},
) {
  const queries: string[] = [];
  const bench = await createHttpBench(t, {
    ...overrides,
    async askKeys(userId) {
      queries.push(userId);
      const key = KEYS.get(userId);
      return key === undefined ? undefined : [key];
    },
  });
  return { ...bench, queries };
}

/** An alarm of ada's that has fired: its wake was accepted. */
async function firedAlarm(bench: Bench) {
  const ada = await bench.agent('ada');
  const id = await ada.set({ delay_seconds: 60 });
  await bench.clock.advance(60_000);
  const now = bench.clock.now();
  const [claim] = await bench.store.claim({
    ...{ now, limit: 10, perOwner: 10, inFlight: new Map() },
  });
  const { fireId, fence, scheduledFor, attempt, missedCount } = claim!.occurrence;
  await bench.store.complete([
    {
      key: { owner: 'ada', alarmId: id, fireId, fence },
      attempt: {
        ...{ owner: 'ada', alarmId: id, fireId, scheduledFor, attempt, missedCount, startedAt: now },
        ...{
          finishedAt: now + 40,
          outcome: 'delivered',
          httpStatus: 202,
          error: null,
          machineReadyMs: 30,
          lateBecause: null,
          cause: null,
        },
      },
      settle: (state) => settleDelivered(state, fireId, now),
    },
  ]);
  return { ada, id, fireId, now };
}

type PostChange = {
  key?: string;
  fireId?: string;
  signedFor?: string;
  atMs?: number;
  headers?: Record<string, string>;
  sent?: string;
};

/** Posts as a machine does, with the given changes. */
function post(bench: Bench, fireId: string, body: object | string, change: PostChange = {}): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const signed = webhookSigner(change.key ?? ADA_KEY)({
    id: change.signedFor ?? fireId,
    timestampSeconds: (change.atMs ?? bench.clock.now()) / 1000,
    body: text,
  });
  return bench.call('POST', `/v1/fires/${encodeURIComponent(fireId)}/receipts`, {
    bearer: '',
    body: change.sent ?? text,
    headers: { ...signed, 'content-type': 'application/json', ...change.headers },
  });
}

const started = (at: number) => ({
  stage: 'turn_started',
  at: formatInstant(at),
  turn_id: 't1',
  conversation_id: 'c1',
});
const finished = (at: number, more: object = { ok: true }) => ({
  stage: 'turn_finished',
  at: formatInstant(at),
  turn_id: 't1',
  ...more,
});

test('the report of a machine is stored with the attempt, and a repetition changes nothing', async (t) => {
  const bench = await benchWithKeys(t);
  const { ada, id, fireId, now } = await firedAlarm(bench);
  const fires = async () => (await ada.call('GET', `/v1/alarms/${id}/fires`)).data.fires;
  assert.equal((await fires())[0]!.reached, 'accepted');
  assert.equal((await fires())[0]!.turn, undefined);

  const first = await post(bench, fireId, { user_id: 'ada', receipts: [started(now + 50)] });
  assert.deepEqual(first.data, { recorded: 1, known: 0 });
  const both = {
    user_id: 'ada',
    receipts: [started(now + 9999), finished(now + 900, { ok: false, error: 'no model' })],
  };
  assert.deepEqual((await post(bench, fireId, both)).data, { recorded: 1, known: 1 });
  assert.deepEqual((await post(bench, fireId, both)).data, { recorded: 0, known: 2 });

  const [fire] = await fires();
  assert.equal(fire!.machine_ready_at, formatInstant(now + 30));
  assert.equal(fire!.accepted_at, formatInstant(now + 40));
  assert.equal(fire!.reached, 'turn_finished');
  assert.deepEqual(fire!.turn, {
    turn_id: 't1',
    conversation_id: 'c1',
    started_at: formatInstant(now + 50),
    finished_at: formatInstant(now + 900),
    ok: false,
    error: 'no model',
  });
  assert.deepEqual(bench.queries, ['ada']);
});

test('a router reads what the turns of a user used, with its own token only', async (t) => {
  const wakeToken = 'the-token-that-router-and-chronosd-share';
  const bench = await benchWithKeys(t, { auth: { wakeToken } });
  const { ada, id, fireId, now } = await firedAlarm(bench);
  const ask = (user_id: string, bearer = wakeToken, fire_ids = [fireId, `${fireId}9`, 'not-of-chronosd', fireId]) =>
    bench.call('POST', '/internal/usage', { bearer, body: { user_id, fire_ids } });
  assert.deepEqual((await ask('ada')).data, { turns: [] }, 'it has not ended');

  const usage = { input_tokens: 1200, output_tokens: 80, cost_usd: 0.0123 };
  const report = { user_id: 'ada', receipts: [started(now + 50), finished(now + 900, { ok: true, usage })] };
  assert.deepEqual((await post(bench, fireId, report)).data, { recorded: 2, known: 0 });
  assert.deepEqual((await ask('ada')).data, { turns: [{ fire_id: fireId, usage }] });
  assert.deepEqual((await ask('eve')).data, { turns: [] });
  assert.equal((await ask('ada', TRANSPORT)).status, 401);
  refused(await ask('ada', wakeToken, []), 400, 'invalid_request');
  const [fire] = (await ada.call('GET', `/v1/alarms/${id}/fires`)).data.fires;
  assert.deepEqual(fire!.turn!.usage, usage);

  const wrong = { user_id: 'ada', receipts: [finished(now + 900, { usage: { input_tokens: -1, output_tokens: 0 } })] };
  refused(await post(bench, fireId, wrong), 400, 'invalid_request');
});

test('a turn whose outcome cannot be determined is finished and neither ok nor failed', async (t) => {
  const bench = await benchWithKeys(t);
  const { ada, id, fireId, now } = await firedAlarm(bench);
  await post(bench, fireId, { user_id: 'ada', receipts: [finished(now + 1, { error: 'nobody saw its end' })] });
  const { fires } = (await ada.call('GET', `/v1/alarms/${id}/fires`)).data;
  assert.deepEqual(fires[0]!.turn, {
    turn_id: 't1',
    finished_at: formatInstant(now + 1),
    error: 'nobody saw its end',
  });
});

test('a report needs a signature of this machine, for this fire, now', async (t) => {
  const bench = await benchWithKeys(t);
  const { ada, id, fireId, now } = await firedAlarm(bench);
  const body = { user_id: 'ada', receipts: [started(now)] };
  const other = `${fireId.slice(0, 36)}@${now - 1}`;
  const text = JSON.stringify(body);
  const attempts = [
    post(bench, fireId, body, { key: EVE_KEY }),
    post(bench, fireId, body, { key: 'the token of the machine of ada' }),
    post(bench, fireId, body, { atMs: now - 301_000 }),
    post(bench, fireId, body, { atMs: now + 302_000 }),
    post(bench, fireId, body, { signedFor: other }),
    post(bench, fireId, body, { sent: text.replace('t1', 't2') }),
    post(bench, fireId, body, { headers: { 'webhook-signature': '' } }),
    post(bench, fireId, body, { headers: { 'webhook-timestamp': 'soon' } }),
    bench.call('POST', `/v1/fires/${fireId}/receipts`, { body }),
  ];
  for (const answer of await Promise.all(attempts)) refused(answer, 401, 'unauthorized', /webhook signature/);
  // A transport token and a principal are no proof either, and machines need neither.
  refused(await ada.call('POST', `/v1/fires/${fireId}/receipts`, { body }), 401, 'unauthorized');
  const { fires } = (await ada.call('GET', `/v1/alarms/${id}/fires`)).data;
  assert.equal(fires[0]!.turn, undefined);
});

test("another user's fire and one that does not exist get the same answer", async (t) => {
  const bench = await benchWithKeys(t);
  const { fireId, now } = await firedAlarm(bench);
  const eve = { user_id: 'eve', receipts: [started(now)] };
  refused(await post(bench, fireId, eve, { key: EVE_KEY }), 404, 'not_found', UNKNOWN);
  const ada = { user_id: 'ada', receipts: [started(now)] };
  const [alarmId] = fireId.split('@');
  for (const unknown of [
    `${alarmId}@${now + 1}`,
    `019ed2b4-7c11-7000-8000-000000000001@${now}`,
    'no-fire',
    `${alarmId}@`,
    `../../v1/alarms`,
  ])
    refused(await post(bench, unknown, ada), 404, 'not_found');
});

test('the router is not queried about fires that do not exist, however many users are named', async (t) => {
  const bench = await benchWithKeys(t);
  const { fireId, now } = await firedAlarm(bench);
  const receipts = [started(now)];
  for (let n = 0; n < 40; n++) {
    const garbage = await post(bench, fireId, { user_id: `user-${n}`, receipts }, { key: 'garbage' });
    refused(garbage, 404, 'not_found', UNKNOWN);
  }
  const other = `${fireId.slice(0, 36)}@${now - 1}`;
  refused(await post(bench, other, { user_id: 'ada', receipts }, { key: 'garbage' }), 404, 'not_found', UNKNOWN);
  assert.deepEqual(bench.queries, []);
  refused(await post(bench, fireId, { user_id: 'ada', receipts }, { key: 'garbage' }), 401, 'unauthorized');
  assert.deepEqual(bench.queries, ['ada']);
});

test('an invalid turn report is refused, with its fault', async (t) => {
  const bench = await benchWithKeys(t);
  const { fireId, now } = await firedAlarm(bench);
  const receipts = (...given: object[]) => ({ user_id: 'ada', receipts: given });
  const cases: [body: object | string, message: RegExp][] = [
    ['not JSON', /JSON object/],
    [receipts(), /receipts must have at least 1 entry/],
    [receipts(...Array.from({ length: 9 }, () => started(now))), /at most 8 entries/],
    [receipts({ ...started(now), ok: true }), /unknown field "receipts\.0\.ok"/],
    [receipts({ stage: 'accepted', at: formatInstant(now) }), /stage/],
    [receipts({ stage: 'turn_started', at: 'now' }), /RFC 3339/],
    [receipts(finished(now, { ok: 'yes' })), /ok/],
    [receipts(finished(now, { ok: false, error: 'x'.repeat(501) })), /at most 500 characters/],
    [receipts(finished(now, { ok: false, error: 'a\0b' })), /NUL/],
    [{ ...receipts(started(now)), user_id: 'a/b' }, /user_id/],
    [{ ...receipts(started(now)), more: 1 }, /unknown field "more"/],
  ];
  for (const [body, message] of cases) refused(await post(bench, fireId, body), 400, 'invalid_request', message);
  refused(await post(bench, fireId, 'x'.repeat(300 * 1024)), 413, 'invalid_request');
  assert.deepEqual(bench.queries, []);
});

test('while the router is away no machine is refused: turn reports are to be repeated', async (t) => {
  let away = true;
  const bench = await createHttpBench(t, {
    async askKeys() {
      if (away) throw new ReveilleError('unavailable', 'the router is away', { retryAfterSeconds: 2 });
      return [ADA_KEY];
    },
  });
  const { fireId, now } = await firedAlarm(bench);
  const body = { user_id: 'ada', receipts: [started(now)] };
  const deferred = await post(bench, fireId, body);
  refused(deferred, 503, 'unavailable');
  assert.equal(deferred.error.retryable, true);
  assert.equal(deferred.headers.get('retry-after'), '2');
  away = false;
  assert.equal((await post(bench, fireId, body)).status, 200);
});

test('a new token counts at once, and garbage does not reach the router', async (t) => {
  let keys = [ADA_KEY];
  let queries = 0;
  const bench = await createHttpBench(t, {
    async askKeys() {
      queries++;
      return keys;
    },
  });
  const { fireId, now } = await firedAlarm(bench);
  const body = { user_id: 'ada', receipts: [started(now)] };
  assert.equal((await post(bench, fireId, body)).status, 200);
  keys = [EVE_KEY, ADA_KEY];
  await bench.clock.advance(4000);
  assert.equal((await post(bench, fireId, body, { key: EVE_KEY })).status, 200);
  assert.equal((await post(bench, fireId, body)).status, 200);
  assert.equal(queries, 2);
  for (let n = 0; n < 20; n++) refused(await post(bench, fireId, body, { key: 'garbage' }), 401, 'unauthorized');
  assert.equal(queries, 2);
  await bench.clock.advance(4000);
  for (let n = 0; n < 20; n++) refused(await post(bench, fireId, body, { key: 'garbage' }), 401, 'unauthorized');
  assert.equal(queries, 3);
});

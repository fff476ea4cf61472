import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createChronosClient } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey, readKeyFile } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, listening, temporaryFolder } from '../../support/temporary.ts';
import { EXECUTOR_TOKEN, type ExecutorProcess, startExecutorProcess } from '../rail/executor-process.ts';

const SECRETS = {
  CHRONOS_TOKEN: 'a-token-of-chronosd',
  CHRONOS_AGENT_AUTH_SECRET: 'an-auth-secret-of-chronosd',
  CHRONOS_ADMIN_TOKEN: 'an-admin-token-of-chronosd',
  CHRONOS_WAKE_TOKEN: 'a-wake-token-of-chronosd',
};
const token = SECRETS.CHRONOS_TOKEN;

const owner = { after };
const home = temporaryFolder(owner);
/** Called when chronosd has created an alarm whose answer is withheld; `undefined` while answers pass. */
let withheld: (() => void) | undefined;

/** A proxy before chronosd: forwards everything, and may withhold the answer to a new alarm. */
function startProxy(target: string): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { host: _host, 'content-length': _length, connection: _connection, ...headers } = request.headers;
      const body = chunks.length === 0 ? null : Buffer.concat(chunks);
      const answer = await fetch(target + request.url!, {
        method: request.method!,
        headers: headers as Record<string, string>,
        body,
      });
      const text = await answer.text();
      if (withheld && request.method === 'POST' && request.url === '/v1/alarms') return withheld();
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
    })();
  });
  return listening(owner, server);
}

const startExecutor = (chronosUrl: string) =>
  startExecutorProcess(home, { EXECUTOR_CHRONOS_URL: chronosUrl, EXECUTOR_CHRONOS_TOKEN: token });

const chronos = await startChronos({
  config: parseChronosConfig({
    ...{ ...SECRETS, CHRONOS_PORT: '0', CHRONOS_DATA_DIR: join(home, 'chronos'), CHRONOS_ENROLLMENT: 'tofu' },
    CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:9/internal/wake',
  }),
  ...{ clock: systemClock, log: silentLogger },
});
atEnd(owner, () => chronos.close());
const url = await startProxy(chronos.url);
let executor: ExecutorProcess = await startExecutor(url);
atEnd(owner, () => executor.end('SIGKILL'));

/** A user's own agent. */
const agentOf = (user: string, key = generateKey()) =>
  createChronosClient({ url, token, identity: agentIdentity(user, key) });

async function callChronosd<T>(user: string, path: string, body?: object): Promise<{ status: number; data: T }> {
  const response = await fetch(executor.url + path, {
    ...{ method: body === undefined ? 'GET' : 'POST', body: body === undefined ? null : JSON.stringify(body) },
    headers: { authorization: `Bearer ${EXECUTOR_TOKEN}`, 'x-matrix-user': user, 'content-type': 'application/json' },
  });
  const { data } = (await response.json()) as { data: T };
  return { status: response.status, data };
}

type Ended = {
  status: string;
  error?: { code: string; message: string };
  result?: { nodes: Record<string, { result: Record<string, unknown> }> };
};

/** Submits a plan of sequential calls, and waits for its end. */
async function carriedOut(user: string, ...calls: [tool: string, args: object][]): Promise<Ended & { id: string }> {
  const nodes = calls.map(([tool, args], at) => ({ id: `n${at}`, kind: 'call', tool: `chronos/${tool}`, args }));
  const plan = { id: 'all', kind: 'sequence', nodes };
  const { data } = await callChronosd<{ intent_id: string }>(user, '/messages/async', {
    intent: { verb: 'wake', plan },
  });
  return { ...(await ended(user, data.intent_id)), id: data.intent_id };
}

function ended(user: string, id: string): Promise<Ended> {
  return eventually(
    `${id} is over`,
    async () => {
      const { data } = await callChronosd<Ended>(user, `/messages/async/${id}`);
      return ['completed', 'failed', 'unknown', 'denied'].includes(data.status) && data;
    },
    60_000,
  ) as Promise<Ended>;
}

const inAnHour = { kind: 'once', delay_seconds: 3600, wake_message: 'Look whether it arrived.' };

/** Enrols the executor's key for a user, as its refusal says. */
async function enrol(user: string): Promise<void> {
  const { publicKeyHex } = readKeyFile(join(home, 'executor', 'agent-keys', `${user}.key`));
  const admin = createChronosClient({ url, token, adminToken: SECRETS.CHRONOS_ADMIN_TOKEN });
  await admin.enrollAgent({ label: user, public_key: publicKeyHex });
}

test('a plan sets, lists and cancels alarms of its user, with a key of that user alone, which an operator enrols', async () => {
  const refused = await carriedOut('alice', ['alarm_set', inAnHour]);
  assert.equal(refused.status, 'failed');
  assert.match(refused.error!.message, /reveille agent enroll --label alice --public-key [0-9a-f]{64}/);
  // The refused key did not become the first of the label: the user's own agent still can.
  const alice = agentOf('alice');
  assert.deepEqual((await alice.listAlarms()).alarms, []);
  await enrol('alice');

  const done = await carriedOut(
    'alice',
    ['alarm_set', { ...inAnHour, conversation_id: 'rent' }],
    ['alarm_list', { limit: 10 }],
    ['alarm_set', { ...inAnHour, label: 'second' }],
    ['alarm_cancel', { alarm_id: { $ref: 'n2#/id' } }],
  );
  assert.equal(done.status, 'completed', JSON.stringify(done.error));
  const [second, first] = (await alice.listAlarms()).alarms;
  assert.deepEqual(
    [first, second].map((alarm) => [alarm?.status, alarm?.idempotency_key]),
    [
      ['active', `${done.id}.n0`],
      ['cancelled', `${done.id}.n2`],
    ],
  );
  assert.deepEqual([first?.wake_message, first?.conversation_id], [inAnHour.wake_message, 'rent']);
  assert.equal((done.result!.nodes.n1!.result as { count: number }).count, 1);
  // Each user has a different key, and none of them is the one that signs receipts.
  await carriedOut('bob', ['alarm_list', {}]);
  const keys = ['alice', 'bob'].map(
    (user) => readKeyFile(join(home, 'executor', 'agent-keys', `${user}.key`)).publicKeyHex,
  );
  const receipt = JSON.parse(await executor.get('alice', `/intents/${done.id}/receipt`)) as { public_key: string };
  assert.equal(new Set([...keys, receipt.public_key]).size, 3);
});

test('no argument of a plan creates or reaches an alarm of another user', async () => {
  const alice = agentOf('mallory-victim');
  const { id: theirs } = await alice.createAlarm({ kind: 'once', delay_seconds: 3600, wake_message: 'mine' });
  await carriedOut('mallory', ['alarm_list', {}]);
  await enrol('mallory');
  const victim = 'mallory-victim';
  for (const more of [
    { user_id: victim },
    { owner: victim },
    { owner_user_id: victim },
    { did: `did:matrix:${victim}:0011223344556677` },
    { _meta: { 'reveille/user': victim } },
    { 'reveille/user': victim },
  ]) {
    const { status, error } = await carriedOut('mallory', ['alarm_set', { ...inAnHour, ...more }]);
    assert.deepEqual([status, error?.code], ['failed', 'tool_failed'], JSON.stringify(more));
    assert.match(error!.message, /unknown field/);
  }
  const keyed = await carriedOut('mallory', ['alarm_set', { ...inAnHour, idempotency_key: 'x' }]);
  assert.equal(keyed.error?.code, 'invalid_plan');
  const further = await carriedOut('mallory', ['alarm_set', { ...inAnHour, max_failures: 3, more: { label: 'x' } }]);
  assert.equal(further.status, 'completed', 'fields that are not in the schema of the tool');
  for (const payload of [{ user_id: victim, origin: 'chronos' }, { _meta: { 'reveille/user': victim } }]) {
    const { status } = await carriedOut('mallory', ['alarm_set', { ...inAnHour, payload, label: victim }]);
    assert.equal(status, 'completed');
  }
  const cancel = await carriedOut('mallory', ['alarm_cancel', { alarm_id: theirs }]);
  assert.match(cancel.error!.message, /not_found/);
  const listed = await carriedOut('mallory', ['alarm_list', {}]);
  assert.equal((listed.result!.nodes.n0!.result as { count: number }).count, 3);
  assert.deepEqual(
    (await alice.listAlarms()).alarms.map(({ id, status }) => [id, status]),
    [[theirs, 'active']],
  );
});

test('an executor that is killed while it sets an alarm sets one alarm, and continues', async () => {
  await carriedOut('carol', ['alarm_list', {}]);
  await enrol('carol');
  const made = new Promise<void>((resolve) => {
    withheld = resolve;
  });
  const plan = { id: 'wake', kind: 'call', tool: 'chronos/alarm_set', args: inAnHour };
  const { data } = await callChronosd<{ intent_id: string }>('carol', '/messages/async', {
    intent: { verb: 'wake', plan },
  });
  await made;
  await executor.end('SIGKILL');
  withheld = undefined;
  executor = await startExecutor(url);
  const { status, error, result } = await ended('carol', data.intent_id);
  assert.equal(status, 'completed', JSON.stringify(error));
  const carol = agentOf('carol', readKeyFile(join(home, 'executor', 'agent-keys', 'carol.key')));
  const { alarms } = await carol.listAlarms();
  assert.deepEqual(
    alarms.map(({ id, idempotency_key }) => [id, idempotency_key]),
    [[result!.nodes.wake!.result.id, `${data.intent_id}.wake`]],
  );
  const { envelopes } = JSON.parse(await executor.get('carol', `/intents/${data.intent_id}/receipt`)) as {
    envelopes: { kind: string }[];
  };
  assert.equal(envelopes.filter(({ kind }) => kind === 'call.started').length, 2);
});

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { modelEndpoint } from '../../../src/kit/model/testing/model-endpoint.ts';
import { createRouterClient } from '../../../src/router/client.ts';
import { signedAnswer } from '../../support/cluster/approval.ts';
import { readNeo } from '../../support/cluster/neo-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { startInstallation } from '../../support/installation.ts';
import { balancesOf, EXECUTOR_TOKEN, startExecutorProcess } from './executor-process.ts';
import { AGENT_MODEL, COMPILER_MODEL, spender, TASK } from './spender.ts';

const LIMIT_MS = 60_000;
/** The shortest that a machine can be told to stay awake without a turn. */
const IDLE_SECONDS = 10;
const CONVERSATION = 'the-rent';

type Intent = { intent_id: string; status: string; parked?: boolean; origin: string; conversation_id?: string };
type Gate = { node_id: string; question: string; call: { call_sha256: string } };

test('an alarm at night wakes Neo into a spend: it parks, is approved when Neo sleeps, and Neo is woken with the outcome', async (t) => {
  const endpoint = await modelEndpoint(t, spender);
  const { home, label, secrets, chronos, router, client, run } = await startInstallation(t);
  const executor = await startExecutorProcess(home.path, {
    EXECUTOR_MODEL: COMPILER_MODEL,
    EXECUTOR_MODEL_BASE_URL: endpoint.baseUrl,
    EXECUTOR_CHRONOS_URL: chronos.url,
    EXECUTOR_CHRONOS_TOKEN: secrets.CHRONOS_TOKEN,
  });
  t.after(() => executor.end('SIGKILL'));
  const machines = createRouterClient({ url: router.url, token: secrets.ROUTER_ADMIN_TOKEN });
  const owner = label.toLowerCase();
  await machines.put(owner, {
    provider: 'process',
    spec: {
      command: [process.execPath, PROGRAM, 'neo'],
      env: {
        NEO_DATA_DIR: join(home.path, 'neo'),
        MATRIX_USER_ID: label,
        NEO_MANIFEST: 'none',
        NEO_MODEL: AGENT_MODEL,
        NEO_MODEL_BASE_URL: endpoint.baseUrl,
        NEO_CHEAP_MODEL: 'none',
        NEO_EXECUTOR_URL: executor.url,
        NEO_EXECUTOR_TOKEN: EXECUTOR_TOKEN,
      },
    },
    idle_seconds: IDLE_SECONDS,
    token: secrets.NEO_DAEMON_TOKEN,
  });
  await client.createAlarm({
    kind: 'once',
    delay_seconds: 1,
    wake_message: `It is three in the morning. ${TASK}`,
    conversation_id: CONVERSATION,
  });

  const get = async <T>(path: string) => JSON.parse(await executor.get(label, path)) as T;
  const intents = async () => (await get<{ intents: Intent[] }>('/intents')).intents;
  await eventually('the task is parked', async () => (await intents())[0]?.parked === true, LIMIT_MS);
  const [parked, ...others] = await intents();
  assert.deepEqual(others, []);
  assert.deepEqual([parked?.status, parked?.origin], ['awaiting_approval', 'chronos']);
  const intentId = parked!.intent_id;
  const asleep = async () => (await machines.show(owner)).running === 'asleep';
  await eventually('Neo sleeps', asleep, LIMIT_MS);
  assert.deepEqual([balancesOf(home.path).alice, balancesOf(home.path).rent], ['5000.00', '0.00']);

  // In the morning: the executor's key is let in for the label, and a person answers without waking anybody.
  const { public_key } = await get<{ public_key: string }>(`/intents/${intentId}/receipt`);
  await run('agent', 'enroll', '--label', label, '--public-key', public_key);
  const [gate] = (await get<{ pending: Gate[] }>(`/intents/${intentId}/gates`)).pending;
  const yes = await signedAnswer({ url: executor.url, token: EXECUTOR_TOKEN }, label, intentId, gate!.node_id);
  const answered = await fetch(`${executor.url}/intents/${intentId}/gates/${gate!.node_id}/answer`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${EXECUTOR_TOKEN}`,
      'x-matrix-user': label,
      'content-type': 'application/json',
    },
    body: JSON.stringify(yes),
  });
  assert.equal(answered.status, 200, await answered.text());
  await eventually('the transfer is made', async () => (await intents())[0]?.status === 'completed', LIMIT_MS);
  const alarms = async () => (await client.listAlarms({})).alarms;
  await eventually(
    'Neo was woken with the outcome',
    async () => {
      const all = await alarms();
      return all.length === 2 && all.every(({ status }) => status === 'fired');
    },
    LIMIT_MS,
  );
  await eventually('Neo sleeps again', asleep, LIMIT_MS);

  await readNeo({ home: home.path, dataDir: join(home.path, 'neo'), token: secrets.NEO_DAEMON_TOKEN }, async (read) => {
    const { turns } = JSON.parse(await read(`/conversations/${CONVERSATION}`));
    const seen = turns.map(({ status, origin }: { status: string; origin: string }) => [status, origin]);
    assert.deepEqual(seen, [
      ['done', 'chronos'],
      ['done', 'chronos'],
    ]);
    assert.match(turns[0].reply, /It is parked/);
    assert.match(turns[1].message, new RegExp(`has ended: intent ${intentId}`));
    assert.match(turns[1].message, /It was completed/);
    assert.equal(turns[1].reply, 'Noted: it is over.');
  });
  assert.equal((await intents()).length, 1);
  assert.deepEqual([balancesOf(home.path).alice, balancesOf(home.path).rent], ['4987.50', '12.50']);
});

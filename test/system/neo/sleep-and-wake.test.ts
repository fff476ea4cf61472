import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import {
  calling,
  type EndpointBody,
  modelEndpoint,
  type Script,
  saying,
} from '../../../src/kit/model/testing/model-endpoint.ts';
import { createRouterClient } from '../../../src/router/client.ts';
import { readNeo } from '../../support/cluster/neo-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { startInstallation } from '../../support/installation.ts';

const LIMIT_MS = 60_000;
/** The shortest time for which a machine can stay awake without a turn. */
const IDLE_SECONDS = 10;
const CONVERSATION = 'the-release';
const CODE = 'RX-7741-QUOKKA';
const IN_THE_FILE = 'ship build 20261122.4 to the canaries';

const resultsIn = ({ messages }: EndpointBody) => messages.filter(({ role }) => role === 'tool').map((m) => m.content);

/**
 * A model that does the work of a turn: it sets an alarm when a person asks, and reads and recalls when it is woken.
 */
const agent: Script = (response, request) => {
  const { body } = request;
  const last = body.messages.at(-1)!;
  const prompt = body.messages.findLast(({ role }) => role === 'user')!.content;
  if (body.model === 'cheap') {
    const fact = { kind: 'fact', text: `The release code is ${CODE}.`, salience: 0.9 };
    return saying(JSON.stringify({ memories: prompt.includes(CODE) ? [fact] : [] }))(response, request);
  }
  if (last.role === 'tool') {
    const replyText = prompt.includes('Set yourself an alarm')
      ? 'It is set.'
      : `I report: ${resultsIn(body).join(' | ')}`;
    return saying(replyText)(response, request);
  }
  if (prompt.includes('Set yourself an alarm')) {
    const args = {
      kind: 'once',
      delay_seconds: IDLE_SECONDS + 6,
      // Without a conversation_id: the alarm wakes the conversation in which it is set.
      wake_message: 'Read plan.txt, recall the release code, and report both.',
    };
    return calling({ name: 'chronos__alarm_set', args })(response, request);
  }
  return calling(
    { name: 'fs__read_text_file', args: { path: 'plan.txt' } },
    { name: 'memory_recall', args: { query: 'release code' } },
  )(response, request);
};

test('Neo sets an alarm with its own tool, sleeps, is woken, reads a file, recalls a fact, and reports', async (t) => {
  const endpoint = await modelEndpoint(t, agent);
  const installation = await startInstallation(t);
  const { home, label, secrets, chronos, router, client } = installation;
  const workspace = join(home.path, 'workspace');
  mkdirSync(workspace);
  writeFileSync(join(workspace, 'plan.txt'), `${IN_THE_FILE}\n`);
  const machines = createRouterClient({ url: router.url, token: secrets.ROUTER_ADMIN_TOKEN });
  const owner = label.toLowerCase();
  await machines.put(owner, {
    provider: 'process',
    spec: {
      command: [process.execPath, PROGRAM, 'neo'],
      env: {
        NEO_DATA_DIR: join(home.path, 'neo'),
        MATRIX_CHRONOS_URL: chronos.url,
        MATRIX_CHRONOS_TOKEN: secrets.CHRONOS_TOKEN,
        MATRIX_USER_ID: label,
        MATRIX_EXECUTOR_KEYFILE: home.keyFile,
        CHRONOMETRIC_DATA_DIR: join(home.path, 'chronometric'),
        NEO_MODEL: 'smart',
        NEO_CHEAP_MODEL: 'cheap',
        NEO_MODEL_BASE_URL: endpoint.baseUrl,
        NEO_WORKSPACE: workspace,
      },
    },
    idle_seconds: IDLE_SECONDS,
    token: secrets.NEO_DAEMON_TOKEN,
  });

  await client.createAlarm({
    kind: 'once',
    delay_seconds: 1,
    wake_message: `Remember for later: the release code is ${CODE}. Set yourself an alarm to go on.`,
    conversation_id: CONVERSATION,
  });
  const asleep = async () => (await machines.show(owner)).running === 'asleep';
  const alarms = async () => (await client.listAlarms({})).alarms;
  await eventually('the model has set an alarm of its own', async () => (await alarms()).length === 2, LIMIT_MS);
  const own = (await alarms()).find(({ wake_message }) => wake_message.startsWith('Read plan.txt'))!;
  await eventually('Neo sleeps', asleep, LIMIT_MS);
  const before = endpoint.requests.length;
  await eventually('its alarm has fired', async () => (await client.getAlarm(own.id)).status === 'fired', LIMIT_MS);
  await eventually(
    'the woken turn has asked twice',
    () => endpoint.requests.filter(({ body }) => body.model === 'smart').length >= 4,
    LIMIT_MS,
  );
  await eventually('Neo sleeps again', asleep, LIMIT_MS);
  assert.ok(endpoint.requests.length > before);

  await readNeo({ home: home.path, dataDir: join(home.path, 'neo'), token: secrets.NEO_DAEMON_TOKEN }, async (get) => {
    const { turns } = JSON.parse(await get(`/conversations/${CONVERSATION}`));
    assert.deepEqual(
      turns.map(({ status, origin }: { status: string; origin: string }) => [status, origin]),
      [
        ['done', 'chronos'],
        ['done', 'chronos'],
      ],
    );
    const { reply, alarm_id } = turns[1];
    assert.equal(alarm_id, own.id);
    assert.ok(reply.includes(IN_THE_FILE) && reply.includes(CODE), reply);
  });
  const woken = endpoint.requests.map(({ body }) => body).filter(({ model }) => model === 'smart')[2]!;
  const names = woken.tools!.map((tool) => tool.function.name);
  assert.deepEqual(names.at(-1), 'memory_recall');
  assert.ok(names.includes('chronos__alarm_set') && names.includes('fs__read_text_file'));
  assert.match(woken.messages[0]!.content, /This turn was caused by a timer/);
});

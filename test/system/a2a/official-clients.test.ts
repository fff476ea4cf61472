/** The official SDKs as clients of a router: `@a2a-js/sdk` with each binding and version, and `a2a-sdk` of Python. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { type Message, Role, type Task, TaskState } from '@a2a-js/sdk';
import {
  type AuthenticationHandler,
  type Client,
  ClientFactory,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { eventually } from '../../support/eventually.ts';
import { type A2aBench, openA2aBench } from './bench.ts';

const KINDS = [
  { name: 'HTTP+JSON 1.0', binding: 'HTTP+JSON', version: '1.0' },
  { name: 'JSON-RPC 1.0', binding: 'JSONRPC', version: '1.0' },
  { name: 'JSON-RPC 0.3', binding: 'JSONRPC', version: '0.3' },
] as const;

async function clientOf(bench: A2aBench, { binding, version }: (typeof KINDS)[number], token = bench.tokens.ada) {
  const handler: AuthenticationHandler = {
    headers: async () => ({ authorization: `Bearer ${token}` }),
    shouldRetryWithHeaders: async () => undefined,
  };
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, handler);
  const legacyCompat = { enabled: true };
  const card = await new DefaultAgentCardResolver({ fetchImpl, legacyCompat }).resolve(bench.url);
  card.supportedInterfaces = card.supportedInterfaces.filter(
    (one) => one.protocolBinding === binding && one.protocolVersion === version,
  );
  assert.equal(card.supportedInterfaces.length, 1);
  const options = { fetchImpl, legacyCompat };
  const factory = new ClientFactory({
    transports: [new RestTransportFactory(options), new JsonRpcTransportFactory(options)],
  });
  return factory.createFromAgentCard(card);
}

let made = 0;
function messageOf(text: string, contextId = ''): Message {
  const part = { content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' };
  return {
    ...{ messageId: `js-${process.pid}-${++made}`, contextId, taskId: '', role: Role.ROLE_USER, parts: [part] },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
  };
}

const requestOf = (message: Message, returnImmediately = false) => ({
  ...{ tenant: '', message, metadata: undefined },
  configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately },
});

const send = async (client: Client, message: Message, immediately = false) =>
  (await client.sendMessage(requestOf(message, immediately))) as Task;

const textOf = ({ artifacts }: Task) =>
  artifacts.flatMap(({ parts }) => parts.map(({ content }) => (content?.$case === 'text' ? content.value : ''))).join();

for (const kind of KINDS) {
  test(`@a2a-js/sdk over ${kind.name}: asks, reads, lists, streams, cancels, and sets receivers`, async (t) => {
    const bench = await openA2aBench(t);
    const client = await clientOf(bench, kind);
    bench.ada.replyTo = ({ body }) => (body.message.includes('wait') ? undefined : 'the answer');

    const task = await send(client, messageOf('hello'));
    assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED);
    assert.equal(textOf(task), 'the answer');
    const read = await client.getTask({ tenant: '', id: task.id });
    assert.equal(textOf(read), 'the answer');

    const kinds: string[] = [];
    let streamed = '';
    const stream = client.sendMessageStream(requestOf(messageOf('wait for me')));
    const reading = (async () => {
      for await (const { payload } of stream) {
        kinds.push(payload!.$case);
        if (payload?.$case !== 'artifactUpdate') continue;
        const { artifact, append } = payload.value;
        const content = artifact?.parts[0]?.content;
        const text = content?.$case === 'text' ? content.value : '';
        streamed = append ? streamed + text : text;
      }
    })();
    const turn = await eventually('the agent has the turn', () => bench.ada.turns[1]);
    bench.ada.begin(turn);
    bench.ada.say(turn, 'part ');
    bench.ada.say(turn, 'by part');
    bench.ada.end(turn, 'part by part');
    await reading;
    assert.equal(kinds[0], 'task');
    assert.equal(streamed, 'part by part');

    const running = await send(client, messageOf('wait again'), true);
    assert.notEqual(running.status?.state, TaskState.TASK_STATE_COMPLETED);
    await eventually('the agent has the turn', () => bench.ada.turns[2]);
    const config = { tenant: '', id: 'hook', taskId: running.id, url: 'https://example.com/hook', token: 'mine' };
    await client.createTaskPushNotificationConfig({ ...config, authentication: undefined });
    const listed = await client.listTaskPushNotificationConfig({
      ...{ tenant: '', taskId: running.id, pageSize: 0, pageToken: '' },
    });
    assert.deepEqual(
      listed.configs.map(({ id, url }) => [id, url]),
      [['hook', 'https://example.com/hook']],
    );
    await client.deleteTaskPushNotificationConfig({ tenant: '', taskId: running.id, id: 'hook' });
    const canceled = await client.cancelTask({ tenant: '', id: running.id, metadata: undefined });
    assert.equal(canceled.status?.state, TaskState.TASK_STATE_CANCELED);

    if (kind.version === '1.0') {
      const page = await client.listTasks({
        ...{ tenant: '', contextId: '', status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '', pageSize: 2 },
        ...{ historyLength: 0, statusTimestampAfter: undefined, includeArtifacts: true },
      });
      assert.equal(page.totalSize, 3);
      assert.equal(page.tasks.length, 2);
    }
    const missing = { tenant: '', id: '018f3b1c-0000-7000-8000-000000000001' };
    await assert.rejects(client.getTask(missing), { name: /TaskNotFound/ });
  });
}

const PYTHON = process.env.REVEILLE_PYTHON ?? 'python3';
const hasPython = spawnSync(PYTHON, ['-c', 'import a2a.client, httpx']).status === 0;

test('a2a-sdk of Python over both bindings', {
  skip: hasPython ? false : 'a2a-sdk is not installed for python3 (pip install "a2a-sdk[http-server]")',
}, async (t) => {
  const bench = await openA2aBench(t);
  bench.ada.replyTo = ({ body }) => (body.message.includes('wait') ? undefined : 'the answer');
  for (const binding of ['JSONRPC', 'HTTP+JSON']) {
    const given = { url: bench.url, token: bench.tokens.ada, binding };
    const { stdout } = await promisify(execFile)(PYTHON, ['-B', join(import.meta.dirname, 'client.py')], {
      env: { ...process.env, GIVEN: JSON.stringify(given) },
      timeout: 60_000,
    });
    const steps = JSON.parse(stdout.trim().split('\n').at(-1)!);
    assert.deepEqual(steps, {
      card: 'Reveille',
      sent: ['TASK_STATE_COMPLETED', 'the answer'],
      read: 'TASK_STATE_COMPLETED',
      canceled: 'TASK_STATE_CANCELED',
      extended: 'Agent of ada',
      missing: 'TaskNotFoundError',
    });
  }
});

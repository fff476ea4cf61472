/** `core_execute` over MCP: a real executor and ledger, the extension's own client, and clients that bend the protocol. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { type TaskEnabledSession, withTasks } from '@modelcontextprotocol/ext-tasks/client';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { createExecutorClient } from '../../../src/executor/client.ts';
import { startTaskServer } from '../../../src/executor-mcp/server.ts';
import { taskKey } from '../../../src/executor-mcp/tasks.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { modelEndpoint } from '../../../src/kit/model/testing/model-endpoint.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { asOperator } from '../../support/cluster/approval.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { balancesOf } from '../rail/executor-process.ts';
import { COMPILER_MODEL, spender, TASK } from '../rail/spender.ts';
import { callerOf, startedExecutor } from './executor-bench.ts';

const META = 'io.modelcontextprotocol/';
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const UNKNOWN = { code: -32602, message: 'Task not found' };

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
type Json = any;
type Answer = { result?: Json; error?: { code: number; message: string; data?: Json } };
type Connection = {
  /** A request of 2026-07-28 with these capabilities of its client. */
  request(method: string, params: object, capabilities?: object): Promise<Answer>;
  /** The line as it is. */
  send(message: object): Promise<Answer>;
  /** The extension's own client. */
  session(): TaskEnabledSession;
};

function speak(input: Writable, output: Readable): Connection {
  const waiting = new Map<number, (answer: Answer) => void>();
  createInterface({ input: output }).on('line', (line) => {
    const { id, ...answer } = JSON.parse(line);
    waiting.get(id)?.(answer);
  });
  let lastId = 0;
  const send = (message: object) =>
    new Promise<Answer>((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      input.write(`${JSON.stringify({ ...message, jsonrpc: '2.0', id })}\n`);
    });
  const envelope = (capabilities: object) => ({
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientInfo`]: { name: 'test', version: '0' },
    [`${META}clientCapabilities`]: capabilities,
  });
  const request: Connection['request'] = (method, params, capabilities = TASKS) =>
    send({ method, params: { ...params, _meta: envelope(capabilities) } });
  const session = () =>
    withTasks({
      endpointId: 'executor',
      taskCapabilities: { generation: 'v2', capabilities: {} },
      async dispatch(wanted) {
        const { method, params } = wanted as { method: string; params: object };
        const { result, error } = await request(method, params);
        return error === undefined ? { kind: 'result', result } : { kind: 'error', error };
      },
      onServerRequest: () => () => {},
      onNotification: () => () => {},
      onInvalidated: () => () => {},
      invalidated: false,
    });
  return { request, send, session };
}

async function open(t: TestContext) {
  const folder = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, spender);
  const settings = {
    ...{ EXECUTOR_MODEL: COMPILER_MODEL, EXECUTOR_MODEL_BASE_URL: endpoint.baseUrl },
    EXECUTOR_PORT: String(await reservePort()),
  };
  let executor = await startedExecutor(t, folder, settings);
  const submitter = async (user: string, name: string) => {
    const { data } = await asOperator(executor.url, 'POST', '/submitters', { user, name });
    return (data as { token: string }).token;
  };
  /** A new server for this submitter, as if its process had been restarted. */
  const connect = (token: string, user = 'ada'): Connection => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const server = startTaskServer({
      executor: createExecutorClient({ url: executor.url, token, userId: user }),
      key: taskKey(token, user),
      log: silentLogger,
      ...{ input, output },
    });
    t.after(() => server.close());
    return speak(input, output);
  };
  return {
    folder,
    executor: () => executor,
    async restart() {
      await executor.close();
      executor = await startedExecutor(t, folder, settings);
    },
    submitter,
    connect,
    ada: () => callerOf(executor, 'ada'),
  };
}

const submit = (intent = TASK, more: object = {}) => ({ name: 'core_execute', arguments: { intent, ...more } });
const intentOf = (taskId: string) => taskId.split('.')[0]!;
const toolText = ({ result }: Answer) => result.content[0].text as string;

test('a task is submitted, waits for the person, and ends with the signed receipt', async (t) => {
  const { folder, submitter, connect, ada } = await open(t);
  const { session, request } = connect(await submitter('ada', 'client'));
  const execution = await session().callTool('core_execute', { intent: TASK });
  assert.ok(execution.kind === 'task');
  const { taskId } = execution.handle;
  const gate = await ada().waiting(intentOf(taskId));
  const { result: waiting } = await request('tasks/get', { taskId });
  assert.deepEqual([waiting.status, waiting.resultType, waiting.ttlMs], ['working', 'complete', null]);
  assert.match(waiting.statusMessage, /waits for the user's approval of ledger\/transfer .*12\.50.*Only the user/);
  await ada().answer(intentOf(taskId), gate.node_id, { approved: true });
  const { outcome } = await execution.settle();
  assert.ok(outcome.status === 'completed');
  const { content, structuredContent, isError } = outcome.result as Json;
  assert.deepEqual([isError, structuredContent.intent_status], [undefined, 'completed']);
  const receipt = await ada().call('GET', `/intents/${intentOf(taskId)}/receipt`);
  assert.deepEqual(JSON.parse(content[1].resource.text), receipt.data);
  assert.match(content[0].text, new RegExp(`sha256 ${structuredContent.receipt.sha256}`));
  assert.equal(balancesOf(folder).rent, '12.50');
});

test('no request approves: neither an answer to tasks/update nor a tool', async (t) => {
  const { folder, submitter, connect, ada } = await open(t);
  const { request } = connect(await submitter('ada', 'client'));
  const { taskId } = (await request('tools/call', submit())).result;
  const gate = await ada().waiting(intentOf(taskId));
  for (const inputResponses of [
    {},
    { [gate.node_id]: { action: 'accept', content: { approved: true } } },
    { approve: { action: 'accept', content: { call_sha256: gate.call.call_sha256 } } },
  ]) {
    const { result, error } = await request('tasks/update', { taskId, inputResponses });
    assert.deepEqual([result?.resultType, error], ['complete', undefined]);
  }
  const { tools } = (await request('tools/list', {})).result;
  assert.deepEqual(
    tools.map(({ name }: { name: string }) => name),
    ['core_execute', 'task_status', 'task_cancel'],
  );
  assert.equal((await ada().state(intentOf(taskId))).status, 'awaiting_approval');
  assert.equal(balancesOf(folder).rent, '0.00');
});

test('the task of another submitter answers as if it did not exist, also to the same user', async (t) => {
  const { submitter, connect } = await open(t);
  const first = connect(await submitter('ada', 'one'));
  const second = connect(await submitter('ada', 'two'));
  const stranger = connect(await submitter('bob', 'three'), 'bob');
  const { taskId } = (await first.request('tools/call', submit())).result;
  const forged = [taskId, intentOf(taskId), `${intentOf(taskId)}.`, `${taskId}x`, '', '.', 'x'.repeat(4000)];
  for (const { request } of [second, stranger]) {
    for (const id of forged) {
      for (const [method, params] of [
        ['tasks/get', {}],
        ['tasks/cancel', {}],
        ['tasks/update', { inputResponses: {} }],
      ] as const) {
        const { error } = await request(method, { taskId: id, ...params });
        assert.deepEqual({ code: error?.code, message: error?.message }, UNKNOWN, `${method} ${id.slice(0, 60)}`);
      }
    }
    const status = await request('tools/call', {
      name: 'task_status',
      arguments: { task_id: taskId, wait_seconds: 0 },
    });
    assert.equal(status.result.isError, true);
    assert.equal(status.result.structuredContent.code, 'not_found');
  }
  // The same key and text of another submitter is another task.
  const mine = (await first.request('tools/call', submit(TASK, { idempotency_key: 'k' }))).result;
  const again = (await first.request('tools/call', submit(TASK, { idempotency_key: 'k' }))).result;
  const theirs = (await second.request('tools/call', submit(TASK, { idempotency_key: 'k' }))).result;
  assert.equal(again.taskId, mine.taskId);
  assert.notEqual(intentOf(theirs.taskId), intentOf(mine.taskId));
  assert.equal((await first.request('tasks/get', { taskId })).result.status, 'working');
});

test('a restart of the server and of the executor loses no task', async (t) => {
  const { restart, submitter, connect, ada } = await open(t);
  const token = await submitter('ada', 'client');
  const { taskId } = (await connect(token).request('tools/call', submit())).result;
  await ada().waiting(intentOf(taskId));
  await restart();
  const { request, session } = connect(token);
  assert.match((await request('tasks/get', { taskId })).result.statusMessage, /waits for the user's approval/);
  const resumed = await session().resumeTask({
    ...{ endpointId: 'executor', generation: 'v2', taskId, originalOperation: 'tools/call' },
  });
  const gate = await ada().waiting(intentOf(taskId));
  await ada().answer(intentOf(taskId), gate.node_id, { approved: false });
  const { outcome } = await resumed.settle();
  assert.ok(outcome.status === 'completed', 'a denial is a result of the tool, not a failure of the protocol');
  const { isError, structuredContent } = outcome.result as Json;
  assert.deepEqual([isError, structuredContent.intent_status], [true, 'denied']);
});

test('a cancelled task cancels the intent; a started one says that it continues, an ended one how it ended', async (t) => {
  const { folder, submitter, connect, ada } = await open(t);
  const { request } = connect(await submitter('ada', 'client'));
  const { taskId } = (await request('tools/call', submit())).result;
  await ada().waiting(intentOf(taskId));
  assert.equal((await request('tasks/cancel', { taskId })).result.resultType, 'complete');
  assert.equal((await request('tasks/get', { taskId })).result.status, 'cancelled');
  assert.equal((await ada().state(intentOf(taskId))).status, 'cancelled');
  assert.deepEqual((await request('tasks/cancel', { taskId })).result._meta?.['reveille/ended'], undefined);

  const next = (await request('tools/call', submit())).result.taskId;
  const gate = await ada().waiting(intentOf(next));
  await ada().answer(intentOf(next), gate.node_id, { approved: true });
  await ada().until(intentOf(next), 'completed');
  const late = await request('tasks/cancel', { taskId: next });
  assert.equal(late.result._meta['reveille/ended'], 'completed');
  const tool = await request('tools/call', { name: 'task_cancel', arguments: { task_id: next } });
  assert.equal(tool.result.isError, true);
  assert.match(toolText(tool), /^The task had already ended and was not cancelled\. The task was completed\./);
  assert.equal(balancesOf(folder).rent, '12.50');
});

test('a refused cancellation is an error, because clients consider an acknowledged task cancelled', async (t) => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const { submitter, executor, ada } = await open(t);
  const token = await submitter('ada', 'client');
  const client = createExecutorClient({ url: executor().url, token, userId: 'ada' });
  const refusal = 'an escalate-class call has started, so the intent cannot be cancelled any more';
  const server = startTaskServer({
    executor: { ...client, cancel: () => Promise.reject(new ReveilleError('conflict', refusal)) },
    ...{ key: taskKey(token, 'ada'), log: silentLogger, input, output },
  });
  t.after(() => server.close());
  const { request } = speak(input, output);
  const { taskId } = (await request('tools/call', submit())).result;
  await ada().waiting(intentOf(taskId));
  const { error } = await request('tasks/cancel', { taskId });
  assert.deepEqual([error?.code, error?.message, error?.data.code], [-32600, refusal, 'conflict']);
  assert.equal((await request('tasks/get', { taskId })).result.status, 'working');
});

test('a client without the extension never gets a task, and follows its work with tools', async (t) => {
  const { submitter, connect, ada } = await open(t);
  const { request } = connect(await submitter('ada', 'client'));
  for (const capabilities of [{}, { extensions: {} }, { extensions: { 'io.modelcontextprotocol/other': {} } }]) {
    const { error } = await request('tasks/get', { taskId: 'x.y' }, capabilities);
    assert.deepEqual([error?.code, error?.data], [-32021, { requiredCapabilities: TASKS }]);
  }
  const first = await request('tools/call', submit(TASK, { wait_seconds: 0 }), {});
  assert.deepEqual([first.result.resultType, first.result.taskId], ['complete', undefined]);
  const { task_id } = first.result.structuredContent;
  const gate = await ada().waiting(intentOf(task_id));
  const waiting = request('tools/call', { name: 'task_status', arguments: { task_id, wait_seconds: 30 } }, {});
  await ada().answer(intentOf(task_id), gate.node_id, { approved: true });
  assert.match(toolText(await waiting), /^The task was completed\.\nResult:\n/);
  const wrong = await request('tools/call', submit(' '), {});
  assert.match(toolText(wrong), /intent must describe the task/);
  const unknown = await request('tools/call', { name: 'core_approve', arguments: {} });
  assert.equal(unknown.error?.code, -32602);

  // A client of 2025 on a connection of its own.
  const old = connect(await submitter('ada', 'old'));
  const hello = { protocolVersion: '2025-06-18', capabilities: TASKS, clientInfo: { name: 'old', version: '0' } };
  const { result: greeting } = await old.send({ method: 'initialize', params: hello });
  assert.equal(greeting.protocolVersion, '2025-06-18');
  const immediate = await old.send({ method: 'tools/call', params: submit(TASK, { wait_seconds: 0 }) });
  assert.equal(immediate.result.structuredContent.status, 'working');
  assert.equal(immediate.result.taskId, undefined);
  assert.ok((await old.send({ method: 'tasks/get', params: { taskId: task_id } })).error);
});

test('"reveille executor mcp" serves the tasks of this installation, and needs no executor to start', async (t) => {
  const home = temporaryFolder(t);
  const { executor, submitter } = await open(t);
  const token = await submitter('ada', 'client');
  const run = (url: string) => {
    const child = spawn(process.execPath, [PROGRAM, 'executor', 'mcp'], {
      env: {
        ...{ PATH: process.env.PATH, REVEILLE_HOME: home, MATRIX_USER_ID: 'ada' },
        ...{ NEO_EXECUTOR_URL: url, NEO_EXECUTOR_TOKEN: token },
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    return { child, ...speak(child.stdin!, child.stdout!) };
  };
  const { request, child } = run(executor().url);
  const discovered = await request('server/discover', {});
  assert.deepEqual(discovered.result.capabilities.extensions, TASKS.extensions);
  const { taskId } = (await request('tools/call', submit())).result;
  assert.equal((await request('tasks/get', { taskId })).result.status, 'working');
  child.stdin!.end();
  await eventually('it has ended', () => child.exitCode === 0);
  const alone = run('http://127.0.0.1:1');
  assert.equal((await alone.request('tools/list', {})).result.tools.length, 3);
  const { error } = await alone.request('tasks/get', { taskId });
  assert.equal(error?.code, -32603);
  assert.match(error!.message, /executor/);
});

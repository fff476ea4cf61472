/**
 * Another agent at `reveille up`: it asks Neo and sets an alarm of this user; every surface names it. The process is
 * killed again and again meanwhile, and each message is answered once.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { homeAt, readRun } from '../../src/cli/home/home.ts';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { rounds } from '../support/random/random.ts';
import { temporaryFolder } from '../support/temporary.ts';

const LIMIT_MS = 2 * START_LIMIT_MS;

test('another agent asks and sets an alarm, over kills of the whole process', async (t) => {
  const folder = temporaryFolder(t);
  const home = homeAt(join(folder, 'home'));
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, REVEILLE_HOME: home.path, ROUTER_A2A: '1' },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' },
  };
  let up: ChildProcess | undefined;
  let output = '';
  const end = async (signal: NodeJS.Signals) => {
    if (up === undefined || up.exitCode !== null || up.signalCode !== null) return;
    const exited = once(up, 'exit');
    up.kill(signal);
    await exited;
  };
  const start = async () => {
    let greeting = '';
    up = spawn(process.execPath, [PROGRAM, 'up'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    up.stdout!.setEncoding('utf8').on('data', (text: string) => {
      greeting += text;
      output += text;
    });
    await eventuallyBy(up, 'up greets', () => greeting.includes('Ctrl-C'), { limitMs: LIMIT_MS });
  };
  t.after(() => end('SIGTERM'));
  await start();
  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await reveille(home.path, args, { env: { HOME: folder } });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const [user] = (await run('user', 'list', '--json'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { token } = JSON.parse(await run('user', 'token', user.user_id, '--name', 'Scout', '--json'));
  const call = async (path: string, body?: unknown) => {
    const answer = await fetch(`${readRun(home)!.public_url}/a2a${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, json: (await answer.json()) as Record<string, never> };
  };
  const message = (messageId: string, part: object) => ({
    message: { messageId, role: 'ROLE_USER', contextId: 'talk', parts: [part] },
    configuration: { returnImmediately: true },
  });
  type Task = {
    id: string;
    status: { state: string };
    artifacts: { parts: { text?: string; data?: { alarm: { id: string } } }[] }[];
  };
  const taskIn = ({ json }: { json: object }) => (json as { task: Task }).task;

  const sent = new Map<string, string>();
  const count = rounds(6, 50);
  for (let n = 0; n < count; n++) {
    const id = `message-${n}`;
    const first = await call('/message:send', message(id, { text: `question number ${n}.` }));
    assert.equal(first.status, 200, JSON.stringify(first.json));
    sent.set(id, taskIn(first).id);
    await end('SIGKILL');
    await start();
    // The client did not get its answer, and repeats its message.
    const again = await call('/message:send', message(id, { text: `question number ${n}.` }));
    assert.equal(taskIn(again).id, sent.get(id));
  }
  for (const [id, taskId] of sent) {
    const task = await eventually(
      `${id} is answered`,
      async () => {
        const { json } = await call(`/tasks/${taskId}`);
        const { status } = json as unknown as Task;
        return status.state === 'TASK_STATE_COMPLETED' && (json as unknown as Task);
      },
      LIMIT_MS,
    );
    assert.match(task.artifacts[0]!.parts[0]!.text!, /Another agent, "Scout \(client [0-9a-f]{12}\)", wrote to me/);
  }
  const { public_url: url } = readRun(home)!;
  const own = { headers: { authorization: `Bearer ${token}` } };
  const read = async (path: string) => ((await (await fetch(`${url}${path}`, own)).json()) as { data: never }).data;
  const { conversations } = (await read('/conversations')) as { conversations: { id: string; turn_count: number }[] };
  const [talk] = conversations.filter(({ id }) => id.startsWith('a2a-'));
  assert.equal(talk!.turn_count, count, 'one turn for each message');
  t.diagnostic(`${count} messages over ${count} kills: ${talk!.turn_count} turns`);

  const alarm = { kind: 'once', delay_seconds: 1, wake_message: 'water the violets', label: 'violets' };
  const set = await call('/message:send', message('alarm-1', { data: { alarm } }));
  assert.equal(set.status, 200, JSON.stringify(set.json));
  const { id } = taskIn(set).artifacts[0]!.parts[0]!.data!.alarm;
  assert.match(await run('alarm', 'show', id), /set by +Scout \(client [0-9a-f]{12}\), a program/);
  await eventually('the agent answers', () => /water the violets/.test(output), LIMIT_MS);
});

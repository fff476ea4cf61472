/**
 * Wakes for a session that a person has open. The client of the test behaves as the channels reference of Claude Code
 * describes: it starts the server, gets events as notifications, and acknowledges nothing but by a tool call.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { OpenSessions } from '../../../src/agents/channel/open-sessions.ts';
import { startChannel } from '../../../src/agents/channel/server.ts';
import { recordSession } from '../../../src/chronos-mcp/sessions.ts';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { processInfo } from '../../../src/kit/process/process-info.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { firstLine } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { callsIn } from '../../support/stand-ins/agents/executable.ts';
import { startTargetBench, type TargetBench } from './router.ts';

const ROUTER = fileURLToPath(new URL('../../../src/router/testing/router.fixture.ts', import.meta.url));
const isLinux = { skip: process.platform !== 'linux' && 'the system reports no processes' };
const SELF = { pid: process.pid, started: processInfo(process.pid)?.started ?? '' };

type Event = { content: string; meta: { wake_id: string } };
type Client = { events: Event[]; take(id: string): Promise<string>; end(): void };

async function speak(input: Writable, output: Readable): Promise<Client> {
  const events: Event[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  const waiting = new Map<number, (result: any) => void>();
  createInterface({ input: output }).on('line', (line) => {
    const { id, method, params, result } = JSON.parse(line);
    if (method === 'notifications/claude/channel') events.push(params);
    waiting.get(id)?.(result);
  });
  let lastId = 0;
  const send = (message: object) => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  const request = (method: string, params: object): Promise<any> =>
    new Promise((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      send({ id, method, params });
    });
  const clientInfo = { name: 'claude-code', version: '2.1.80' };
  const { capabilities, instructions } = await request('initialize', {
    ...{ protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
  });
  assert.deepEqual(capabilities.experimental, { 'claude/channel': {} });
  assert.match(instructions, /wake_take/);
  send({ method: 'notifications/initialized' });
  return {
    events,
    take: async (wake_id) =>
      (await request('tools/call', { name: 'wake_take', arguments: { wake_id } })).content[0].text,
    end: () => input.end(),
  };
}

/** A router whose user alice has had one turn, and a client that opens a session. */
async function open(t: TestContext) {
  const bench = await startTargetBench(t);
  await bench.put('alice', { provider: 'command', spec: { preset: 'claude', cwd: bench.work } });
  const { session } = await bench.wakeToEnd('alice', { conversation_id: 'daily' });
  const folder = join(bench.home, 'channels');
  const sessions = new OpenSessions(folder, systemClock);
  const isOpen = (one: string, expected = true) =>
    eventually(`${one} is ${expected ? 'open' : 'closed'}`, () => sessions.has(one) === expected);
  const connect = async (opened: () => string | undefined) => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const server = startChannel({
      ...{ folder, client: SELF, session: opened, log: silentLogger, input, output },
    });
    t.after(() => server.close());
    return speak(input, output);
  };
  return { bench, session: session!, connect, isOpen };
}

/** A router in a process of its own, on the data of a test's home. */
async function startKillable(t: TestContext, { home, dataDir }: Pick<TargetBench, 'home' | 'dataDir'>) {
  // Programs do not get paths in REVEILLE_HOME, so it is not the home of the test.
  const own = join(home, '.reveille');
  mkdirSync(own);
  symlinkSync(join(home, 'channels'), join(own, 'channels'));
  const child = spawn(process.execPath, [...LEAN, ROUTER], {
    env: {
      ...{ PATH: `${join(home, 'bin')}:/usr/bin:/bin`, ...COMPILED, HOME: home, REVEILLE_HOME: own },
      ...{ ROUTER_DATA_DIR: dataDir, ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0' },
      ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const url = await firstLine(child);
  return {
    ...clientOf(url),
    async kill() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

const runs = ({ home }: TargetBench) => callsIn(home).length;

async function wake(bench: TargetBench, more: object = {}): Promise<string> {
  const answer = await bench.wake('alice', { conversation_id: 'daily', ...more });
  assert.equal(answer.status, 202, answer.text);
  return answer.json.data.turn_id!;
}

test('an open session takes the wake, and no program is started', isLinux, async (t) => {
  const { bench, session, connect, isOpen } = await open(t);
  const client = await connect(() => session);
  await isOpen(session);
  const id = await wake(bench, { message: 'secret of the message', payload: { n: 1 } });
  const event = await eventually('an event', () => client.events[0]);
  assert.equal(event.meta.wake_id, id);
  assert.doesNotMatch(JSON.stringify(event), /secret of the message/, 'an event alone starts nothing');
  const text = await client.take(id);
  assert.match(text, /An alarm that you set earlier has fired/);
  assert.ok(text.includes('\nsecret of the message\n') && text.includes('\n{"n":1}\n'), text);
  const turn = await bench.turn('alice', id, 'done');
  assert.match(turn.reply ?? '', /open session has taken/);
  assert.equal(turn.session, session);
  assert.equal(runs(bench), 1, 'only the turn that began the session');
  assert.match(await client.take(id), /delivered in another way/);
});

test('an event without a tool call falls back within 10 seconds, without a second turn', isLinux, async (t) => {
  const { bench, session, connect, isOpen } = await open(t);
  const client = await connect(() => session);
  await isOpen(session);
  const began = performance.now();
  const id = await wake(bench);
  await eventually('an event', () => client.events[0]);
  const turn = await eventually('the program has run', async () => {
    const { turns } = await bench.turns('alice');
    return turns.find((one) => one.id === id && one.status === 'done');
  });
  assert.ok(performance.now() - began < 10_000, `${performance.now() - began} ms`);
  assert.match(turn.reply ?? '', /^heard/);
  assert.deepEqual(callsIn(bench.home)[1]!.argv.slice(0, 3), ['-p', '--resume', session]);
  assert.match(await client.take(id), /delivered in another way\. Do nothing/);
  assert.equal(runs(bench), 2);
});

test('another session, a closed one, and a turn with terms are resumed at once', isLinux, async (t) => {
  const { bench, session, connect, isOpen } = await open(t);
  let opened: string | undefined = 'another';
  const client = await connect(() => opened);
  const soon = async (more: object = {}) => {
    const began = performance.now();
    await bench.turn('alice', await wake(bench, more), 'done');
    assert.ok(performance.now() - began < 5000);
    assert.equal(client.events.length, 0);
  };
  await isOpen('another');
  await soon();
  opened = session;
  await isOpen(session);
  await soon({ model: 'opus' });
  client.end();
  await isOpen(session, false);
  await soon();
  assert.equal(runs(bench), 4);
});

for (const takes of [true, false])
  test(
    `a router is killed during the delivery: the wake ${takes ? 'was taken and is not repeated' : 'was not taken and is resumed'}`,
    isLinux,
    async (t) => {
      const { bench, session, connect, isOpen } = await open(t);
      const client = await connect(() => session);
      await isOpen(session);
      await bench.close();
      const killed = await startKillable(t, bench);
      const answer = await killed.wake('alice', { conversation_id: 'daily' });
      const id = answer.json.data.turn_id!;
      await eventually('an event', () => client.events[0]);
      await killed.kill();
      if (takes) assert.match(await client.take(id), /has fired/);
      const next = await startTargetBench(t, bench);
      const turn = await next.turn('alice', id, 'done');
      assert.match(turn.reply ?? '', takes ? /open session has taken/ : /^heard/);
      assert.match(await client.take(id), /delivered in another way/);
      assert.equal(runs(bench), takes ? 1 : 2);
    },
  );

test('"reveille mcp channel" finds the session that the hook of its client recorded', isLinux, async (t) => {
  const { bench, session, isOpen } = await open(t);
  recordSession(join(bench.home, 'sessions'), SELF, JSON.stringify({ session_id: session, cwd: bench.work }));
  const child = spawn(process.execPath, [PROGRAM, 'mcp', 'channel'], {
    env: { PATH: process.env.PATH, REVEILLE_HOME: bench.home },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const client = await speak(child.stdin!, child.stdout!);
  await isOpen(session);
  const id = await wake(bench);
  await eventually('an event', () => client.events[0]);
  await client.take(id);
  await bench.turn('alice', id, 'done');
  assert.equal(runs(bench), 1);
  client.end();
  await eventually('it has ended', () => child.exitCode === 0);
});

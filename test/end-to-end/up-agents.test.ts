/**
 * The output of `reveille up` about fires for another agent than Neo, or for a Neo that runs already: each kind of
 * target with its own answer.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { probeBubblewrap } from '../../src/kit/process/bubblewrap.ts';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { installAgent } from '../support/stand-ins/agents/executable.ts';

const LIMIT_MS = 2 * START_LIMIT_MS;

type Up = { home: string; work: string; said(): string; kill(signal: NodeJS.Signals): Promise<void> };

function temporaryHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'reveille-agents-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }));
  return home;
}

function environmentOf(home: string, more: NodeJS.ProcessEnv = {}) {
  const path = [join(home, 'bin'), process.env.PATH].join(delimiter);
  const ports = { CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' };
  return { PATH: path, HOME: home, REVEILLE_HOME: join(home, 'home'), ...ports, ...more };
}

/** A person's `up`, with its output as text. */
async function startUp(t: TestContext, home: string, more: NodeJS.ProcessEnv = {}): Promise<Up> {
  const env = environmentOf(home, more);
  const work = join(home, 'work');
  mkdirSync(work, { recursive: true });
  for (const name of ['claude', 'codex'] as const) installAgent(join(home, 'bin'), name);
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, 'up'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let output = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const kill = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
  };
  t.after(() => kill('SIGTERM'));
  await eventuallyBy(child, 'up greets', () => output.includes('Ctrl-C'), { limitMs: LIMIT_MS });
  return { home, work, said: () => output, kill };
}

async function run({ home }: Up, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await reveille(join(home, 'home'), args, { env: { HOME: home } });
  assert.equal(status, 0, stderr);
  return stdout;
}

/**
 * Fires once, and waits for the output of `up` about it: the fire, and its outcome. The outcome is below that line, or
 * below its own line when another fire, such as the welcome's, came between them.
 */
async function assertShown(up: Up, label: string, wanted: RegExp): Promise<void> {
  await run(up, 'alarm', 'set', 'look at the build', '--in', '1s', '--label', label);
  const firedLine = new RegExp(`^\\S+ {2}fired {2}${label}: .*\\n((?: .*\\n)*)`, 'm');
  const reply = new RegExp(`^\\S+ {2}reply {2}${label}\\n((?: .*\\n)+)`, 'm');
  const shownText = () => {
    const [line, below] = firedLine.exec(up.said()) ?? [];
    if (below !== '') return line;
    const answer = reply.exec(up.said())?.[1];
    return answer && line + answer;
  };
  // Lines arrive one by one.
  const isShown = () => wanted.test(shownText() ?? '');
  await eventually(`the fire ${label} is shown as ${wanted}`, isShown, LIMIT_MS).catch((thrown) =>
    assert.fail(`${thrown.message}; output of "up":\n${up.said()}`),
  );
}

async function listening(t: TestContext, answer: (path: string) => { status: number; body: string }): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    const { status, body } = answer(request.url ?? '');
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a program that is started for each turn is shown with its answer, and not as awake', async (t) => {
  const home = temporaryHome(t);
  const up = await startUp(t, home);
  await run(up, 'machine', 'put', '--provider', 'claude', '--dir', up.work);
  await assertShown(up, 'one', /(?:on time|late); claude was started for it\n +│ heard \d+ bytes\n/);
  await run(up, 'machine', 'put', '--provider', 'codex', '--dir', up.work);
  await assertShown(up, 'two', /(?:on time|late); codex was started for it\n +│ heard \d+ bytes\n/);
  assert.doesNotMatch(up.said(), /could not be read|fired {2}(one|two):.*awake/);
});

test('a target that only acknowledges a wake is shown as such, a third-party daemon as well as a webhook', async (t) => {
  const home = temporaryHome(t);
  const up = await startUp(t, home);
  const hook = await listening(t, () => ({ status: 202, body: '' }));
  await run(up, 'machine', 'put', '--provider', 'webhook', '--url', `${hook}/hook`, '--allow-private');
  await assertShown(
    up,
    'hooked',
    /(?:on time|late); handed to webhook\n +webhook accepted it, and reports no result\n/,
  );

  const asked: string[] = [];
  const silent = await listening(t, (path) => {
    asked.push(path);
    return { status: path === '/chat' ? 202 : 200, body: '{"ok":true,"data":{}}' };
  });
  await run(up, 'machine', 'put', '--provider', 'http', '--url', silent);
  await assertShown(
    up,
    'silent',
    /the agent was awake\n +the daemon at \S+ accepted\s+it;\s+a\s+turn\s+report\s+of\s+it\s+is\s+shown/,
  );
  assert.ok(!asked.some((path) => path.startsWith('/conversations')), 'a daemon that names no turn gets no turn query');

  const named = await listening(t, (path) =>
    path === '/chat'
      ? { status: 202, body: '{"ok":true,"data":{"conversation_id":"c","turn_id":"t","deduped":false}}' }
      : { status: path === '/healthz' ? 200 : 404, body: 'nothing here' },
  );
  await run(up, 'machine', 'put', '--provider', 'http', '--url', named);
  await assertShown(
    up,
    'named',
    /the agent was awake\n +the daemon at \S+ accepted\s+it;\s+a\s+turn\s+report\s+of\s+it\s+is\s+shown/,
  );
  assert.doesNotMatch(up.said(), /could not be read/);
});

/** A daemon that answers a wake at once, and reports the end of its turn later, as docs/reference/turn-reports.md says. */
const REPORTING = `
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
const { PORT, REVEILLE_MACHINE_TOKEN: token, REVEILLE_CHRONOS_URL: chronos } = process.env;
const key = createHmac('sha256', token).update('reveille receipts').digest('hex');
async function report(user, fire, message) {
  const end = { stage: 'turn_finished', at: new Date().toISOString(), ok: true, reply: 'Heard: ' + message };
  const body = JSON.stringify({ user_id: user, receipts: [end] });
  const time = Math.floor(Date.now() / 1000);
  const mac = createHmac('sha256', key).update(fire + '.' + time + '.' + body).digest('base64');
  const signed = { 'webhook-id': fire, 'webhook-timestamp': String(time), 'webhook-signature': 'v1,' + mac };
  const headers = { 'content-type': 'application/json', ...signed };
  const answer = await fetch(chronos + '/v1/fires/' + fire + '/receipts', { method: 'POST', headers, body });
  if (!answer.ok) setTimeout(report, 500, user, fire, message);
}
createServer(async (request, response) => {
  const body = (await request.toArray()).join('');
  response.setHeader('content-type', 'application/json');
  if (request.url === '/chat') {
    const { fire_id, message } = JSON.parse(body);
    response.writeHead(202);
    setTimeout(report, 500, request.headers['x-matrix-user'], fire_id, message);
  }
  response.end('{"ok":true,"data":{}}');
}).listen(Number(PORT), '127.0.0.1');
`;

test('the reply that a daemon of the user reports later is shown in the same terminal', async (t) => {
  const home = temporaryHome(t);
  const up = await startUp(t, home);
  const program = join(home, 'work', 'agent.mjs');
  writeFileSync(program, REPORTING);
  const words = ['machine', 'put', '--provider', 'process', '--dir', up.work, '--', process.execPath, program];
  await run(up, ...words);
  assert.match(await run(up, ...words), /Nothing changed: .*reveille machine suspend/s);
  await assertShown(up, 'own', /the agent started in \d+ ms\n +the daemon at \S+ accepted\s+it;\s+a\s+turn\s+report/);
  // The welcome alarm may wake it, too.
  const replies = () => up.said().match(/reply .*own\n?.*Heard: look at the build/g) ?? [];
  await eventually('the reply is shown', () => replies().length > 0, LIMIT_MS);
  assert.equal(replies().length, 1);
});

test('a Neo that an earlier "up" left running is not shown as asleep', async (t) => {
  const home = temporaryHome(t);
  // So that Neo's environment is the same at each start.
  const same = {
    NEO_EXECUTOR_URL: 'http://127.0.0.1:9',
    NEO_EXECUTOR_TOKEN: 'never-asked-for-in-this-test',
    CHRONOS_PORT: String(await reservePort()),
  };
  const first = await startUp(t, home, same);
  assert.match(first.said(), /neo +asleep/);
  await eventually(
    'the welcome alarm has fired',
    () => /fired {2}welcome: .*; the agent started in/.test(first.said()),
    LIMIT_MS,
  );
  await first.kill('SIGKILL');
  const second = await startUp(t, home, same);
  assert.match(second.said(), /neo +(awake|starting)/);
  await assertShown(second, 'again', /the agent was awake\n +│ /);
});

test('with an agent other than Neo, "up --once" succeeds, and its line has the answer', async (t) => {
  const home = temporaryHome(t);
  const up = await startUp(t, home);
  await run(up, 'machine', 'put', '--provider', 'claude', '--dir', up.work);
  await up.kill('SIGTERM');
  const { PATH, HOME, REVEILLE_HOME, ...env } = environmentOf(home);
  const { status, stdout, stderr } = await reveille(REVEILLE_HOME, ['up', '--once', '--json'], {
    env: { ...env, PATH, HOME },
  });
  assert.equal(status, 0, stderr);
  const fires = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.ok(fires.length > 0);
  for (const { reply } of fires) assert.match(reply, /^heard \d+ bytes$/);
  assert.ok(existsSync(join(REVEILLE_HOME, 'chronos', 'chronos.db')));
  assert.ok(
    readFileSync(join(home, '.claude', 'calls.jsonl'), 'utf8').includes('"claude"'),
    'its preset names that state',
  );
  const { kind } = await probeBubblewrap(PATH);
  assert.equal(
    existsSync(join(home, 'calls.jsonl')),
    kind !== 'bubblewrap',
    'in the sandbox it writes no more of the home',
  );
});

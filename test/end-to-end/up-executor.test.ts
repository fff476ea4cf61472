import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PROGRAM } from '../support/cluster/processes.ts';
import { type Outcome, reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { startStandInNtfy } from '../support/stand-ins/ntfy.ts';

const PORTS = { CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' };

const TRANSFER = {
  verb: 'transfer',
  plan: {
    id: 'pay',
    kind: 'call',
    tool: 'ledger/transfer',
    args: { from: 'alice', to: 'bob', amount: '12.50', currency: 'EUR' },
  },
};

async function startUp(t: TestContext, home: string, more: Record<string, string> = {}) {
  const env = { PATH: process.env.PATH, HOME: home, REVEILLE_HOME: home, ...PORTS, ...more };
  const up = spawn(process.execPath, [PROGRAM, 'up'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(up, 'exit');
  let output = '';
  up.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  t.after(() => up.kill('SIGKILL'));
  await eventuallyBy(up, 'up is there', () => existsSync(join(home, 'run.json')));
  const record = JSON.parse(readFileSync(join(home, 'run.json'), 'utf8')) as Record<string, string>;
  return {
    record,
    said: () => output,
    async end(): Promise<unknown> {
      up.kill('SIGTERM');
      return (await exited)[0];
    },
  };
}

function temporaryHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'reveille-up-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  return home;
}

const dataOf = ({ status, stdout, stderr }: Outcome) => {
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
};

test('"up" has an executor: a transfer that is parked and approved wakes the agent with the outcome', async (t) => {
  const home = temporaryHome(t);
  const up = await startUp(t, home);
  const json = (args: string[], input = '') => reveille(home, [...args, '--json'], { env: PORTS, input });
  const ntfy = await startStandInNtfy(t);
  const phone = ['--server', ntfy.url, '--topic', 'ada', '--allow-private', '--about', 'all'];
  dataOf(await json(['notify', 'add', 'ntfy', ...phone]));
  const submit = ['intent', 'submit', '--json-file', '-', '--conversation', 'talk'];
  const { intent_id: id } = dataOf(await json(submit, JSON.stringify(TRANSFER)));
  const gate = await eventually('it asks', async () => dataOf(await json(['intent', 'show', id])).gates[0]);
  const asks = new RegExp(
    `asks {3}Approve\\? ledger/transfer\n[^]*Answer with: REVEILLE_HOME=.* reveille intent approve ${id} pay`,
  );
  await eventually('the terminal shows that it asks, and how to answer', () => asks.test(up.said()));
  const shown = (title: string) => ntfy.shown().find((message) => message.title === title);
  const asked = await eventually('the phone shows it', () => shown('Approve? ledger/transfer'));
  assert.match(asked.message, /12\.50/);
  const { EXECUTOR_TOKEN } = JSON.parse(readFileSync(join(home, 'executor-secrets.json'), 'utf8'));
  assert.equal(statSync(join(home, 'executor-secrets.json')).mode & 0o777, 0o600);
  const { label } = JSON.parse(readFileSync(join(home, 'identity.json'), 'utf8'));
  const parked = await fetch(`${up.record.executor_url}/intents/${id}/park`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${EXECUTOR_TOKEN}`,
      'x-matrix-user': label,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ conversation_id: 'talk' }),
  });
  assert.equal(parked.status, 200);
  dataOf(await json(['intent', 'approve', id, '--displayed-sha256', gate.displayed_sha256]));
  const alarm = await eventually('the agent is woken', async () => {
    const { stdout } = await json(['alarm', 'list', '--all']);
    const alarms = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return alarms.find(({ idempotency_key, status }) => idempotency_key === `intent-${id}` && status === 'fired');
  });
  assert.equal(alarm.conversation_id, 'talk');
  assert.match(alarm.wake_message, /It was completed;/);
  assert.match(JSON.stringify(alarm.payload), /transfer_id/);
  const checks = dataOf(await json(['doctor'])).checks as { name: string; status: string }[];
  for (const name of ['executor', 'executor token', 'executor files'])
    assert.equal(checks.find((check) => check.name === name)?.status, 'ok', name);
  assert.match(up.said(), /executor {2}http:\/\/127\.0\.0\.1:\d+ +asks you before irreversible actions/);
  await eventually('the turn is shown', () => up.said().includes('task ended'));
  await eventually('the phone shows the fire', () => shown('Rang: task ended'));
  assert.equal(await up.end(), 0);
});

test('a home that is older than the executor gets its token, and keeps its secrets', async (t) => {
  const home = temporaryHome(t);
  const first = await startUp(t, home);
  assert.equal(await first.end(), 0);
  const secrets = readFileSync(join(home, 'secrets.json'), 'utf8');
  rmSync(join(home, 'executor-secrets.json'));
  const second = await startUp(t, home);
  assert.equal(readFileSync(join(home, 'secrets.json'), 'utf8'), secrets);
  const { status, stdout } = await reveille(home, ['intent', 'list'], { env: PORTS });
  assert.deepEqual([status, stdout], [0, 'No intents.\n']);
  assert.equal(await second.end(), 0);
});

test('executor servers that cannot start do not stop "up"; a port that is in use does', async (t) => {
  const home = temporaryHome(t);
  const manifest = join(home, 'executor.json');
  const servers = [{ alias: 'gone', command: '/nowhere/to-be-found', required: true, tools: [{ name: 'x' }] }];
  writeFileSync(manifest, JSON.stringify({ servers }));
  const up = await startUp(t, home, { EXECUTOR_MANIFEST: manifest });
  const port = new URL(up.record.executor_url!).port;
  const other = temporaryHome(t);
  const second = await reveille(other, ['up', '--once'], { env: { ...PORTS, EXECUTOR_PORT: port } });
  assert.equal(second.status, 1);
  assert.match(second.stderr, new RegExp(`executor cannot listen on 127\\.0\\.0\\.1:${port}: another program listens`));
  assert.equal(await up.end(), 0);
});

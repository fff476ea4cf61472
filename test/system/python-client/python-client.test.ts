/** The Python client against a running `reveille up`: alarms as an agent, a turn of the person's agent, an intent. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { PROGRAM, START_LIMIT_MS } from '../../support/cluster/processes.ts';
import { reveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { listening, temporaryFolder } from '../../support/temporary.ts';
import { needs, pythonForClient } from '../../support/tools.ts';

const CLIENT = join(import.meta.dirname, '..', '..', '..', 'clients', 'python');
test('its version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(join(CLIENT, '..', '..', 'package.json'), 'utf8')) as { version: string };
  assert.match(
    readFileSync(join(CLIENT, 'pyproject.toml'), 'utf8'),
    new RegExp(`^version = "${RegExp.escape(version)}"$`, 'm'),
  );
});

test('alarms, a turn and an intent from Python', {
  skip: needs(['python3', 'python3-cryptography']),
}, async (t) => {
  const home = temporaryFolder(t);
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: home, REVEILLE_HOME: home },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', ROUTER_PUBLIC_PORT: '0' },
    ...{ REVEILLE_APPROVER_DIR: join(home, 'approver'), REVEILLE_APPROVER_STORE: 'file' },
  };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = once(up, 'exit');
  t.after(async () => {
    up.kill('SIGTERM');
    await exited;
  });
  await eventually('up accepts requests', () => existsSync(join(home, 'run.json')), START_LIMIT_MS);
  const read = (name: string) => JSON.parse(readFileSync(join(home, name), 'utf8')) as Record<string, string>;
  const runJson = async (...args: string[]) =>
    JSON.parse((await reveille(home, [...args, '--json'], { env })).stdout) as Record<string, string>;
  const run = read('run.json');
  const whoami = await runJson('agent', 'whoami');
  const submitter = await runJson('submitter', 'add', 'a program in Python');
  const keyFile = whoami.key_file!;
  const given = {
    ...{ label: whoami.label, key_file: keyFile, seed: readFileSync(keyFile, 'utf8').trim() },
    ...{ chronos_url: run.chronos_url, chronos_token: read('secrets.json').CHRONOS_TOKEN },
    ...{ agent_url: run.public_url, agent_token: read('person.json').token },
    ...{ executor_url: run.executor_url, submitter_token: submitter.token },
  };
  const { stdout } = await promisify(execFile)(pythonForClient()!, ['-B', join(import.meta.dirname, 'walk.py')], {
    env: { PATH: env.PATH, PYTHONPATH: CLIENT, GIVEN: JSON.stringify(given) },
    timeout: START_LIMIT_MS,
  });
  const steps = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { step: string });
  assert.deepEqual(steps, [
    { step: 'identity', did: whoami.did, hidden: true },
    { step: 'created', deduped: [false, true], same: true },
    { step: 'read', payload: true, digits: '0.10' },
    { step: 'changed', label: 'morning', urgent: true },
    { step: 'unlabelled', label: '' },
    { step: 'listed', count: 1 },
    { step: 'cancelled', status: 'cancelled' },
    { step: 'leads out', accepted: [] },
    { step: 'no such alarm', code: 'not_found', retryable: false },
    { step: 'wrong token', code: 'unauthorized', retryable: false },
    { step: 'nobody there', code: 'unavailable', retryable: true },
    { step: 'turn', status: 'done', echoed: true },
    { step: 'event', conversation: true, resumable: true },
    { step: 'conversations', listed: true },
    { step: 'submitted', intent_id: true },
    { step: 'cancelled intent', status: 'cancelled' },
  ]);
});

test('a lost answer to a change says that its outcome is unknown', { skip: needs(['python3']) }, async (t) => {
  const proxy = await listening(
    t,
    createServer((_, response) => void response.writeHead(502).end('<h1>Bad Gateway</h1>')),
  );
  const page = await listening(
    t,
    createServer((_, response) => void response.end('<h1>Welcome</h1>')),
  );
  const cut = await listening(
    t,
    createServer((request) => void request.socket.destroy()),
  );
  const script = `
import sys
sys.path.insert(0, sys.argv[1])
from reveille._transport import Caller, ReveilleError
class Open(Caller):
    def _proof(self): return {}
for url in sys.argv[2:]:
    for method, body in ("GET", None), ("POST", {}), ("POST", {"idempotency_key": "k"}):
        try: Open(url, "token")._call(method, "/v1/alarms", **({} if body is None else {"body": body}))
        except ReveilleError as error:
            print(method, error.code, "unknown whether" in error.message, "same idempotency_key" in error.message, flush=True)
`;
  const { stdout } = await promisify(execFile)('python3', [
    '-c',
    script,
    CLIENT,
    proxy,
    page,
    cut,
    'http://127.0.0.1:9',
  ]);
  assert.deepEqual(stdout.trim().split('\n'), [
    ...[proxy, page, cut].flatMap(() => [
      ...['GET unavailable False False', 'POST unavailable True False', 'POST unavailable True True'],
    ]),
    // Nothing listens there.
    ...['GET unavailable False False', 'POST unavailable False False', 'POST unavailable False False'],
  ]);
});

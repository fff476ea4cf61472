/**
 * A night in which the model's endpoint is unavailable around a wake: the turn runs once when the endpoint is back, and
 * the log of the morning says so. `reveille up` is a separate process, ended and started again in between.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { modelEndpoint, type Script, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { PROGRAM } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary.ts';

const WORDS = 'Look at the build';
const REPLY = 'The build is green again.';

function startUp(t: TestContext, env: Record<string, string>): { child: ChildProcess; text: () => string } {
  const child = spawn(process.execPath, [PROGRAM, 'up'], { env: { PATH: process.env.PATH, ...env } });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    // Not killed: its machines would keep running.
    child.kill('SIGTERM');
    await once(child, 'close');
  });
  return { child, text: () => text };
}

test('a wake during an outage of the endpoint has its turn once, after the outage, and the log shows it', async (t) => {
  const home = temporaryFolder(t);
  let isAway = true;
  let answered = 0;
  const mood: Script = (response, request) => {
    if (isAway) return void response.socket?.destroy();
    if (JSON.stringify(request.body.messages).includes(WORDS)) answered++;
    return saying(REPLY)(response, request);
  };
  const model = await modelEndpoint(t, mood);
  const env = {
    REVEILLE_HOME: home,
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', ROUTER_PUBLIC_PORT: '0' },
    ...{ NEO_MODEL_BASE_URL: model.baseUrl, NEO_MODEL: 'scripted', NEO_MANIFEST: 'none', NEO_CHEAP_MODEL: 'none' },
    ...{ NEO_RETRY_SECONDS: '4', USER: 'ada' },
  };
  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await reveille(home, args, { env });
    return { status, stdout, stderr };
  };
  const first = startUp(t, env);
  await eventuallyBy(first.child, 'the welcome alarm is set', () => /welcome alarm/.test(first.text()), {
    output: first.text,
  });
  const set = await run('alarm', 'set', WORDS, '--in', '1s', '--label', 'build', '--json');
  assert.equal(set.status, 0, set.stderr);
  const { id } = JSON.parse(set.stdout);
  await eventually('the terminal shows the retry', () => /build: turn failed, next attempt/.test(first.text()));
  const shown = await eventually('the ledger shows it', async () => {
    const { stdout } = await run('alarm', 'show', id);
    return /failed, next attempt \d/.test(stdout) && stdout;
  });
  assert.match(shown, /the model endpoint cannot be\s+reached/);
  const refused = await run('alarm', 'redrive', id);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /its last turn is retried automatically/);

  first.child.kill('SIGTERM');
  await once(first.child, 'close');
  isAway = false;
  const second = startUp(t, env);
  await eventually('the terminal has the reply of the turn', () => second.text().includes(REPLY));
  await eventually('the ledger has it', async () => (await run('alarm', 'show', id)).stdout.includes(REPLY));

  const { stdout } = await run('log', '--json');
  const entries = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ label }) => label === 'build');
  assert.deepEqual(
    entries.map(({ kind }) => kind),
    ['rang', 'turn_waits', 'reply'],
  );
  assert.equal(entries[2].text, REPLY);
  const story = (await run('log')).stdout;
  const expectedLines = [
    'fired  build: ',
    'waits  build: turn failed, next attempt ',
    'reply  build (18 tokens)\n          │ The build',
  ];
  const places = expectedLines.map((part) => story.indexOf(part));
  assert.ok(
    places.every((place, at) => place > (places[at - 1] ?? -1)),
    story,
  );

  assert.equal(answered, 1, 'one turn, one answer');
  const asked = model.requests.findLast(({ body }) => JSON.stringify(body.messages).includes(WORDS));
  const args = asked!.body.messages.at(-1)!.content;
  assert.match(args, /An alarm that a person set for you has fired; the message is what they wrote then/);
  assert.match(args, /The person's message/);
  const again = await run('alarm', 'redrive', id);
  assert.match(again.stderr, /its last turn has succeeded/);
});

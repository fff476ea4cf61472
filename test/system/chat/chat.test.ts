/**
 * Chat with the agent: `reveille chat` in a real pseudo-terminal, over the public listener of a running `reveille up`.
 * The model follows a script, and the money needs an approval.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  beginStream,
  calling,
  modelEndpoint,
  type Script,
  saying,
  sendPiece,
} from '../../../src/kit/model/testing/model-endpoint.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { reveille, startReveille } from '../../support/command-line.ts';
import { eventually, eventuallyBy } from '../../support/eventually.ts';
import { watchCommand } from '../../support/pseudo-terminal.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { lacks, needs } from '../../support/tools.ts';
import { balancesOf } from '../rail/executor-process.ts';

const SIZE = { columns: 100, rows: 50 };
const PAY = 'Transfer 25.00 EUR from alice to bob.';
/** A question accepts answers after this many milliseconds on the screen. */
const SEEN_MS = 900;
const ASKS = /Approve\? yes, no, d for details:$/;
/** The prompt, with nothing typed. */
const AT_PROMPT = /\n>$/;

const compiler: Script = (response, request) => {
  const { messages } = request.body;
  if (messages.at(-1)!.role !== 'tool') return calling({ name: 'ledger__accounts', args: {} })(response, request);
  const args = { from: 'alice', to: 'bob', amount: '25.00', currency: 'EUR' };
  const plan = { id: 'pay', kind: 'call', tool: 'ledger/transfer', args };
  return calling({ name: 'submit_intent', args: { verb: 'pay', plan } })(response, request);
};

const agent: Script = (response, request) => {
  const { messages } = request.body;
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const prompt = messages[asked]!.content;
  const results = messages.slice(asked).filter(({ role }) => role === 'tool');
  if (prompt.includes(PAY)) {
    if (results.length === 0) return calling({ name: 'core_execute', args: { intent: PAY } })(response, request);
    const isSent = /completed/.test(results.at(-1)!.content);
    return saying('The money ', isSent ? 'is sent.' : 'stays here.')(response, request);
  }
  if (prompt.includes('count for ever')) {
    beginStream(response);
    sendPiece(response, 'one two three');
    return;
  }
  if (prompt.includes('what did I say')) {
    const all = messages.map(({ content }) => content).join('\n');
    return saying(all.includes('good morning') ? 'You said good morning.' : 'Nothing.')(response, request);
  }
  return saying('Good ', 'morning ', 'to you.')(response, request);
};

async function startUp(t: TestContext, more: Record<string, string>) {
  const home = temporaryFolder(t);
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: home, REVEILLE_HOME: home },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', ROUTER_PUBLIC_PORT: '0' },
    ...{ REVEILLE_APPROVER_DIR: join(home, 'approver'), REVEILLE_APPROVER_STORE: 'file' },
    ...more,
  };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = once(up, 'exit');
  t.after(async () => {
    up.kill('SIGTERM');
    await exited;
  });
  await eventuallyBy(up, 'up accepts requests', () => existsSync(join(home, 'run.json')));
  const run = (cliArgs: string[], options: { env?: Record<string, string>; input?: string } = {}) =>
    reveille(home, cliArgs, { input: options.input ?? '', env: { ...env, ...options.env } });
  const done = async (...cliArgs: string[]) => {
    const { status, stdout, stderr } = await run(cliArgs);
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const terminal = (cliArgs: string[], others: Record<string, string> = {}) => {
    const watched = watchCommand(SIZE, [process.execPath, PROGRAM, 'chat', ...cliArgs], { ...env, ...others });
    let isOver = false;
    t.after(() => isOver || watched.end());
    const end = async () => {
      isOver = true;
      await watched.end();
    };
    return { ...watched, end, text: () => watched.all().join('\n') };
  };
  return { home, env, run, done, terminal };
}

test('a person talks, approves, stops, leaves and continues, here and from another home', {
  skip: needs('script'),
}, async (t) => {
  const parts: Record<string, Script> = { compiler, agent };
  const model = await modelEndpoint(t, (response, request) => parts[request.body.model]!(response, request));
  const { home, env, run, done, terminal } = await startUp(t, {
    ...{ NEO_MODEL: 'agent', NEO_MODEL_BASE_URL: model.baseUrl, NEO_CHEAP_MODEL: 'none' },
    ...{ EXECUTOR_MODEL: 'compiler', EXECUTOR_MODEL_BASE_URL: model.baseUrl },
  });

  // Events appear as they happen, in a terminal that was opened before.
  const following = startReveille(t, home, ['log', '--follow', '--json'], { env });
  const chat = terminal([]);
  await chat.until(/(?:^|\n)>$/);
  await chat.type('good morning\r', /Good morning to you\.\n>$/);

  await chat.type(`${PAY}\r`, ASKS);
  const asked = chat.text();
  assert.match(asked, /· core_execute/);
  const screen = chat.rows().join('\n');
  assert.match(screen, /waits for your approval of this step:[\s\S]*Amount:[\s\S]*25\.00 EUR[\s\S]*bob/);
  assert.match(screen, /alice EUR balance: 5000\.00 -> 4975\.00\n.*bob EUR balance: 1000\.00 -> 1025\.00\n/);
  assert.match(
    screen,
    /balance[\s\S]*Arguments, exactly as they will be sent:[\s\S]*"amount": "25\.00"[\s\S]*Approve\?/,
  );
  assert.equal(balancesOf(home).alice, '5000.00');
  await chat.type('y\r', /typed before the question could be read\. It is not an answer\.\nApprove\?.*:$/);
  assert.equal(balancesOf(home).alice, '5000.00');
  await delay(SEEN_MS);
  await chat.type('y\r', /The money is sent\.\n>$/);
  assert.match(chat.text(), /Approved pay, signed by [0-9a-f]{16}…[\s\S]*✓ core_execute/);
  assert.deepEqual([balancesOf(home).alice, balancesOf(home).bob], ['4975.00', '1025.00']);

  assert.doesNotMatch(chat.text(), /elsewhere/, 'an answer given here is not shown as one from elsewhere');

  // The whole call can be read before a no.
  await chat.type(`${PAY}\r`, ASKS);
  await chat.type('d\r', /-- Enter for more, q to end --$/);
  await chat.type('\r', ASKS);
  assert.match(chat.text(), /This exact call is made:[\s\S]*"idempotency_key"/);
  await delay(SEEN_MS);
  await chat.type('n\r', /The money stays here\.\n>$/);
  assert.match(chat.text(), /Denied pay, signed by [0-9a-f]{16}…/);
  assert.equal(balancesOf(home).alice, '4975.00');

  // One question in two places: the first answer counts, and the other place shows who gave it.
  const latest = async () => JSON.parse((await done('intent', 'list', '--json')).split('\n')[0]!);
  const { conversation_id } = await latest();
  const other = terminal(['--conversation', conversation_id]);
  await other.until(/The money stays here\.\n>$/);
  await chat.type(`${PAY}\r`, ASKS);
  await other.until(ASKS);
  await delay(SEEN_MS);
  await chat.type('y\r', /The money is sent\.\n>$/);
  await other.until(/The money is sent\.\n>$/);
  assert.match(
    other.text(),
    /elsewhere> Transfer 25[\s\S]*question about pay was approved elsewhere by \S+@\S+; the first/,
  );
  assert.equal(balancesOf(home).alice, '4950.00', 'once');
  await chat.type(`${PAY}\r`, ASKS);
  await other.until(ASKS);
  const { intent_id } = await latest();
  await done('intent', 'deny', intent_id);
  await chat.until(/was denied elsewhere by \S+@\S+; the first answer counts[\s\S]*The money stays here\.\n>$/);
  const late = await run(['intent', 'approve', intent_id]);
  assert.match(late.stderr, /already denied by \S+@\S+ \([0-9a-f]{16}…\) at /);
  assert.match(await done('intent', 'show', intent_id), /\n {4}denied by \S+@\S+ \([0-9a-f]{16}…\) at /);
  await other.until(/The money stays here\.\n>$/);
  await other.type('good morning\r', /Good morning to you\.\n>$/);
  await chat.until(/elsewhere> good morning\nGood morning to you\.\n>$/);
  await other.end();

  // Its turn comes at its own time; from here on it is the latest message.
  const events = () =>
    following.outcome.stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  const isReported = (stdout: string) =>
    /"kind":"reply"/.test(stdout) && (stdout.match(/"kind":"task".*"status":"denied"/g) ?? []).length === 2;
  await following.until(({ stdout }) => isReported(stdout));
  const { status: ended } = await following.end('SIGINT');
  assert.equal(ended, 0);
  const kinds = events().map(({ kind, status }) => [kind, status].filter(Boolean).join(' '));
  assert.deepEqual(new Set(kinds.filter((kind) => /^(?:rang|reply)$/.test(kind))).size, 2);
  assert.equal(kinds.filter((kind) => kind === 'rang').length, 1, 'a fired alarm is shown once');
  assert.ok(kinds.indexOf('rang') < kinds.indexOf('reply'), kinds.join());
  assert.equal(kinds.filter((kind) => kind === 'task completed').length, 2, kinds.join());
  const answers = ['approved', 'denied', 'approved', 'denied'].map((status) => `approval ${status}`);
  assert.deepEqual(
    kinds.filter((kind) => kind.startsWith('approval')),
    answers,
  );
  assert.match(await done('log'), / approved {2}Transfer 25\.00 EUR from alice to bob\.: the step pay, by\s+\S+@\S+\n/);
  const fired = events().find(({ kind }) => kind === 'rang');
  assert.match(await done('alarm', 'show', fired.alarm_id), /Good morning to you\./, 'the reply is held');
  // Only events after a given time; and only from another agent, as a wake that no client receives.
  const after = new Date(Math.max(...events().map(({ at }) => Date.parse(at))) + 1).toISOString();
  assert.match(await done('log', '--since', after), /^Nothing has happened since/);
  const otherUser = { MATRIX_USER_ID: 'somebody-else' };
  await run(['alarm', 'set', 'a ring that nobody takes', 'in 1s'], { env: otherUser });
  await eventually("that agent's event is shown", async () =>
    /"kind":"wake_failed"/.test(await done('log', '--agent', 'somebody-else', '--json')),
  );
  assert.doesNotMatch(await done('log', '--agent', 'somebody-else', '--json'), new RegExp(fired.alarm_id));
  assert.doesNotMatch(await done('log', '--json'), /nobody takes/);
  await chat.type('count for ever\r', /one two three$/);
  await chat.type('\u0003', AT_PROMPT);
  assert.match(chat.text(), /stopping the turn; Ctrl-C again leaves[\s\S]*the turn failed: cancelled on request/);
  const piped = await run(['chat', '--json', '--last'], { input: 'what did I say' });
  assert.equal(piped.status, 0, piped.stderr);
  const { reply, status } = JSON.parse(piped.stdout);
  assert.deepEqual([reply, status], ['You said good morning.', 'done']);
  // A message from elsewhere in this conversation appears here too.
  await chat.until(/elsewhere> what did I say\nYou said good morning\.\n>$/);
  await chat.type('\u0004', /continue with: reveille chat --conversation \S+$/).catch(() => {});
  assert.match(chat.text(), /continue with: reveille chat --conversation/);
  await chat.end();
  const history = join(home, 'person', 'chat-history.json');
  assert.deepEqual(JSON.parse(readFileSync(history, 'utf8')), ['count for ever', PAY, 'good morning']);
  assert.equal(statSync(history).mode & 0o777, 0o600);

  const { user_id } = JSON.parse(readFileSync(join(home, 'person.json'), 'utf8'));
  // Its machine sleeps in between.
  await done('machine', 'suspend', user_id);
  await eventually('it sleeps', async () => /asleep/.test(await done('machine', 'show', user_id, '--json')));
  await done('machine', 'restore', user_id);
  const { public_url } = JSON.parse(readFileSync(join(home, 'run.json'), 'utf8'));
  const { token } = JSON.parse(await done('user', 'token', user_id, '--name', 'laptop', '--json'));
  const elsewhere = { REVEILLE_HOME: join(temporaryFolder(t), 'second'), REVEILLE_TOKEN: token };
  const second = terminal(['--last', '--router', public_url], elsewhere);
  await second.until(/(?:^|\n)>$/);
  assert.match(second.text(), /You said good morning\./, 'it shows where it continues');
  await second.type('what did I say\r', /You said good morning\.\n>$/);
  await done('machine', 'suspend', user_id);
  await second.until(/trying again\n>$/);
  await second.type('are you there\r', /\n> are you there$/);
  assert.match(second.text(), /not sent: .*suspended/, 'it gives the reason, and the line is kept');
  await done('machine', 'restore', user_id);
  await second.type('\r', /Good morning to you\.\n(?:.*there again\n)?>$/);
  await second.end();

  const wrong = await run(['chat', 'hello'], { env: { REVEILLE_TOKEN: `${token.slice(0, -4)}AAAA` } });
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /does not accept this credential/);
});

test('without a model, and while the machine does not start, the reason is shown, and typed text is kept', async (t) => {
  const manifest = join(temporaryFolder(t), 'agent.json');
  const whole = JSON.stringify({ servers: [] });
  writeFileSync(manifest, whole);
  const { home, run, done, terminal } = await startUp(t, { NEO_MANIFEST: manifest });
  const { status, stdout, stderr } = await run(['chat', 'hello']);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /No language model is configured/);
  assert.match(stdout, /I am the offline model/);
  const empty = await run(['chat']);
  assert.equal(empty.status, 2);
  assert.match(empty.stderr, /the question is missing/);
  if (lacks(t, 'script')) return;

  const { user_id } = JSON.parse(readFileSync(join(home, 'person.json'), 'utf8'));
  await done('machine', 'suspend', user_id);
  writeFileSync(manifest, '{"servers": 7}');
  await done('machine', 'restore', user_id);
  const chat = terminal([]);
  await chat.until(/\n>$/);
  await chat.type('is anybody there\r', /\n> is anybody there$/);
  const text = chat.text();
  assert.match(text, /servers/, 'why');
  assert.match(text, /reveille doctor/, 'what to do');
  assert.match(text, /not sent: /);
  writeFileSync(manifest, whole);
  await chat.until(/No language model is configured[\s\S]*your agent is reachable again\n> is anybody there$/);
  await chat.type('\r', /I am the offline model[\s\S]*\n>$/);
  await chat.end();
});

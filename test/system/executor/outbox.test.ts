import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { ExecutorConfig } from '../../../src/executor/config.ts';
import type { OutboxMessage } from '../../../src/executor/outbox/outbox.ts';
import { createExecutorOutbox, type ExecutorOutboxOptions } from '../../../src/executor/outbox/outbox.ts';
import type { IntentView } from '../../../src/executor/rail.ts';
import { signingKey } from '../../../src/executor/receipt/chain.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { verifyWebhook } from '../../../src/kit/identity/webhook-signature.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { IntentReceipt, ReceiptEnvelope } from '../../../src/wire/intent-receipt.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { chronosd } from './chronosd.ts';
import { memoryOutbox } from './memory-outbox.ts';

const USER = 'ada';
const INTENT = '0197f5a0-0000-7000-8000-00000000000a';
const SECRET = 'a-secret-for-notices';
const ASKED_AT = '2026-06-15T03:00:00.000Z';

const gate = {
  node_id: 'pay',
  question: 'Transfer 10 EUR?',
  call: { tool: 'ledger/transfer', args: { amount: '10.00' }, call_sha256: 'a'.repeat(64) },
  displayed_sha256: 'b'.repeat(64),
  expires_at: '2026-06-16T07:00:00.000Z',
};

const view: IntentView = {
  status: 'completed',
  result: { transfer_id: 't-1' },
  intent_id: INTENT,
  created_at: ASKED_AT,
  conversation_id: 'c-1',
  origin: 'chronos',
  prose: 'Pay\nthe rent',
  nodes: [],
};

const envelope = (kind: ReceiptEnvelope['kind'], body: Record<string, unknown>) =>
  ({ kind, body, seq: 1, prev_hash: '', key_id: '', signature: '' }) as ReceiptEnvelope;
const receipt: IntentReceipt = {
  format: 'reveille-receipt/1',
  intent_id: INTENT,
  public_key: 'b'.repeat(64),
  envelopes: [
    envelope('gate.asked', { at: ASKED_AT, node_id: 'pay', expires_at: '2026-06-16T03:00:00.000Z' }),
    envelope('gate.answered', { at: '2026-06-15T07:00:00.000Z', node_id: 'pay', approved: true, by: USER }),
  ],
};

const notify: OutboxMessage = {
  ...{ id: 'notify-1', kind: 'notify', user: USER, intentId: INTENT, nodeId: 'pay' },
  conversationId: undefined,
  attempts: 0,
};
const wake: OutboxMessage = {
  ...{ id: 'wake-1', kind: 'wake', user: USER, intentId: INTENT, nodeId: undefined },
  conversationId: 'c-1',
  attempts: 0,
};

type Setup = Partial<Pick<ExecutorConfig, 'notify' | 'chronos'>> &
  Partial<Omit<ExecutorOutboxOptions, 'config' | 'messages'>>;

function startRunner(t: TestContext, { notify: notifySettings, chronos, ...more }: Setup) {
  const outbox = memoryOutbox();
  const runner = createExecutorOutbox({
    messages: outbox,
    config: { notify: notifySettings ?? { webhook: undefined, command: undefined }, chronos },
    rail: { view: () => view, gates: () => [gate], receipt: () => receipt },
    key: signingKey(generateKey()),
    variables: { PATH: process.env.PATH, EXECUTOR_TOKEN: 'not-to-be-seen' },
    clock: systemClock,
    log: silentLogger,
    random: () => 0,
    ...more,
  });
  t.after(() => runner.close());
  runner.start();
  return { outbox, runner, put: (message: OutboxMessage) => outbox.put(message, systemClock.now()) };
}

type Post = { headers: Record<string, string>; body: string };

async function receiver(t: TestContext, answer: (response: ServerResponse, nth: number) => void) {
  const posts: Post[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    posts.push({ headers: request.headers as Record<string, string>, body: await text(request) });
    answer(response, posts.length);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { posts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

const genuine = ({ headers, body }: Post) =>
  verifyWebhook({ headers, body, secrets: [SECRET], nowMs: systemClock.now() }).ok;

test('a question is sent to a webhook, signed, and again under the same id until it is accepted', async (t) => {
  const { posts, url } = await receiver(t, (response, nth) => void response.writeHead(nth === 1 ? 503 : 204).end());
  const { outbox, put } = startRunner(t, { notify: { webhook: { url, secret: SECRET }, command: undefined } });
  put(notify);
  await eventually('it is accepted', () => outbox.ended.length === 1);
  assert.deepEqual(outbox.ended, [{ id: 'notify-1', how: 'done' }]);
  assert.deepEqual(
    posts.map((post) => [genuine(post), post.headers['webhook-id']]),
    [
      [true, 'notify-1'],
      [true, 'notify-1'],
    ],
  );
  assert.equal(posts[0]!.body, posts[1]!.body);
  const { type, timestamp, data } = JSON.parse(posts[0]!.body);
  assert.deepEqual([type, timestamp, data.expires_at], ['reveille.gate.asked', ASKED_AT, '2026-06-16T03:00:00.000Z']);
  assert.deepEqual([data.user_id, data.intent_id, data.node_id, data.call], [USER, INTENT, 'pay', gate.call]);
  assert.match(outbox.postponed[0]!.error, /the webhook answered 503/);
});

test('a redirect is not followed, because its address is not configured', async (t) => {
  const other = await receiver(t, (response) => void response.end());
  const { posts, url } = await receiver(t, (response) => void response.writeHead(307, { location: other.url }).end());
  const { outbox, put } = startRunner(t, { notify: { webhook: { url, secret: SECRET }, command: undefined } });
  put(notify);
  await eventually('it was tried', () => outbox.postponed.length === 1);
  assert.match(outbox.postponed[0]!.error, /answered 307/);
  assert.deepEqual([posts.length, other.posts.length], [1, 0]);
});

test('a question that was answered meanwhile is sent to no receiver', async (t) => {
  const { posts, url } = await receiver(t, (response) => void response.end());
  const { outbox, put } = startRunner(t, {
    notify: { webhook: { url, secret: SECRET }, command: undefined },
    rail: { view: () => view, gates: () => [], receipt: () => receipt },
  });
  put(notify);
  await eventually('it has ended', () => outbox.ended.length === 1);
  assert.equal(outbox.ended[0]!.how, 'dropped');
  assert.equal(posts.length, 0);
});

test('a command gets the question on its standard input, and none of the executor’s secrets', async (t) => {
  const folder = temporaryFolder(t);
  const script = `
    const { writeFileSync } = require('node:fs');
    let given = '';
    process.stdin.on('data', (text) => { given += text; });
    process.stdin.on('end', () => {
      writeFileSync(process.argv[1], JSON.stringify({ given, secret: process.env.EXECUTOR_TOKEN, word: process.argv[2] }));
    });`;
  const file = join(folder, 'told.json');
  const command = [process.execPath, '-e', script, file, '$(touch oops); `x`'] as const;
  const { outbox, put } = startRunner(t, { notify: { webhook: undefined, command } });
  put(notify);
  await eventually('the notification is delivered', () => outbox.ended.length === 1);
  const { given, secret, word: argument } = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(JSON.parse(given).data.question, 'Transfer 10 EUR?');
  assert.deepEqual([secret, argument], [undefined, '$(touch oops); `x`']);
});

test('a failing command is repeated and its output kept, and the webhook beside it is not notified twice', async (t) => {
  const { posts, url } = await receiver(t, (response) => void response.end());
  const folder = temporaryFolder(t);
  const flag = join(folder, 'flag');
  const script = `
    const { existsSync, writeFileSync } = require('node:fs');
    if (existsSync(process.argv[1])) process.exit(0);
    writeFileSync(process.argv[1], '');
    process.stderr.write('no\\nphone '.repeat(100000), () => process.exit(3));`;
  const command = [process.execPath, '-e', script, flag] as const;
  const { outbox, put } = startRunner(t, { notify: { webhook: { url, secret: undefined }, command } });
  put(notify);
  await eventually('the notification is delivered', () => outbox.ended.length === 1);
  assert.match(outbox.postponed[0]!.error, /it ended with status 3: no phone no phone/);
  assert.ok(outbox.postponed[0]!.error.length < 1500);
  assert.equal(posts.length, 1);
});

test('a missing command is reported, and a hanging webhook delays no other message', async (t) => {
  const { url } = await receiver(t, () => {});
  const { outbox, put, runner } = startRunner(t, { notify: { webhook: { url, secret: SECRET }, command: undefined } });
  put(notify);
  put({ ...wake, conversationId: undefined });
  await eventually('the other is delivered', () => outbox.ended.length === 1);
  await runner.close();
  assert.deepEqual(outbox.postponed, [], 'a delivery that a stop interrupts is due at once for the next process');

  const missing = startRunner(t, { notify: { webhook: undefined, command: ['/nowhere/to-be-found'] } });
  missing.put(notify);
  await eventually('it was tried', () => missing.outbox.postponed.length === 1);
  assert.match(missing.outbox.postponed[0]!.error, /cannot be started: .*ENOENT/);
});

test('a command that runs when the executor ends is killed with all processes that it started', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'pid');
  const script = `require('node:fs').writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000);`;
  const command = [process.execPath, '-e', script, file] as const;
  const { outbox, put, runner } = startRunner(t, { notify: { webhook: undefined, command } });
  put(notify);
  await eventually('it runs', () => existsSync(file) && readFileSync(file, 'utf8') !== '');
  await runner.close();
  assert.throws(() => process.kill(Number(readFileSync(file, 'utf8')), 0), { code: 'ESRCH' });
  assert.deepEqual([outbox.ended, outbox.postponed], [[], []]);
});

test('one alarm wakes an agent with the outcome, however often the message is repeated', async (t) => {
  const chronosDaemon = await chronosd(t, USER);
  const key = signingKey(generateKey());
  await chronosDaemon.enrol(key.publicKeyHex);
  const setup = { chronos: chronosDaemon.chronos, key };
  for (let process = 0; process < 3; process++) {
    // Each is a process that does not know that the ones before it reached chronosd.
    const { outbox, put } = startRunner(t, setup);
    put(wake);
    await eventually('it is done', () => outbox.ended.length === 1);
    assert.equal(outbox.ended[0]!.how, 'done');
  }
  const [alarm, ...others] = await chronosDaemon.alarms();
  assert.deepEqual(others, []);
  assert.equal(alarm!.conversation_id, 'c-1');
  assert.equal(alarm!.idempotency_key, `intent-${INTENT}`);
  const { result, ...about } = JSON.parse(alarm!.payload!.text);
  assert.deepEqual(about, { intent_id: INTENT, status: 'completed' });
  assert.match(JSON.stringify(result), /\{"transfer_id":"t-1"\}/);
  assert.match(alarm!.wake_message, /The task: "Pay\\nthe rent"/);
  assert.match(alarm!.wake_message, /approved by ada at 2026-06-15T07:00:00\.000Z/);
  assert.match(alarm!.wake_message, /do not submit it again/);
});

test('while chronosd is away the alarm is retried, and set once it is back', async (t) => {
  const chronosDaemon = await chronosd(t, USER);
  const key = signingKey(generateKey());
  await chronosDaemon.enrol(key.publicKeyHex);
  await chronosDaemon.close();
  const { outbox, put } = startRunner(t, { chronos: chronosDaemon.chronos, key });
  put(wake);
  await eventually('it was tried', () => outbox.postponed.length === 1);
  assert.match(outbox.postponed[0]!.error, /chronosd at /);
  await chronosDaemon.reopen();
  await eventually('it is done', () => outbox.ended.length === 1);
  assert.equal((await chronosDaemon.alarms()).length, 1);
});

test('a key that is not enrolled for the user is reported with the command that enrols it', async (t) => {
  const chronosDaemon = await chronosd(t, USER);
  const key = signingKey(generateKey());
  const { outbox, put } = startRunner(t, { chronos: chronosDaemon.chronos, key });
  put(wake);
  await eventually('it was tried', () => outbox.postponed.length === 1);
  const [{ error, at }] = outbox.postponed as [(typeof outbox.postponed)[0]];
  assert.match(error, new RegExp(`reveille agent enroll --label ada --public-key ${key.publicKeyHex}`));
  assert.ok(at - systemClock.now() > 60_000, 'only a person can correct it, so it is not retried every few seconds');

  const wrong = startRunner(t, { chronos: { ...chronosDaemon.chronos, token: 'another-token-altogether' } });
  wrong.put(wake);
  await eventually('it was tried', () => wrong.outbox.postponed.length === 1);
  assert.match(wrong.outbox.postponed[0]!.error, /EXECUTOR_CHRONOS_TOKEN must be the CHRONOS_TOKEN/);
});

test('a message for a deleted intent is abandoned', async (t) => {
  const notFound = () => {
    throw new ReveilleError('not_found', 'you have no intent with this id');
  };
  const { outbox, put } = startRunner(t, { rail: { view: notFound, gates: notFound, receipt: notFound } });
  put(notify);
  put(wake);
  await eventually('both are abandoned', () => outbox.ended.length === 2);
  assert.deepEqual(new Set(outbox.ended.map(({ how }) => how)), new Set(['dropped']));
});

test('an outbox that cannot be written is not retried in a busy loop', async (t) => {
  const { posts, url } = await receiver(t, (response) => void response.end());
  const { outbox, put } = startRunner(t, { notify: { webhook: { url, secret: SECRET }, command: undefined } });
  outbox.failNextRecord = true;
  put(notify);
  await eventually('the notification was delivered', () => posts.length === 1 && !outbox.failNextRecord);
  put({ ...wake, conversationId: undefined });
  await eventually('others continue', () => outbox.ended.length === 1);
  assert.equal(posts.length, 1);
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { turnReportKey, verifyWebhook } from '../kit/identity/webhook-signature.ts';
import { silentLogger } from '../kit/log/log.ts';
import type { TurnReport } from '../wire/turn-report.ts';
import {
  createTurnReportSender,
  deliveryOf,
  type TurnReportSenderOptions,
  turnReportTable,
} from './turn-report-sender.ts';

const HOUR = 3600_000;
const KEY = turnReportKey('a machine token');

type Post = { fireId: string; stages: string[]; body: Record<string, unknown>; genuine: boolean };
/** Answers a post, or lets it wait. */
type Script = (post: Post, response: ServerResponse, nth: number) => void;

const refuse = (response: ServerResponse, status: number) => void response.writeHead(status).end('{}');

/** A clock that shortens waits of a second or more to a hundredth. */
const hasty: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * 100,
  after: (delayMs, callback) => systemClock.after(delayMs >= 400 && delayMs < 1500 ? delayMs / 100 : delayMs, callback),
};

const report = (stage: TurnReport['stage'], change: Partial<TurnReport> = {}): TurnReport => ({
  stage,
  at: systemClock.now(),
  outcome: stage === 'turn_finished' ? 'ok' : null,
  error: null,
  turnId: 't',
  conversationId: 'c',
  retryAt: null,
  reply: null,
  usage: null,
  ...change,
});

/** An outbox in memory, a scripted chronosd, and a sender. */
async function workbench(t: TestContext, script: Script, options: Partial<TurnReportSenderOptions> = {}) {
  const posts: Post[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = await text(request);
    const headers = request.headers as Record<string, string>;
    const verdict = verifyWebhook({ headers, body, secrets: [KEY], nowMs: systemClock.now() });
    const parsed = JSON.parse(body);
    const post = {
      fireId: decodeURIComponent(request.url!.split('/')[3]!),
      stages: parsed.receipts.map(({ stage }: { stage: string }) => stage),
      body: parsed,
      genuine: verdict.ok && headers['webhook-id'] === decodeURIComponent(request.url!.split('/')[3]!),
    };
    posts.push(post);
    script(post, response, posts.length);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const db = new DatabaseSync(':memory:');
  db.exec(`CREATE TABLE receipts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT NOT NULL, fire_id TEXT NOT NULL, stage TEXT NOT NULL,
    at INTEGER NOT NULL, outcome TEXT, error TEXT, turn_id TEXT, conversation_id TEXT,
    retry_at INTEGER, reply TEXT, usage TEXT, UNIQUE (user_id, fire_id, stage)
  ) STRICT`);
  const table = turnReportTable(db);
  const sender = createTurnReportSender({
    outbox: { waiting: (page) => table.waiting(page), remove: async (ids) => table.remove(ids) },
    url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keyOf: () => KEY,
    clock: hasty,
    log: silentLogger,
    random: () => 0.5,
    ...options,
  });
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await sender.close();
    db.close();
  });
  return {
    ...{ posts, sender, server },
    put(fireId: string, ...reports: TurnReport[]) {
      for (const one of reports) table.put('ada', fireId, one);
      sender.wake();
    },
    left: () => table.waiting({ after: 0, limit: 1000 }).length,
  };
}

const take: Script = (_, response) => void response.end('{}');

test('the waiting reports of one fire are sent in one signed post, in their order', async (t) => {
  const bench = await workbench(t, take);
  bench.put('a@1', report('turn_started'));
  bench.put('b@1', report('turn_started'));
  bench.put('a@1', report('turn_finished', { outcome: 'failed', error: `no\0 model ${'x'.repeat(1000)}` }));
  bench.sender.start();
  await eventually('all is posted', () => bench.left() === 0);
  assert.deepEqual(
    bench.posts.map(({ fireId, stages, genuine }) => [fireId, stages, genuine]),
    [
      ['a@1', ['turn_started', 'turn_finished'], true],
      ['b@1', ['turn_started'], true],
    ],
  );
  const { user_id, receipts } = bench.posts[0]!.body as { user_id: string; receipts: Record<string, unknown>[] };
  assert.equal(user_id, 'ada');
  assert.equal(receipts[1]!.ok, false);
  assert.equal((receipts[1]!.error as string).length, 500);
  assert.match(receipts[1]!.error as string, /^no\ufffd model/);
});

test('reports survive an unavailable chronosd and arrive afterwards', async (t) => {
  const bench = await workbench(t, (_, response, nth) => {
    if (nth === 1) return void response.destroy();
    if (nth === 2) return refuse(response, 503);
    if (nth === 3) return refuse(response, 429);
    response.end('{}');
  });
  bench.put('a@1', report('turn_started'));
  bench.sender.start();
  await eventually('it was taken', () => bench.left() === 0);
  assert.equal(bench.posts.length, 4);
  assert.deepEqual(new Set(bench.posts.map(({ fireId }) => fireId)), new Set(['a@1']));
});

test('a refused fire does not delay others, and is retried', async (t) => {
  let known = false;
  const bench = await workbench(t, (post, response) => {
    if (post.fireId === 'unknown@1' && !known) return refuse(response, 404);
    response.end('{}');
  });
  bench.put('unknown@1', report('turn_started'));
  bench.put('a@1', report('turn_started'));
  bench.sender.start();
  await eventually('the other is taken', () => bench.left() === 1);
  known = true;
  await eventually('it was tried again', () => bench.left() === 0);
});

test('a report is dropped if it is refused, long unknown, too old, or of a deleted machine', async (t) => {
  const bench = await workbench(
    t,
    (post, response) => {
      if (post.fireId === 'bad@1') return refuse(response, 400);
      if (post.fireId === 'unknown@1') return refuse(response, 404);
      if (post.fireId === 'old@1') return refuse(response, 401);
      response.end('{}');
    },
    { keyOf: (userId) => (userId === 'ada' ? KEY : undefined) },
  );
  bench.put('bad@1', report('turn_started'));
  bench.put('unknown@1', report('turn_started', { at: systemClock.now() - 61_000 }));
  bench.put('old@1', report('turn_started', { at: systemClock.now() - 24 * 3600_000 }));
  bench.sender.start();
  await eventually('all are given up', () => bench.left() === 0);
  assert.equal(bench.posts.length, 3);

  const ofDeletedMachine = await workbench(t, take, { keyOf: () => undefined });
  ofDeletedMachine.put('a@1', report('turn_started'));
  ofDeletedMachine.sender.start();
  await eventually('it is given up', () => ofDeletedMachine.left() === 0);
  assert.equal(ofDeletedMachine.posts.length, 0);
});

test('the sender is busy until new reports were tried once, and for a few seconds at most', async (t) => {
  const answered: (() => void)[] = [];
  const bench = await workbench(t, (_, response) => void answered.push(() => refuse(response, 503)), {
    clock: systemClock,
  });
  assert.equal(bench.sender.isBusy(), false);
  bench.sender.start();
  await eventually('nothing waits', () => !bench.sender.isBusy());
  bench.put('a@1', report('turn_started'));
  assert.equal(bench.sender.isBusy(), true);
  await eventually('it is posted', () => answered.length === 1);
  assert.equal(bench.sender.isBusy(), true);
  answered[0]!();
  await eventually('it was tried', () => !bench.sender.isBusy());
  assert.equal(bench.left(), 1);
});

test('close retries the waiting reports once, and waits at most two seconds for chronosd', async (t) => {
  let hangs = false;
  const bench = await workbench(
    t,
    (_, response, nth) => {
      if (hangs) return;
      if (nth === 1) return refuse(response, 503);
      response.end('{}');
    },
    { clock: systemClock, random: () => 0.99 },
  );
  bench.put('a@1', report('turn_started'));
  bench.sender.start();
  await eventually('it was tried', () => bench.posts.length === 1);
  await bench.sender.close();
  assert.equal(bench.left(), 0);

  hangs = true;
  const hanging = await workbench(t, () => {}, {
    clock: systemClock,
    url: () => `http://127.0.0.1:${(bench.server.address() as AddressInfo).port}`,
  });
  hanging.put('b@1', report('turn_started'));
  hanging.sender.start();
  await eventually('it is posted', () => bench.posts.some(({ fireId }) => fireId === 'b@1'));
  await hanging.sender.close();
  assert.equal(hanging.left(), 1);
});

test('the sender waits for an address that is not known yet', async (t) => {
  const bench = await workbench(t, take);
  let known = false;
  const late = await workbench(t, take, {
    url: () => (known ? `http://127.0.0.1:${(bench.server.address() as AddressInfo).port}` : undefined),
  });
  late.put('a@1', report('turn_started'));
  late.sender.start();
  await eventually('it was tried', () => !late.sender.isBusy());
  known = true;
  await eventually('it was taken', () => late.left() === 0);
});

test('a turn report is kept while a later attempt may succeed, and for a day at most', () => {
  const resultOf = (status: number | undefined, ageMs: number) => {
    const delivery = deliveryOf(status, ageMs, 'why');
    return delivery.result === 'later' && delivery.everything ? 'all_later' : delivery.result;
  };
  for (const status of [200, 202]) assert.equal(resultOf(status, 90 * HOUR), 'done');
  for (const status of [undefined, 408, 429, 500, 502, 503]) {
    assert.equal(resultOf(status, 23 * HOUR), 'all_later');
    assert.equal(resultOf(status, 24 * HOUR), 'drop');
  }
  for (const status of [401, 403, 302]) {
    assert.equal(resultOf(status, 23 * HOUR), 'later');
    assert.equal(resultOf(status, 24 * HOUR), 'drop');
  }
  assert.equal(resultOf(404, 59_000), 'later');
  assert.equal(resultOf(404, 60_000), 'drop');
  for (const status of [400, 405, 413]) assert.equal(resultOf(status, 0), 'drop');
});

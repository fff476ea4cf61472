import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { openBook } from './book.ts';

const REVEILLE = join(import.meta.dirname, '..', '..', 'bin', 'reveille.mjs');

type Answer = { id?: number; result?: Record<string, unknown>; error?: { code: number; message: string } };
type Result = { isError?: boolean; content: { text: string }[]; structuredContent?: Record<string, unknown> };

/** A ledger in its own process, addressed line by line. */
class Peer {
  readonly child: ChildProcess;
  readonly #answers = new Map<number, PromiseWithResolvers<Answer>>();
  #id = 0;

  constructor(home: string, dataDir?: string) {
    const env = {
      PATH: process.env.PATH,
      REVEILLE_HOME: home,
      ...(dataDir !== undefined && { LEDGER_DATA_DIR: dataDir }),
    };
    this.child = spawn(process.execPath, [REVEILLE, 'ledger'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      const answer = JSON.parse(line) as Answer;
      this.#answers.get(answer.id ?? -1)?.resolve(answer);
    });
  }

  write(text: string): void {
    this.child.stdin!.write(text);
  }

  send(method: string, params: object = {}): { id: number; answer: Promise<Answer> } {
    const id = ++this.#id;
    const waiting = Promise.withResolvers<Answer>();
    this.#answers.set(id, waiting);
    this.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return { id, answer: waiting.promise };
  }

  async open(): Promise<this> {
    const clientInfo = { name: 'test', version: '1' };
    await this.send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }).answer;
    this.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return this;
  }

  async call(name: string, args: object): Promise<Result> {
    const { result } = await this.send('tools/call', { name, arguments: args }).answer;
    return result as Result;
  }
}

function start(t: TestContext, home: string, dataDir?: string): Promise<Peer> {
  const peer = new Peer(home, dataDir);
  t.after(() => peer.child.kill('SIGKILL'));
  return peer.open();
}

const order = (idempotency_key: string) => ({
  from: 'alice',
  to: 'rent',
  amount: '1.00',
  currency: 'EUR',
  idempotency_key,
});

test('the ledger serves six tools with input and output schemas, and stores its book in REVEILLE_HOME', async (t) => {
  const home = temporaryFolder(t);
  const peer = await start(t, home);
  const { result } = await peer.send('tools/list').answer;
  const tools = (result as { tools: { name: string; outputSchema?: object; annotations: Record<string, boolean> }[] })
    .tools;
  assert.deepEqual(
    tools.map(({ name, outputSchema, annotations }) => [name, outputSchema !== undefined, annotations.readOnlyHint]),
    [
      ['accounts', true, true],
      ['transfer', true, false],
      ['exchange', true, false],
      ['quote', true, true],
      ['simulate', true, true],
      ['status', true, false],
    ],
  );
  const { structuredContent } = await peer.call('accounts', { accounts: ['bob'] });
  assert.deepEqual(structuredContent, { accounts: [{ account: 'bob', balance: '1000.00', currency: 'EUR' }] });
  const book = openBook(join(home, 'ledger'), systemClock);
  t.after(() => book.close());
  assert.equal(book.accounts().length, 5);
});

test('an invalid order is answered with its error, and no money moves', async (t) => {
  const peer = await start(t, temporaryFolder(t));
  const wrong: object[] = [
    { ...order('k'), amount: '9999' },
    { ...order('k'), amount: 5 },
    { ...order('k'), amount: '1e2' },
    { ...order('k'), currency: 'eur' },
    { ...order('k'), to: 'alice' },
    { ...order('k'), to: "'; DROP TABLE entries; --" },
    { ...order('k'), memo: 'x'.repeat(201) },
    { ...order('k'), idempotency_key: '' },
    { ...order('k'), approved: true },
    {},
  ];
  for (const args of wrong) {
    for (const tool of ['transfer', 'exchange'])
      assert.equal((await peer.call(tool, args)).isError, true, `${tool} ${JSON.stringify(args)}`);
  }
  const { structuredContent } = await peer.call('accounts', { accounts: ['alice', 'rent'] });
  assert.match(JSON.stringify(structuredContent), /5000\.00.*0\.00/);
});

test('an exchange and its quote are answered as their schemas say, and one with a memo is refused', async (t) => {
  const peer = await start(t, temporaryFolder(t));
  const { idempotency_key, ...given } = { ...order('k'), to: 'alice-usd' };
  const quote = await peer.call('quote', given);
  const made = await peer.call('exchange', { ...given, idempotency_key });
  assert.deepEqual(quote.structuredContent!.received, { amount: '1.16', currency: 'USD' });
  assert.deepEqual(made.structuredContent!.received, quote.structuredContent!.received);
  const { exchange_id } = made.structuredContent!;
  assert.deepEqual((await peer.call('status', { idempotency_key })).structuredContent, { status: 'done', exchange_id });
  assert.equal((await peer.call('exchange', { ...given, idempotency_key: 'k2', memo: 'x' })).isError, true);
});

test('an answered transfer survives kill -9, and the next process takes over at once', async (t) => {
  const [home, dataDir] = [temporaryFolder(t), temporaryFolder(t)];
  let peer = await start(t, home, dataDir);
  const answered: string[] = [];
  for (let round = 0; round < 5; round++) {
    const keys = Array.from({ length: 20 }, (_, at) => `k${round}-${at}`);
    const sent = keys.map((key) => peer.send('tools/call', { name: 'transfer', arguments: order(key) }));
    for (const [at, { answer }] of sent.entries())
      if (at <= round * 4) await answer.then(() => answered.push(keys[at]!));
    peer.child.kill('SIGKILL');
    await once(peer.child, 'exit');
    peer = await start(t, home, dataDir);
    const statuses = await Promise.all(keys.map((idempotency_key) => peer.call('status', { idempotency_key })));
    const done = keys.filter((_, at) => statuses[at]?.structuredContent?.status === 'done');
    for (const key of keys) if (answered.includes(key)) assert.ok(done.includes(key), key);
    const late = await Promise.all(keys.map((key) => peer.call('transfer', order(key))));
    assert.deepEqual(
      keys.filter((_, at) => late[at]?.isError !== true),
      done,
    );
  }
  const book = openBook(dataDir, systemClock);
  t.after(() => book.close());
  const cents = book.accounts().map(({ balance }) => Math.round(Number(balance) * 100));
  assert.equal(
    cents.reduce((sum, one) => sum + one),
    600_000,
  );
});

test('two processes that race for the same keys move each amount once, and no answer contradicts another', async (t) => {
  const [home, dataDir] = [temporaryFolder(t), temporaryFolder(t)];
  const [one, other] = await Promise.all([start(t, home, dataDir), start(t, home, dataDir)]);
  const keys = Array.from({ length: 40 }, (_, at) => `k${at}`);
  const [moved, reported] = await Promise.all([
    Promise.all(keys.map((key) => one.call('transfer', order(key)))),
    Promise.all(keys.map((idempotency_key) => other.call('status', { idempotency_key }))),
  ]);
  keys.forEach((key, at) => {
    const isMoved = moved[at]?.isError !== true;
    assert.equal(reported[at]?.structuredContent?.status, isMoved ? 'done' : 'not_done', key);
  });
  const { structuredContent } = await one.call('accounts', { accounts: ['rent'] });
  const count = moved.filter(({ isError }) => isError !== true).length;
  assert.match(JSON.stringify(structuredContent), new RegExp(`"balance":"${count}\\.00"`));
});

test('the ledger ends when its client does, and reports a damaged book', async (t) => {
  const home = temporaryFolder(t);
  const peer = await start(t, home);
  peer.child.stdin!.end();
  assert.deepEqual(await once(peer.child, 'exit'), [0, null]);
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'ledger.db'), 'this is no database, and long enough to be read as one'.repeat(100));
  const child = spawn(process.execPath, [REVEILLE, 'ledger', '--data-dir', folder], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 1);
  assert.match(output, /ledger\.db is damaged/);
});

test('the ledger refuses a message above the maximum length, and goes on', async (t) => {
  const peer = await start(t, temporaryFolder(t));
  peer.write(`{"jsonrpc":"2.0","id":99,"method":"ping","params":{"x":"${'x'.repeat(17 * 1024 * 1024)}"}}\n`);
  assert.deepEqual((await peer.send('ping').answer).result, {});
});

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { atEnd } from '../../test/support/temporary.ts';
import { GuardedClient, guardedConnector } from '../kit/http/guarded-client.ts';
import { RefusedAddress } from '../kit/http/guarded-lookup.ts';
import { startBench } from '../router/testing/bench.ts';
import { call } from './call.ts';

type Address = { address: string; family: number };

/** A receiver on this computer, and a client with name resolution by the test, one answer per lookup. */
async function start(t: TestContext, answers: (Address[] | Error)[]) {
  let received = 0;
  const server = createServer((_, response) => {
    received++;
    response.setHeader('connection', 'close').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => server.close());
  let asked = 0;
  const client = new GuardedClient({ who: 'it', remedy: 'allow it' }, (_, done) => {
    const answer = answers[Math.min(asked++, answers.length - 1)]!;
    if (answer instanceof Error) done(answer, []);
    else done(null, answer);
  });
  atEnd(t, () => client.close());
  const url = new URL(`http://receiver.example:${(server.address() as AddressInfo).port}/`);
  const post = (allowPrivate: boolean) =>
    call(client.dispatcher(allowPrivate), {
      ...{ method: 'POST', url, headers: {}, body: '{}', secrets: [] },
      signal: new AbortController().signal,
    });
  return { post, received: () => received, asked: () => asked };
}

const here = { address: '127.0.0.1', family: 4 };
const there = { address: '203.0.114.1', family: 4 };

test('a name that resolves to a private address is rejected before a connection is made', async (t) => {
  const { post, received } = await start(t, [[here]]);
  const answer = await post(false);
  assert.equal(answer.result, 'unsent');
  assert.ok(answer.result === 'unsent' && answer.error instanceof RefusedAddress);
  assert.equal(received(), 0);
});

test('one private address among public ones is enough', async (t) => {
  const { post, received } = await start(t, [[there, here]]);
  assert.equal((await post(false)).result, 'unsent');
  assert.equal(received(), 0);
});

test('the connection uses the checked address, from a single lookup', async (t) => {
  // A resolver with a good first answer and a bad second one: the checked address is the used one.
  const { post, received, asked } = await start(t, [[here], [{ address: '169.254.169.254', family: 4 }]]);
  const first = await post(true);
  assert.equal(first.result, 'answered');
  assert.equal(asked(), 1);
  const second = await post(true);
  assert.ok(second.result === 'unsent' && second.error instanceof RefusedAddress);
  assert.equal(received(), 1);
});

test('a name that does not resolve has its own error', async (t) => {
  const { post } = await start(t, [new Error('getaddrinfo ENOTFOUND receiver.example')]);
  const answer = await post(false);
  assert.ok(answer.result === 'unsent' && /ENOTFOUND/.test(answer.why) && !(answer.error instanceof RefusedAddress));
  const { post: empty } = await start(t, [[]]);
  assert.equal((await empty(false)).result, 'unsent');
});

const METADATA = [
  ...['169.254.169.254', '2852039166', '0xA9FEA9FE', '0251.0376.0251.0376', '169.254.43518', '0xa9.254.0251.254'],
  ...['[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[64:ff9b::a9fe:a9fe]', '[fe80::1]', '[fd00:ec2::254]'],
];

test('a machine at a metadata or link-local address cannot be registered, whatever the notation', async (t) => {
  const router = await startBench(t);
  for (const host of METADATA) {
    const url = `http://${host}/latest`;
    const bodies = [
      { provider: 'http', spec: { url } },
      ...['a2a', 'openclaw', 'opencode', 'webhook'].map((preset) => ({ provider: 'command', spec: { preset, url } })),
    ];
    for (const body of bodies) {
      const answer = await router.admin('PUT', '/alice', body);
      assert.equal(answer.status, 400, `${JSON.stringify(body)} ${answer.text}`);
      assert.match(answer.json.error.message, /^spec\.url: .* is (a link-local|the metadata) address/);
    }
  }
});

test('a metadata address is not connected to, whether it is literal or resolved from a name', async (t) => {
  let answers: Address[] = [];
  const agent = new Agent({ connect: guardedConnector((_, done) => done(null, answers)) });
  atEnd(t, () => agent.destroy());
  const get = (host: string) =>
    call(agent, {
      ...{ method: 'GET', url: new URL(`http://${host}/`), headers: {}, secrets: [] },
      signal: AbortSignal.timeout(5000),
    });
  for (const host of METADATA) {
    const answer = await get(host);
    assert.ok(answer.result === 'unsent' && answer.error instanceof RefusedAddress, host);
  }
  for (const address of ['169.254.169.254', 'fe80::1', '::ffff:169.254.169.254', 'fd00:ec2::254']) {
    answers = [here, { address, family: address.includes(':') ? 6 : 4 }];
    const answer = await get('agent.example');
    assert.ok(answer.result === 'unsent' && answer.error instanceof RefusedAddress, address);
    assert.match(answer.why, /^agent\.example resolves to .*, which is .*; agents may not use it$/);
  }
});

test('loopback stays allowed for daemons, by number and by name', async (t) => {
  const server = createServer((_, response) => response.end('{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => server.close());
  const agent = new Agent({ connect: guardedConnector((_, done) => done(null, [here])) });
  atEnd(t, () => agent.destroy());
  const { port } = server.address() as AddressInfo;
  for (const host of ['127.0.0.1', 'daemon.example', '[::ffff:127.0.0.1]']) {
    const url = new URL(`http://${host}:${port}/`);
    const answer = await call(agent, {
      method: 'GET',
      url,
      headers: {},
      secrets: [],
      signal: AbortSignal.timeout(5000),
    });
    assert.equal(answer.result, 'answered', host);
  }
});

test('a wake is not sent to a metadata address, even if the registry contains one', async (t) => {
  const first = await startBench(t);
  await first.put('alice', { provider: 'http', spec: { url: 'http://127.0.0.1:9' } });
  await first.close();
  const registry = new DatabaseSync(join(first.dataDir, 'router.db'));
  registry.exec("UPDATE machines SET spec = replace(spec, '127.0.0.1:9', '169.254.169.254')");
  registry.close();
  const router = await startBench(t, { settings: { ROUTER_DATA_DIR: first.dataDir, ROUTER_WAKE_TIMEOUT_MS: '5000' } });
  const { status, text } = await router.wake('alice');
  assert.notEqual(status, 202);
  assert.match(text, /169\.254\.169\.254.*agents may not use it/);
});

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { NoAnswer } from '../kit/http/caller.ts';
import { ReveilleError } from '../wire/errors.ts';
import { sliceAt } from '../wire/json.ts';
import { createExecutorClient } from './client.ts';

/** A client of a server that answers every request with this. */
async function clientOf(t: TestContext, body: string | Buffer, status = 200, headers: Record<string, string> = {}) {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status, headers).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const maxBytes = 8 * 1024 * 1024;
  return createExecutorClient({ url: `http://127.0.0.1:${port}`, token: 'secret-canary', userId: 'alice', maxBytes });
}

const ok = (data: string) => `{"ok":true,"data":${data}}`;
const { signal } = new AbortController();

test('a result keeps its source text', async (t) => {
  const client = await clientOf(t, ok('{"status":"completed","result":{"2":1.0,"1":12345678901234567890}}'));
  const { text } = await client.state('i', signal);
  assert.equal(sliceAt(text.text, ['result']), '{"2":1.0,"1":12345678901234567890}');
});

test('answers that violate the contract count as no answer', async (t) => {
  const wrong = [ok('{"status":"great"}'), ok('null'), ok('[]'), '<html>', '', Buffer.from([0x7b, 0xff])];
  for (const body of wrong) {
    const client = await clientOf(t, body);
    await assert.rejects(client.state('i', signal), (thrown) => {
      assert.ok(thrown instanceof NoAnswer || (thrown instanceof ReveilleError && thrown.retryable));
      assert.doesNotMatch(thrown.message, /secret-canary/);
      return true;
    });
  }
});

test('gates without a call are not shown', async (t) => {
  const gates = ['{"pending":[{"node_id":"n","question":"?"}]}', '{"pending":{}}', '{}', '{"pending":[7]}'];
  for (const body of gates) {
    const client = await clientOf(t, ok(body));
    await assert.rejects(client.gates('i', signal), NoAnswer, body);
  }
});

test('an intent id that would lead elsewhere is not accepted', async (t) => {
  const client = await clientOf(t, ok('{"intent_id":"../admin"}'));
  await assert.rejects(client.submit({ prose: 'x' }), NoAnswer);
});

test('the retry-after of the executor is kept', async (t) => {
  const error = '{"ok":false,"error":{"code":"rate_limited","message":"later","retryable":true}}';
  const client = await clientOf(t, error, 429, { 'retry-after': '7' });
  await assert.rejects(client.submit({ prose: 'x' }), { code: 'rate_limited', retryAfterSeconds: 7 });
});

test('an endless answer is refused', async (t) => {
  const client = await clientOf(t, Buffer.alloc(9 * 1024 * 1024, 0x20));
  await assert.rejects(client.state('i', signal), /longer than/);
});

test('a redirect is not followed', async (t) => {
  const client = await clientOf(t, '', 307, { location: 'http://127.0.0.1:1/' });
  await assert.rejects(client.submit({ prose: 'x' }), /307|not an envelope/);
});

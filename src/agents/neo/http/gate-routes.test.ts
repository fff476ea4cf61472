import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../kit/clock/clock.ts';
import { startServer } from '../../../kit/http/server.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { GateAnswer } from '../../../wire/executor.ts';
import { RawJson } from '../../../wire/json.ts';
import { gateRoutes } from './server.ts';

type Given = { intentId: string; nodeId: string; answer: GateAnswer };

type Executor = NonNullable<Parameters<typeof gateRoutes>[1]>;

const NOTHING: Executor = {
  answer: () => assert.fail('nothing is answered here'),
  receipt: () => assert.fail('no receipt is asked for here'),
};

async function serving(t: TestContext, given: Partial<Executor> | undefined): Promise<string> {
  const executor = given && { ...NOTHING, ...given };
  const server = await startServer({
    ...{ name: 'neo', version: '0', host: '127.0.0.1', port: 0, log: silentLogger, clock: systemClock },
    routes: (app) => gateRoutes(app, executor),
  });
  t.after(() => server.close());
  return server.url;
}

async function post(url: string, path: string, body: string) {
  const response = await fetch(url + path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  });
  return { status: response.status, ...((await response.json()) as { data?: unknown; error?: { message: string } }) };
}

const SIGNED: GateAnswer = {
  ...{ approved: true, answer: 'go on', call_sha256: 'a'.repeat(64), displayed_sha256: 'b'.repeat(64) },
  ...{ approver: 'c'.repeat(64), expires_at: '2026-06-15T08:10:00.000Z', signature: 'd'.repeat(128) },
};
const signedWith = (more: object) => JSON.stringify({ ...SIGNED, ...more });

test('an answer reaches the executor and is confirmed', async (t) => {
  const given: Given[] = [];
  const url = await serving(t, {
    answer: async (intentId, nodeId, answer) => void given.push({ intentId, nodeId, answer }),
  });
  const { status, data } = await post(url, '/intents/i1/gates/n1/answer', signedWith({}));
  assert.equal(status, 200);
  assert.deepEqual(data, { intent_id: 'i1', node_id: 'n1', approved: true });
  assert.deepEqual(given, [{ intentId: 'i1', nodeId: 'n1', answer: SIGNED }]);
});

test('an invalid answer is refused with the wrong field and is not passed on', async (t) => {
  const url = await serving(t, { answer: () => assert.fail('it must not be passed on') });
  const wrong: [path: string, body: string, words: RegExp][] = [
    ['/intents/i1/gates/n1/answer', '{}', /approved is required/],
    ['/intents/i1/gates/n1/answer', signedWith({ approved: 'yes' }), /approved must be true or false/],
    ['/intents/i1/gates/n1/answer', signedWith({ amount: 5 }), /unknown field "amount"/],
    ['/intents/i1/gates/n1/answer', signedWith({ call_sha256: 'ab' }), /call_sha256 must be 64/],
    ['/intents/i1/gates/n1/answer', '{"approved":true}', /signature is required/],
    ['/intents/i1/gates/n1/answer', '[]', /must be a JSON object/],
    ['/intents/..%2Fadmin/gates/n1/answer', '{"approved":true}', /intent_id must be/],
    ['/intents/i1/gates/%2e%2e%2f/answer', '{"approved":true}', /node_id must be/],
  ];
  for (const [path, body, words] of wrong) {
    const { status, error } = await post(url, path, body);
    assert.equal(status, 400, path + body);
    assert.match(error?.message ?? '', words);
  }
});

test("the person gets the registry's verdict on an answer", async (t) => {
  const url = await serving(t, {
    answer: () => Promise.reject(new ReveilleError('conflict', 'the gate n1 has already been denied')),
  });
  const { status, error } = await post(url, '/intents/i1/gates/n1/answer', signedWith({}));
  assert.deepEqual([status, error?.message], [409, 'the gate n1 has already been denied']);
});

test('without an executor there are no gates', async (t) => {
  const url = await serving(t, undefined);
  const { status, error } = await post(url, '/intents/i1/gates/n1/answer', signedWith({}));
  assert.equal(status, 404);
  assert.match(error?.message ?? '', /NEO_EXECUTOR_URL/);
});

test('a receipt is passed on as the executor wrote it, and so is the error for an unknown one', async (t) => {
  const source = '{"format": "reveille-receipt/1","n":1.50}';
  const url = await serving(t, {
    receipt: async (intentId) => {
      if (intentId === 'i1') return new RawJson(source);
      throw new ReveilleError('not_found', 'there is no such intent');
    },
  });
  const whole = await (await fetch(`${url}/intents/i1/receipt`)).text();
  assert.equal(whole, `{"ok":true,"data":${source}}`);
  for (const [path, status] of [
    ['/intents/i2/receipt', 404],
    ['/intents/..%2fadmin/receipt', 400],
    ['/intents/i1/receipt?user=bob', 400],
  ] as const)
    assert.equal((await fetch(url + path)).status, status, path);
  assert.equal((await fetch(`${await serving(t, undefined)}/intents/i1/receipt`)).status, 404);
});

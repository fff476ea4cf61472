import assert from 'node:assert/strict';
import { test } from 'node:test';
import { receiptKey } from '../../kit/identity/webhook-signature.ts';
import { type Bench, startBench, WAKE_TOKEN } from '../testing/bench.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';

const machine = { provider: 'http', spec: { url: 'http://127.0.0.1:9' } };

async function keysOf(router: Bench, userId: string, token = WAKE_TOKEN) {
  const answer = await router.send('GET', `/internal/receipt-keys/${userId}`, token);
  return {
    status: answer.status,
    keys: (answer.json.data as { keys?: string[] } | undefined)?.keys,
    text: answer.text,
  };
}

test('the wake token reads the report key of a machine, never its token', async (t) => {
  const router = await startBench(t);
  const token = (await router.put('alice', machine)).json.data.token!;
  const { keys, text } = await keysOf(router, 'alice');
  assert.deepEqual(keys, [receiptKey(token)]);
  assert.ok(!text.includes(token));
  assert.equal((await keysOf(router, 'alice', 'another-token-altogether')).status, 401);
  assert.equal((await keysOf(router, 'bob')).status, 404);
  assert.equal((await keysOf(router, 'a%2Fb')).status, 400);
  assert.equal((await router.admin('DELETE', '/alice')).status, 200);
  assert.equal((await keysOf(router, 'alice')).status, 404);
});

test('a replaced token is shown once; reports signed with the earlier one are accepted for ten minutes', async (t) => {
  const clock = new ShiftingClock();
  const router = await startBench(t, { clock });
  const first = (await router.put('alice', machine)).json.data.token!;
  const rotated = await router.admin('POST', '/alice/rotate-token');
  assert.equal(rotated.status, 200, rotated.text);
  const second = rotated.json.data.token!;
  assert.match(second, /^[A-Za-z0-9_-]{43}$/);
  assert.notEqual(second, first);
  assert.match((rotated.json.data as { warnings?: string[] }).warnings![0]!, /daemon must be given the new token/);
  assert.equal((await router.admin('GET', '/alice')).json.data.token, undefined);
  assert.deepEqual((await keysOf(router, 'alice')).keys, [second, first].map(receiptKey));
  clock.advance(11 * 60_000);
  assert.deepEqual((await keysOf(router, 'alice')).keys, [receiptKey(second)]);

  const chosen = 'a-token-of-the-operator';
  await router.put('alice', { ...machine, token: chosen });
  assert.deepEqual((await keysOf(router, 'alice')).keys, [chosen, second].map(receiptKey));
  await router.put('alice', { ...machine, token: chosen });
  assert.deepEqual((await keysOf(router, 'alice')).keys, [chosen, second].map(receiptKey));
  await router.admin('DELETE', '/alice');
  await router.put('alice', { ...machine, token: chosen });
  assert.deepEqual((await keysOf(router, 'alice')).keys, [receiptKey(chosen)]);
});

test('no machine means no token to replace; a webhook gets one in the format of its receiver', async (t) => {
  const router = await startBench(t);
  assert.equal((await router.admin('POST', '/alice/rotate-token')).status, 404);
  await router.put('alice', machine);
  await router.admin('DELETE', '/alice');
  assert.equal((await router.admin('POST', '/alice/rotate-token')).status, 409);
  await router.put('bob', { provider: 'command', spec: { preset: 'webhook', url: 'https://example.com/hook' } });
  assert.match((await router.admin('POST', '/bob/rotate-token')).json.data.token!, /^whsec_/);
});

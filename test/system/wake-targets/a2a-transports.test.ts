import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { startStandInA2a } from '../../support/stand-ins/a2a-agent.ts';
import { type A2aServer, startA2aServer } from '../../support/stand-ins/a2a-server.ts';
import { answer } from '../../support/stand-ins/http-agent.ts';
import { atEnd } from '../../support/temporary.ts';
import { startTargetBench } from './router.ts';

const TOKEN = 'token-of-the-agent';

async function start(t: TestContext, agent: A2aServer, path = '') {
  atEnd(t, () => agent.close());
  const bench = await startTargetBench(t);
  const spec = { preset: 'a2a', url: `${agent.url}${path}` };
  await bench.put('alice', { provider: 'command', spec, token: TOKEN });
  return bench;
}

/** Wakes, ends the agent's task once it is there, and waits for the end of the turn. */
async function ringAndFinish(agent: A2aServer, bench: Awaited<ReturnType<typeof startTargetBench>>) {
  const { json, text } = await bench.wake('alice', { conversation_id: 'daily' });
  assert.ok(json.data, text);
  return await eventually('the turn is over', async () => {
    agent.finish();
    bench.clock.advance(10_000);
    const found = (await bench.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
    return found?.finished_at !== undefined && found;
  });
}

describe('transports of a2a', () => {
  for (const [binding, version, path] of [
    ['JSONRPC', '1.0', ''],
    ['JSONRPC', '1.0', '/rpc'],
    ['JSONRPC', '1.0', '/.well-known/agent-card.json'],
    ['HTTP+JSON', '1.0', ''],
    ['HTTP+JSON', '1.0', '/rest'],
    ['JSONRPC', '0.3', ''],
    ['HTTP+JSON', '0.3', ''],
  ] as const) {
    test(`an agent with ${binding} of A2A ${version} alone is woken at ${path || 'its origin'}`, async (t) => {
      const agent = await startA2aServer([binding], { version });
      const bench = await start(t, agent, path);
      const turn = await ringAndFinish(agent, bench);
      assert.equal(turn.status, 'done', turn.error);
      assert.match(turn.reply ?? '', /^heard \d+ bytes$/);
      assert.equal(turn.session, 'daily');
      assert.deepEqual(
        agent.heard.map(({ contextId, token }) => [contextId, token]),
        [['daily', `Bearer ${TOKEN}`]],
      );
      assert.ok(agent.heard[0]!.text.includes('\nresume the work\n'));
      agent.begins = 'message';
      assert.match((await ringAndFinish(agent, bench)).reply ?? '', /^heard \d+ bytes$/);
    });
  }

  test('a JSON-RPC error is a refusal, and a refused context is left out', async (t) => {
    const agent = await startStandInA2a();
    atEnd(t, () => agent.close());
    const supportedInterfaces = [{ url: agent.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
    agent.misbehave = (call, response) => {
      if (call.method === 'GET') answer(response, 200, { name: 'strict', supportedInterfaces });
      else {
        const error = { code: -32602, message: `no context, ${TOKEN}` };
        answer(response, 200, { jsonrpc: '2.0', id: 1, error });
      }
      return true;
    };
    const bench = await startTargetBench(t);
    await bench.put('alice', { provider: 'command', spec: { preset: 'a2a', url: agent.url }, token: TOKEN });
    const turn = await bench.ring('alice', { conversation_id: 'daily' });
    assert.equal(turn.status, 'failed');
    assert.match(turn.error ?? '', /^the agent refused the message: the JSON-RPC error -32602: no context, /);
    assert.ok(!turn.error!.includes(TOKEN));
    const sent = agent.seen.filter(({ method }) => method === 'POST').map(({ text }) => JSON.parse(text));
    assert.deepEqual(
      sent.map(({ method, params }) => [method, params.message.contextId]),
      [
        ['SendMessage', 'daily'],
        ['SendMessage', undefined],
      ],
    );
  });

  test('a card sends neither message nor token to another origin', async (t) => {
    const other = await startA2aServer(['JSONRPC']);
    atEnd(t, () => other.close());
    const agent = await startA2aServer(['JSONRPC'], { cardUrl: other.url });
    const bench = await start(t, agent);
    const { status, text } = await bench.wake('alice');
    assert.notEqual(status, 202);
    assert.match(text, /its agent card points to another origin, http:\/\/127\.0\.0\.1:\d+; register the address there/);
    assert.equal(other.heard.length, 0);
  });

  test('an agent with gRPC alone says so before a turn is accepted', async (t) => {
    const agent = await startA2aServer(['GRPC']);
    const bench = await start(t, agent);
    const { text } = await bench.wake('alice');
    assert.match(text, /its agent card has no interface of HTTP\+JSON or JSON-RPC \(it has GRPC\)/);
  });
});

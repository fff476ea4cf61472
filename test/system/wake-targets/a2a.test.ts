import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { startStandInA2a } from '../../support/stand-ins/a2a-agent.ts';
import { always, hangUp } from '../../support/stand-ins/http-agent.ts';
import { atEnd } from '../../support/temporary.ts';
import { startTargetBench, type TargetBench } from './router.ts';

const SEND = '/message:send';

async function start(t: TestContext, spec: object = {}) {
  const agent = await startStandInA2a();
  atEnd(t, () => agent.close());
  const bench = await startTargetBench(t);
  await bench.put('alice', {
    provider: 'command',
    spec: { preset: 'a2a', url: agent.url, ...spec },
    token: 'token-of-the-agent',
  });
  const sent = () => agent.seen.filter(({ path }) => path === '/message:send').map(({ text }) => JSON.parse(text));
  return { agent, bench, sent };
}

/** Wakes, and advances the pauses between polls until the turn has ended. */
async function wakeAndPoll(bench: TargetBench, meanwhile: () => void = () => {}) {
  const { json } = await bench.wake('alice');
  return await eventually('the turn has ended', async () => {
    meanwhile();
    bench.clock.advance(10_000);
    const found = (await bench.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
    return found?.finished_at !== undefined && found;
  });
}

describe('a2a', () => {
  test('the conversation is the context, and the message id comes from the fire', async (t) => {
    const { agent, bench, sent } = await start(t);
    const fire_id = '018f3b1c-0000-7000-8000-000000000001@5';
    const turn = await bench.wakeToEnd('alice', { fire_id, conversation_id: 'daily' });
    assert.equal(turn.status, 'done', turn.error);
    assert.match(turn.reply ?? '', /^heard \d+ bytes$/);
    await bench.wakeToEnd('alice', { conversation_id: 'daily' });
    const [one, two] = sent();
    assert.deepEqual([one.message.contextId, two.message.contextId], ['daily', 'daily']);
    assert.match(one.message.messageId, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.notEqual(one.message.messageId, two.message.messageId);
    assert.equal(one.message.role, 'ROLE_USER');
    assert.ok(one.message.parts[0].text.includes('\nresume the work\n'));
    const headers = agent.seen.find(({ path }) => path === '/message:send')!.headers;
    assert.deepEqual([headers['a2a-version'], headers.authorization], ['1.0', 'Bearer token-of-the-agent']);
    agent.begins = 'message';
    assert.equal((await bench.wakeToEnd('alice')).status, 'done');
  });

  test('a working task is polled until it ends, whatever its end', async (t) => {
    const { agent, bench } = await start(t);
    const ends = [
      ['TASK_STATE_COMPLETED', 'done', /^$/],
      ['TASK_STATE_FAILED', 'failed', /it failed: so it is$/],
      ['TASK_STATE_REJECTED', 'failed', /rejected: so it is$/],
      ['TASK_STATE_CANCELED', 'failed', /canceled: so it is$/],
      ['TASK_STATE_INPUT_REQUIRED', 'failed', /requests input, and no person is present to answer: so it is$/],
      ['TASK_STATE_AUTH_REQUIRED', 'failed', /requests credentials/],
      ['TASK_STATE_NEW', 'unknown', /an unknown state: new/],
    ] as const;
    for (const [state, status, error] of ends) {
      agent.begins = 'TASK_STATE_SUBMITTED';
      let polls = 0;
      const turn = await wakeAndPoll(bench, () => {
        const asked = agent.seen.filter(({ path }) => path.startsWith('/tasks/')).length;
        polls++;
        if (asked > 0) agent.setState(polls > 2 ? state : 'TASK_STATE_WORKING', 'so it is');
      });
      assert.equal(turn.status, status, JSON.stringify(turn));
      assert.match(turn.error ?? '', error);
      agent.tasks.clear();
      agent.seen.length = 0;
    }
  });

  test('an agent that creates its own contexts is called without one, and its context is kept', async (t) => {
    const { agent, bench, sent } = await start(t);
    agent.ownContexts = true;
    const first = await bench.wakeToEnd('alice', { conversation_id: 'daily' });
    assert.equal(first.status, 'done', first.error);
    await bench.wakeToEnd('alice', { conversation_id: 'daily' });
    assert.deepEqual(
      sent().map(({ message }) => message.contextId),
      ['daily', undefined, first.session],
    );
  });

  test('a refusal is a failure, an interruption is unknown, a turn that did not begin is retried', async (t) => {
    const { agent, bench, sent } = await start(t);
    agent.misbehave = always(403, { error: 'no' }, { path: SEND });
    assert.match((await bench.wakeToEnd('alice')).error ?? '', /^the agent refused the message: 403/);
    agent.misbehave = hangUp(SEND);
    const cut = await bench.wakeToEnd('alice');
    assert.deepEqual([cut.status, sent().length], ['unknown', 3]);
    agent.misbehave = always(200, '{"task":', { path: SEND });
    assert.match((await bench.wakeToEnd('alice')).error ?? '', /neither a task nor a message/);
    agent.misbehave = always(503, 'full', { path: SEND, headers: { 'retry-after': '7' } });
    let asked = 0;
    const turn = await wakeAndPoll(bench, () => {
      if (++asked > 2) agent.misbehave = undefined;
    });
    assert.equal(turn.status, 'done');
    assert.ok(turn.attempts > 1);
  });

  test('the next router finds a task again', async (t) => {
    const { agent, bench } = await start(t);
    agent.begins = 'TASK_STATE_WORKING';
    const { json } = await bench.wake('alice');
    await eventually('the task is polled', () => {
      bench.clock.advance(600);
      return agent.seen.some(({ path }) => path.startsWith('/tasks/'));
    });
    await bench.close();
    const next = await startTargetBench(t, bench);
    agent.setState('TASK_STATE_COMPLETED', 'done while you were away');
    const turn = await eventually('the turn has ended', async () => {
      next.clock.advance(10_000);
      const found = (await next.turns('alice')).turns.find(({ id }) => id === json.data.turn_id);
      return found?.finished_at !== undefined && found;
    });
    assert.deepEqual([turn.status, turn.reply], ['done', 'done while you were away']);
    assert.equal(agent.tasks.size, 1);
  });
});

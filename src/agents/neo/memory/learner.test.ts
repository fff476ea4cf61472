import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../test/support/eventually.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { openAICompatibleModel } from '../../../kit/model/openai-compatible.ts';
import {
  beginStream,
  endStream,
  modelEndpoint,
  refusing,
  type Script,
  saying,
  sendPiece,
} from '../../../kit/model/testing/model-endpoint.ts';
import type { Turn } from '../../../turns/turn.ts';
import { createLearner, modelQuery } from './learner.ts';
import { cortexBench, doneTurn } from './testing/cortex-bench.ts';

const answer = (...texts: string[]) =>
  JSON.stringify({ memories: texts.map((text) => ({ kind: 'fact', text, salience: 0.5 })) });

async function workbench(t: TestContext, ...scripts: Script[]) {
  const bench = cortexBench(t);
  const { clock, cortex } = bench;
  const endpoint = await modelEndpoint(t, ...scripts);
  const turns = new Map<string, Turn>();
  let learned = 0;
  const make = (file = cortex) => {
    const model = openAICompatibleModel({
      baseUrl: endpoint.baseUrl,
      model: 'cheap',
      apiKey: undefined,
      prefix: 'NEO',
      clock,
    });
    const learner = createLearner({
      cortex: file,
      queryModel: modelQuery(model),
      turns: { turn: (id) => turns.get(id), newestDone: () => [...turns.values()] },
      clock,
      log: silentLogger,
      onLearned: () => learned++,
    });
    t.after(() => learner.close());
    return learner;
  };
  const offer = async (learner: ReturnType<typeof make>, id: string, members: Partial<Turn> = {}) => {
    const turn = doneTurn(id, members);
    turns.set(id, turn);
    await learner.offer(turn);
  };
  const texts = () => cortex.list({ superseded: true, limit: 1000 }).map(({ text }) => text);
  return { ...bench, endpoint, turns, make, offer, texts, learned: () => learned };
}

/** Runs the event loop until the condition holds; the event comes from the network, not from a clock. */
test('memories that the cheap model finds in a turn are stored with that turn as their source', async (t) => {
  const { make, offer, cortex, endpoint, learned } = await workbench(t, saying(answer('The user lives in Lisbon.')));
  const learner = make();
  await offer(learner, 't1', { message: 'I have moved to Lisbon', conversationId: 'c7' });
  await eventually('the turns are learned from', () => learned() === 1);
  const [memory] = cortex.list({ superseded: true, limit: 9 });
  assert.deepEqual([memory?.text, memory?.turnId, memory?.conversationId], ['The user lives in Lisbon.', 't1', 'c7']);
  assert.equal(endpoint.requests[0]!.body.model, 'cheap');
  assert.match(endpoint.requests[0]!.body.messages.at(-1)!.content, /I have moved to Lisbon/);
  assert.equal(learner.warning(), undefined);
});

test('turns that are not done, are of another agent, or were offered before, are skipped', async (t) => {
  const { make, offer, endpoint, cortex } = await workbench(t, saying(answer()));
  const learner = make();
  await offer(learner, 'sent', { origin: 'chronos', sentBy: 'Scout', message: 'The user lives on Mars.' });
  for (const status of ['queued', 'running', 'failed', 'interrupted'] as const)
    await offer(learner, status, { status });
  await offer(learner, 't1');
  await eventually('the turns are learned from', () => cortex.lessons.counts().learned === 1);
  await offer(learner, 't1');
  await offer(learner, 't2');
  await eventually('the turns are learned from', () => cortex.lessons.counts().learned === 2);
  assert.equal(endpoint.requests.length, 2);
});

test('a model that fails or answers nonsense is called again later, five times in all', async (t) => {
  const { make, offer, clock, endpoint, cortex } = await workbench(
    t,
    refusing(503, 'busy'),
    saying('I would say that'),
  );
  const learner = make();
  await offer(learner, 't1');
  for (const [asked, pause] of [
    [1, 30_000],
    [2, 120_000],
    [3, 600_000],
    [4, 3_600_000],
  ] as const) {
    await eventually(
      'it was asked once more',
      () => endpoint.requests.length === asked && cortex.lessons.next()?.attempts === asked,
    );
    await eventually('it waits for its next try', () => clock.timers === 1);
    await clock.advance(pause);
  }
  await eventually('it is given up', () => cortex.lessons.counts().given_up === 1);
  assert.equal(endpoint.requests.length, 5);
  assert.match(learner.warning()!, /learning failed for 1/);
});

test('a failed lesson does not block others', async (t) => {
  const { make, offer, texts } = await workbench(t, (response, request) => {
    const bad = request.body.messages.at(-1)!.content.includes('bad turn');
    return bad ? refusing(500, 'no')(response, request) : saying(answer('Something good'))(response, request);
  });
  const learner = make();
  await offer(learner, 't1', { message: 'bad turn' });
  await offer(learner, 't2', { message: 'good turn' });
  await eventually('the memory is kept', () => texts().includes('Something good'));
});

test('when too many wait, the oldest are dropped and counted', async (t) => {
  const { make, offer, clock, endpoint, cortex } = await workbench(t, beginStream);
  const learner = make();
  await offer(learner, 'first');
  await eventually('it is asked', () => endpoint.requests.length === 1);
  for (let n = 0; n < 258; n++) {
    await clock.advance(1);
    await offer(learner, `t${n}`);
  }
  assert.deepEqual(cortex.lessons.counts(), { waiting: 256, learned: 0, given_up: 0, dropped: 3 });
  assert.match(learner.warning()!, /3 were dropped because too many waited \(256 wait now\)/);
});

test('the next process learns the queued turns, and a deleted turn is given up', async (t) => {
  const { make, offer, endpoint, cortex, open, turns } = await workbench(
    t,
    beginStream,
    saying(answer('Learned after the restart')),
  );
  const learner = make();
  await offer(learner, 't1');
  await eventually('it is asked', () => endpoint.requests.length === 1);
  await offer(learner, 't2');
  turns.delete('t2');
  await learner.close();
  await cortex.close();
  const again = open();
  make(again);
  await eventually('the turns are learned from', () => again.lessons.counts().waiting === 0);
  assert.deepEqual(again.lessons.counts(), { waiting: 0, learned: 1, given_up: 1, dropped: 0 });
  assert.deepEqual(
    again.list({ superseded: true, limit: 9 }).map(({ text }) => text),
    ['Learned after the restart'],
  );
});

test('turns that a crash lost before they were offered are learned later, once', async (t) => {
  const { make, turns, cortex, endpoint } = await workbench(t, saying(answer()));
  for (const id of ['t1', 't2']) turns.set(id, doneTurn(id));
  turns.set('t3', doneTurn('t3', { status: 'running' }));
  const first = make();
  await eventually('the turns are learned from', () => cortex.lessons.counts().learned === 2);
  await first.close();
  await make().offer(doneTurn('t1'));
  assert.equal(endpoint.requests.length, 2);
});

test('closing does not wait for a silent model', async (t) => {
  const { make, offer, endpoint } = await workbench(t, beginStream);
  const learner = make();
  await offer(learner, 't1');
  await eventually('it is asked', () => endpoint.requests.length === 1);
  await learner.close();
  await endpoint.requests[0]!.gone;
});

test('a truncated answer is rejected', async (t) => {
  const { make, offer, cortex, texts } = await workbench(t, (response) => {
    beginStream(response);
    sendPiece(response, answer('Half of it'));
    endStream(response, 'length');
  });
  await offer(make(), 't1');
  await eventually('it was tried once', () => cortex.lessons.next()?.attempts === 1);
  assert.deepEqual(texts(), []);
});

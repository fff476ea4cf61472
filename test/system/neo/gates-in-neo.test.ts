import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type NeoChild, neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted, ask, dataOf, readEvents, settledTurns } from '../../../src/agents/neo/testing/workbench.ts';
import { calling, modelEndpoint, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { eventually } from '../../support/eventually.ts';
import { type ScriptedGate, signedTo, startStandInExecutor } from '../../support/stand-ins/executor.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const PAY: ScriptedGate = {
  nodeId: 'n1',
  question: 'Pay Bob?',
  tool: 'chain/transfer',
  args: '{"to":"0xB0B","wei":12345678901234567890}',
};

/** A model that submits the task, then repeats the result. */
const messenger: Script = (response, request) => {
  const toolResult = request.body.messages.findLast(({ role }) => role === 'tool');
  const script = toolResult
    ? saying(toolResult.content)
    : calling({ name: 'core_execute', args: { intent: 'pay Bob 3' } });
  return script(response, request);
};

async function setUp(t: TestContext) {
  const executor = await startStandInExecutor();
  t.after(() => executor.stop());
  executor.course = () => ({ gates: [PAY], result: '{"wei":12345678901234567890}' });
  const endpoint = await modelEndpoint(t, messenger);
  const dataDir = temporaryFolder(t);
  const env = {
    NEO_MODEL: 'm',
    // Learning from a turn calls the model as well; requests are counted here.
    NEO_CHEAP_MODEL: 'none',
    NEO_MODEL_BASE_URL: endpoint.baseUrl,
    NEO_EXECUTOR_URL: executor.url,
    NEO_EXECUTOR_TOKEN: executor.token,
    MATRIX_USER_ID: 'alice',
  };
  const start = async () => {
    const neo = await neoChild(dataDir, env);
    t.after(() => neo.end('SIGKILL'));
    return neo;
  };
  return { executor, endpoint, start };
}

const answerGate = (neo: NeoChild, approved: boolean) =>
  ask(neo, '/intents/intent-1/gates/n1/answer', {
    method: 'POST',
    body: JSON.stringify(signedTo(PAY, { approved })),
    headers: { 'content-type': 'application/json' },
  });

const asked = ({ event, data }: { event: string; data: Record<string, unknown> }) =>
  event === 'gate' && data.state === 'asked';

/** Submits a task in a conversation with a follower, and waits for the executor's question. */
async function askedNeo(t: TestContext, neo: NeoChild) {
  const events = await readEvents(t, neo, '?conversation_id=c');
  const { turn_id } = await accepted(neo, { message: 'pay Bob', conversation_id: 'c' });
  return { events, turnId: turn_id, gate: await events.next(asked) };
}

describe('a task that a turn of Neo submits to the executor', () => {
  test('is approved by the first follower, and the agent reports its outcome', async (t) => {
    const { executor, endpoint, start } = await setUp(t);
    const neo = await start();
    const { events, gate } = await askedNeo(t, neo);
    assert.deepEqual([gate.data.intent_id, gate.data.node_id, gate.data.question], ['intent-1', 'n1', 'Pay Bob?']);
    const stored = await ask(neo, '/tools');
    assert.deepEqual(dataOf(stored).tools.map(({ name }: { name: string }) => name)[0], 'core_execute');
    const answers = await Promise.all([answerGate(neo, true), answerGate(neo, true), answerGate(neo, true)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409]);
    assert.equal((await answerGate(neo, false)).status, 409);
    const [turn] = await settledTurns(neo, 'c');
    assert.equal(turn?.status, 'done');
    assert.match(turn?.reply ?? '', /intent-1 was completed\.\nResult:\n\{"wei":12345678901234567890\}/);
    await events.next(({ event, data }) => event === 'gate' && data.state === 'approved');
    assert.equal(executor.intents[0]?.answers.length, 1);
    assert.equal(endpoint.requests.length, 2);
  });

  test('is cancelled without a follower, and the agent says so', async (t) => {
    const { executor, start } = await setUp(t);
    const neo = await start();
    await accepted(neo, { message: 'pay Bob', conversation_id: 'c' });
    const [turn] = await settledTurns(neo, 'c');
    assert.match(turn?.reply ?? '', /intent-1 was cancelled: no client was listening.*\nNo approver was there/);
    assert.deepEqual([executor.intents[0]?.status, executor.intents[0]?.answers], ['cancelled', []]);
  });

  test('survives a kill of Neo while its question is open: no second intent, no second answer', async (t) => {
    const { executor, start } = await setUp(t);
    const neo = await start();
    await askedNeo(t, neo);
    await neo.end('SIGKILL');
    const restarted = await start();
    const events = await readEvents(t, restarted, '?conversation_id=c', { 'last-event-id': '0' });
    await events.next((event) => asked(event) && events.received.filter(asked).length === 2);
    assert.equal((await answerGate(restarted, true)).status, 200);
    const [turn] = await settledTurns(restarted, 'c');
    assert.deepEqual([turn?.status, turn?.attempts], ['done', 2]);
    assert.match(turn?.reply ?? '', /intent-1 was completed/);
    assert.deepEqual([executor.intents.length, executor.intents[0]?.answers.length], [1, 1]);
  });

  test('continues through an orderly stop of Neo, which does not cancel it', async (t) => {
    const { executor, start } = await setUp(t);
    executor.course = () => ({ end: 'held' });
    const neo = await start();
    await accepted(neo, { message: 'pay Bob', conversation_id: 'c' });
    await eventually('the intent runs', () => executor.intents[0]?.status === 'executing', 20_000);
    await neo.end('SIGTERM');
    assert.equal(executor.intents[0]?.status, 'executing');
    executor.finish(executor.intents[0]!, 'completed');
    const [turn] = await settledTurns(await start(), 'c');
    assert.match(turn?.reply ?? '', /intent-1 was completed/);
    assert.equal(executor.intents.length, 1);
  });

  test('is cancelled with its turn', async (t) => {
    const { executor, start } = await setUp(t);
    const neo = await start();
    const { turnId } = await askedNeo(t, neo);
    assert.equal((await ask(neo, `/turns/${turnId}/cancel`, { method: 'POST' })).status, 200);
    await eventually('the intent is cancelled', () => executor.intents[0]?.status === 'cancelled', 20_000);
    const late = await answerGate(neo, true);
    assert.equal(late.status, 409, late.text);
    assert.deepEqual(executor.intents[0]?.answers, []);
  });
});

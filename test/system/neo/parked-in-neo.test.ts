import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type NeoChild, neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted, ask, readEvents, settledTurns } from '../../../src/agents/neo/testing/workbench.ts';
import { calling, modelEndpoint, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { wakeBody } from '../../../src/turns/testing/wakes.ts';
import { eventually } from '../../support/eventually.ts';
import { type ScriptedGate, signedTo, startStandInExecutor } from '../../support/stand-ins/executor.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const PAY: ScriptedGate = { nodeId: 'n1', question: 'Pay Bob 3?', tool: 'bank/transfer', args: '{"amount":3}' };
const CONVERSATION = 'rent';
const PARK_MS = 20_000;

/** A model that submits the task once in a turn, then repeats the result. */
const payer: Script = (response, request) => {
  const toolResult = request.body.messages.at(-1)!;
  const script =
    toolResult.role === 'tool'
      ? saying(toolResult.content)
      : calling({ name: 'core_execute', args: { intent: 'pay Bob 3' } });
  return script(response, request);
};

/** Neo over a data folder; `start` may be called again after it has ended. */
async function setUp(t: TestContext) {
  const executor = await startStandInExecutor();
  t.after(() => executor.stop());
  executor.course = () => ({ gates: [PAY] });
  const endpoint = await modelEndpoint(t, payer);
  const dataDir = temporaryFolder(t);
  const env = {
    NEO_MODEL: 'm',
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
  return { executor, start };
}

const wake = (neo: NeoChild, members: object = {}) =>
  accepted(neo, wakeBody(1_795_000_000_000, { conversation_id: CONVERSATION, message: 'Pay the rent.', ...members }));

const answerGate = (neo: NeoChild, gate: ScriptedGate) =>
  ask(neo, `/intents/intent-1/gates/${gate.nodeId}/answer`, {
    method: 'POST',
    body: JSON.stringify(signedTo(gate)),
    headers: { 'content-type': 'application/json' },
  });

describe('a task of a turn that an alarm began', () => {
  test('is parked without a follower: the turn ends, and its wake is done', async (t) => {
    const { executor, start } = await setUp(t);
    const neo = await start();
    await accepted(neo, { message: 'Bob gets 3 for the rent', conversation_id: CONVERSATION });
    await settledTurns(neo, CONVERSATION);
    await wake(neo, { payload: { account: 12345678901234 } });
    const turns = await settledTurns(neo, CONVERSATION);
    assert.deepEqual(
      turns.map(({ status, origin }) => [status, origin]),
      [
        ['done', 'user'],
        ['done', 'chronos'],
      ],
    );
    assert.match(turns[0]!.reply!, /cancelled/);
    assert.match(turns[1]!.reply!, /intent-2 is still pending.*An alarm wakes you/s);
    const [byDay, byNight] = executor.intents;
    assert.deepEqual(
      [byDay?.origin, byDay?.context],
      ['person', [{ from: 'person', text: 'Bob gets 3 for the rent' }]],
    );
    assert.deepEqual([byNight?.origin, byNight?.parkedIn], ['chronos', CONVERSATION]);
    assert.deepEqual(byNight?.context, [
      { from: 'person', text: 'Bob gets 3 for the rent' },
      { from: 'alarm', text: 'Pay the rent.' },
      { from: 'alarm', text: '{"account":12345678901234}' },
    ]);
  });

  test('can be answered by a client that comes after Neo has slept, and that sees the questions waiting by then', async (t) => {
    const { executor, start } = await setUp(t);
    const neo = await start();
    await wake(neo);
    await settledTurns(neo, CONVERSATION);
    const here = await readEvents(t, neo, `?conversation_id=${CONVERSATION}`);
    const late = await here.next(({ event }) => event === 'gate');
    assert.deepEqual([late.id, late.data.state, late.data.question], [undefined, 'asked', 'Pay Bob 3?']);
    await neo.end('SIGTERM');

    const [intent] = executor.intents;
    intent!.pending = [];
    const asked = { ...PAY, nodeId: 'n2', question: 'And the fee?' };
    executor.ask(intent!, asked);
    const restarted = await start();
    const [all, one] = await Promise.all([
      readEvents(t, restarted),
      readEvents(t, restarted, `?conversation_id=${CONVERSATION}`),
    ]);
    const isFee = ({ event, data }: { event: string; data: Record<string, unknown> }) =>
      event === 'gate' && data.question === 'And the fee?';
    const [fee] = await Promise.all([all.next(isFee), one.next(isFee)]);
    assert.deepEqual([fee.data.conversation_id, fee.data.turn_id], [CONVERSATION, undefined]);
    assert.equal((await answerGate(restarted, PAY)).status, 404);
    assert.equal((await answerGate(restarted, asked)).status, 200);
    assert.equal(intent?.status, 'completed');
    await Promise.all([all, one].map((events) => events.next(({ data }) => data.state === 'approved')));
    // The executor would have set an alarm here:
    const due = 1_795_000_100_000;
    executor.course = () => ({});
    await accepted(restarted, wakeBody(due, { conversation_id: CONVERSATION, message: 'intent-1 was completed.' }));
    const turns = await settledTurns(restarted, CONVERSATION);
    assert.deepEqual(
      turns.map(({ status }) => status),
      ['done', 'done'],
    );
  });

  test('is parked once, and the turn ends, when Neo is killed before it learns of the parking', async (t) => {
    const { executor, start } = await setUp(t);
    const neo = await start();
    executor.misbehave = (request) => request.url?.endsWith('/park') ?? false;
    await wake(neo);
    const parks = () => executor.seen.filter((at) => at.endsWith('/park')).length;
    await eventually('Neo asks for parking', () => parks() === 1, PARK_MS);
    await neo.end('SIGKILL');
    executor.misbehave = undefined;
    executor.intents[0]!.parkedIn = CONVERSATION;
    const [turn] = await settledTurns(await start(), CONVERSATION);
    assert.deepEqual([turn?.status, turn?.attempts], ['done', 2]);
    assert.match(turn?.reply ?? '', /waits for an answer to: Pay Bob 3\?.*It is parked/s);
    assert.deepEqual([executor.intents.length, parks()], [1, 1]);
  });
});

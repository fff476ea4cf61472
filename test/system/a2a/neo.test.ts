/** Another agent asks a real Neo through a real router: the turn says who asked, is answered once, and is not learned. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { ask, TOKEN } from '../../../src/agents/neo/testing/workbench.ts';
import { calling, modelEndpoint, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { eventually } from '../../support/eventually.ts';
import { type ScriptedGate, signedTo, startStandInExecutor } from '../../support/stand-ins/executor.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { openA2aBench, textMessage } from './bench.ts';

test('Neo answers another agent, and shows who asked', async (t) => {
  const neo = await neoChild(temporaryFolder(t));
  t.after(() => neo.end('SIGTERM'));
  const bench = await openA2aBench(t);
  await bench.router.put('ada', { provider: 'http', spec: { url: neo.url }, token: TOKEN });
  const message = textMessage('Are you there?', { contextId: 'greeting' });
  const { json } = await bench.rest('POST', '/message:send', message);
  assert.equal(json.task.status.state, 'TASK_STATE_COMPLETED');
  const [{ parts }] = json.task.artifacts;
  assert.match(parts[0].text, /Another agent, "the agent \(client [0-9a-f]{12}\)", wrote to me/);
  assert.match(parts[0].text, /^The message: "Another agent sent this over A2A/m);
  assert.doesNotMatch(parts[0].text, /A timer woke me|A person wrote/);

  // The same turn, as the user sees it.
  const headers = { authorization: `Bearer ${bench.tokens.ada}` };
  const read = async (path: string) =>
    ((await (await fetch(`${bench.url}${path}`, { headers })).json()) as { data: never }).data;
  const { conversations } = (await read('/conversations')) as { conversations: { id: string; turn_count: number }[] };
  assert.equal(conversations.length, 1);
  const { turns } = (await read(`/conversations/${conversations[0]!.id}`)) as {
    turns: { sent_by: string; origin: string }[];
  };
  assert.match(turns[0]!.sent_by, /^the agent \(client /);

  await bench.restart();
  const again = await bench.rest('POST', '/message:send', message);
  assert.equal(again.json.task.id, json.task.id);
  const second = await bench.rest('POST', '/message:send', textMessage('And now?', { contextId: 'greeting' }));
  assert.equal(second.json.task.status.state, 'TASK_STATE_COMPLETED');
  const [one] = ((await read('/conversations')) as { conversations: { turn_count: number }[] }).conversations;
  assert.equal(one!.turn_count, 2);

  const stream = await bench.rest('POST', '/message:stream', textMessage('And in a stream?'));
  assert.match(stream.text, /"artifactUpdate"/);
  assert.match(stream.text, /TASK_STATE_COMPLETED/);
});

const PAY: ScriptedGate = { nodeId: 'n1', question: 'Pay Bob 3?', tool: 'bank/transfer', args: '{"amount":3}' };

/** A model that submits the task once in a turn, then repeats the result. */
const payer: Script = (response, request) => {
  const last = request.body.messages.at(-1)!;
  const task = { name: 'core_execute', args: { intent: 'pay Bob 3' } };
  return (last.role === 'tool' ? saying(last.content) : calling(task))(response, request);
};

/** A Neo whose model submits a task that needs an approval, behind a router with A2A. */
async function openPayingNeo(t: TestContext) {
  const executor = await startStandInExecutor();
  t.after(() => executor.stop());
  executor.course = () => ({ gates: [PAY] });
  const endpoint = await modelEndpoint(t, payer);
  const neo = await neoChild(temporaryFolder(t), {
    ...{ NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl, MATRIX_USER_ID: 'alice' },
    ...{ NEO_EXECUTOR_URL: executor.url, NEO_EXECUTOR_TOKEN: executor.token },
  });
  t.after(() => neo.end('SIGKILL'));
  const bench = await openA2aBench(t);
  await bench.router.put('ada', { provider: 'http', spec: { url: neo.url }, token: TOKEN });
  const approve = async () => {
    const answered = await ask(neo, `/intents/intent-1/gates/${PAY.nodeId}/answer`, {
      ...{ method: 'POST', body: JSON.stringify(signedTo(PAY)), headers: { 'content-type': 'application/json' } },
    });
    assert.equal(answered.status, 200);
  };
  const reaches = (id: string, state: string) =>
    eventually(`the task is ${state}`, async () => {
      const { json } = await bench.rest('GET', `/tasks/${id}`);
      await delay(300);
      return json.status.state === state && json;
    });
  return { executor, neo, bench, approve, reaches };
}

test('an approval of a real Neo: the caller learns that the user decides, and gets the outcome', async (t) => {
  const { executor, bench, approve, reaches } = await openPayingNeo(t);
  const { json } = await bench.rest('POST', '/message:send', textMessage('Pay Bob 3.'));
  assert.equal(json.task.status.state, 'TASK_STATE_AUTH_REQUIRED');
  assert.doesNotMatch(JSON.stringify(json.task.status), /Bob|transfer|intent-1/);
  const [intent] = executor.intents;
  assert.equal(intent!.origin, 'chronos', 'as if no person were present');
  assert.deepEqual(
    intent!.context!.map(({ from }) => from),
    ['tool'],
    'no words of the person',
  );
  await approve();
  const task = await reaches(json.task.id, 'TASK_STATE_COMPLETED');
  assert.match(task.artifacts[0].parts[0].text, /completed/);
});

test('a turn that was parked while the router was down: the task waits on, and ends with the outcome', async (t) => {
  const { executor, neo, bench, approve, reaches } = await openPayingNeo(t);
  const { json } = await bench.rest('POST', '/message:send', textMessage('Pay Bob 3.'));
  const { id } = json.task;
  await bench.whileDown(async () => {
    // Without a follower the intent is parked, and the turn ends.
    await eventually('the intent is parked', () => executor.intents[0]!.parkedIn !== undefined);
    await eventually('the turn has ended', async () => {
      const { busy } = JSON.parse((await ask(neo, '/healthz')).text).data;
      return busy === false;
    });
  });
  assert.equal((await reaches(id, 'TASK_STATE_AUTH_REQUIRED')).artifacts?.length ?? 0, 0);
  const conversation = executor.intents[0]!.parkedIn!;
  await delay(6000);
  await reaches(id, 'TASK_STATE_AUTH_REQUIRED');
  await approve();
  // The executor would have set an alarm here.
  executor.course = () => ({});
  const woken = {
    conversation_id: conversation,
    message: 'intent-1 was completed.',
    payload: { intent_id: 'intent-1' },
  };
  assert.equal((await bench.router.wake('ada', woken)).status, 202);
  await reaches(id, 'TASK_STATE_COMPLETED');
});

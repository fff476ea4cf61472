/** Push notifications to a real receiver: their form, their token, repetition, and restarts. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { always, startHttpAgent } from '../../support/stand-ins/http-agent.ts';
import { atEnd } from '../../support/temporary.ts';
import { openA2aBench, textMessage } from './bench.ts';

async function startReceiver(t: TestContext) {
  const receiver = await startHttpAgent((_, response) => void response.writeHead(204).end());
  atEnd(t, () => receiver.close());
  return receiver;
}

const bodies = (receiver: { seen: readonly { text: string }[] }) => receiver.seen.map(({ text }) => JSON.parse(text));
const statesOf = (receiver: { seen: readonly { text: string }[] }) =>
  bodies(receiver).map(({ task, statusUpdate }) => (task ?? statusUpdate).status.state);

test('a receiver gets each state with its token, over a restart of the router, and once each', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openA2aBench(t, { settings: { ROUTER_A2A_ALLOW: new URL(receiver.url).host } });
  const taskPushNotificationConfig = {
    ...{ url: `${receiver.url}/hook`, token: 'token-of-ada' },
    authentication: { scheme: 'Bearer', credentials: 'secret-of-the-receiver' },
  };
  const configuration = { returnImmediately: true, taskPushNotificationConfig };
  const { json } = await bench.rest('POST', '/message:send', { ...textMessage('go'), configuration });
  const turn = await eventually('the agent has the turn', () => bench.ada.turns[0]);
  bench.ada.begin(turn);
  await eventually('the receiver knows', () => statesOf(receiver).includes('TASK_STATE_WORKING'));
  await bench.restart();
  bench.ada.gate(turn, 'i', 'asked');
  await eventually('the receiver knows', () => statesOf(receiver).includes('TASK_STATE_AUTH_REQUIRED'));
  bench.ada.gate(turn, 'i', 'approved');
  bench.ada.end(turn, 'gone');
  await eventually('the receiver knows', () => statesOf(receiver).includes('TASK_STATE_COMPLETED'));
  const states = ['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'COMPLETED'].map(
    (state) => `TASK_STATE_${state}`,
  );
  assert.deepEqual(statesOf(receiver), states);
  for (const { headers, method } of receiver.seen) {
    assert.equal(method, 'POST');
    assert.equal(headers['x-a2a-notification-token'], 'token-of-ada');
    assert.equal(headers.authorization, 'Bearer secret-of-the-receiver');
    assert.equal(headers['content-type'], 'application/a2a+json');
  }
  const last = bodies(receiver).at(-1);
  assert.equal(last.task.id, json.task.id);
  assert.equal(last.task.artifacts[0].parts[0].text, 'gone');
  const { text } = await bench.rest('GET', `/tasks/${json.task.id}/pushNotificationConfigs`);
  assert.match(text, /token-of-ada/);
  assert.doesNotMatch(text, /secret-of-the-receiver/);
});

test('the old version gets whole tasks in its own form', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openA2aBench(t, { settings: { ROUTER_A2A_ALLOW: new URL(receiver.url).host } });
  bench.ada.replyTo = () => 'old';
  const message = { kind: 'message', messageId: 'old-1', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
  const configuration = { blocking: false, pushNotificationConfig: { url: receiver.url } };
  const { json } = await bench.rpc('message/send', { message, configuration }, { version: '0.3' });
  assert.equal(json.result.kind, 'task');
  const completed = await eventually('the receiver knows', () =>
    bodies(receiver).find(({ status }) => status.state === 'completed'),
  );
  assert.equal(completed.kind, 'task');
  assert.equal(completed.artifacts[0].parts[0].text, 'old');
});

test('a receiver that is down gets it later; one that refuses is not asked again; a redirect is not followed', async (t) => {
  const [down, gone, elsewhere] = [await startReceiver(t), await startReceiver(t), await startReceiver(t)];
  const redirecting = await startReceiver(t);
  const allow = [down, gone, elsewhere, redirecting].map(({ url }) => new URL(url).host).join(',');
  const bench = await openA2aBench(t, { settings: { ROUTER_A2A_ALLOW: allow } });
  down.misbehave = ({ text }, response) => {
    if (down.seen.filter((one) => one.text === text).length > 1) return false;
    response.writeHead(503).end();
    return true;
  };
  gone.misbehave = always(410, {});
  redirecting.misbehave = always(307, {}, { headers: { location: elsewhere.url } });
  const { json } = await bench.rest('POST', '/message:send', {
    ...textMessage('go'),
    configuration: { returnImmediately: true },
  });
  const path = `/tasks/${json.task.id}/pushNotificationConfigs`;
  for (const [id, { url }] of Object.entries({ down, gone, redirecting }))
    assert.equal((await bench.rest('POST', path, { id, url })).status, 201);
  const turn = await eventually('the agent has the turn', () => bench.ada.turns[0]);
  bench.ada.end(turn, 'done');
  const completions = () => statesOf(down).filter((state) => state === 'TASK_STATE_COMPLETED').length;
  await eventually('the receiver that was down has it', () => completions() === 2);
  assert.ok(gone.seen.length <= 2, 'one attempt for each state');
  assert.ok(redirecting.seen.length >= 1);
  assert.equal(elsewhere.seen.length, 0);
});

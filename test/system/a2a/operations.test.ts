/** A2A over HTTP with a real router: what a caller asks becomes a turn of the user's agent, once, and survives a restart. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { type A2aBench, openA2aBench, textMessage } from './bench.ts';

const stateOf = async (bench: A2aBench, id: string) => (await bench.rest('GET', `/tasks/${id}`)).json.status.state;
const reaches = (bench: A2aBench, id: string, state: string) =>
  eventually(`the task is ${state}`, async () => (await stateOf(bench, id)) === state);
const immediately = { configuration: { returnImmediately: true } };
const turnOf = (bench: A2aBench, n = 0) => eventually('the agent has the turn', () => bench.ada.turns[n]);

const answering = async (t: TestContext) => {
  const bench = await openA2aBench(t);
  bench.ada.replyTo = ({ body }) => `heard ${body.message.length}`;
  return bench;
};

test('a message is answered with the reply of the agent, and reaches it marked as one of another agent', async (t) => {
  const bench = await answering(t);
  const { status, json } = await bench.rest('POST', '/message:send', textMessage('What is on Monday?'));
  assert.equal(status, 200);
  assert.equal(json.task.status.state, 'TASK_STATE_COMPLETED');
  assert.match(json.task.artifacts[0].parts[0].text, /^heard \d+$/);
  const [turn] = bench.ada.turns;
  assert.equal(turn!.userId, 'ada');
  assert.deepEqual(turn!.body.sent_by, { kind: 'agent', name: `the agent (client ${bench.tokens.ada.slice(4, 16)})` });
  assert.equal(turn!.body.origin, 'chronos');
  assert.match(turn!.body.message, /^Another agent sent this over A2A: "the agent/);
  assert.match(turn!.body.message, /<<<message ([0-9a-f]{16})\nWhat is on Monday\?\nmessage \1>>>$/);
  assert.match(turn!.conversation_id, /^a2a-[0-9a-f]{32}$/);
  assert.equal(bench.bob.turns.length, 0);
  const read = await bench.rest('GET', `/tasks/${json.task.id}`);
  assert.deepEqual(read.json, json.task);
});

test('messages of a context are one conversation; another context and another caller have their own', async (t) => {
  const bench = await answering(t);
  const other = await bench.anotherToken('ada');
  const say = (contextId: string, token?: string) =>
    bench.rest('POST', '/message:send', textMessage('hello', { contextId }), token);
  for (const [context, token] of [['one'], ['one'], ['two'], ['one', other]] as const) await say(context, token);
  const [a, b, c, d] = bench.ada.turns.map(({ conversation_id }) => conversation_id);
  assert.equal(a, b);
  assert.equal(new Set([a, c, d]).size, 3);
});

test('a repeated message id begins no second turn, also at the same time and after a restart', async (t) => {
  const bench = await answering(t);
  const message = textMessage('once');
  const answers = await Promise.all(Array.from({ length: 20 }, () => bench.rest('POST', '/message:send', message)));
  await bench.restart();
  answers.push(await bench.rest('POST', '/message:send', message));
  const ids = new Set(answers.map(({ json }) => json.task.id));
  assert.equal(ids.size, 1);
  assert.equal(bench.ada.turns.length, 1);
  const reused = { message: { ...message.message, parts: [{ text: 'another text' }] } };
  const refused = await bench.rest('POST', '/message:send', reused);
  assert.equal(refused.status, 400);
  assert.match(refused.json.error.message, /messageId was used for another message/);
});

test('a task continues after a restart of the router, and its turn is not begun again', async (t) => {
  const bench = await openA2aBench(t);
  const { json } = await bench.rest('POST', '/message:send', { ...textMessage('take your time'), ...immediately });
  const turn = await turnOf(bench);
  bench.ada.begin(turn);
  await reaches(bench, json.task.id, 'TASK_STATE_WORKING');
  await bench.restart();
  await bench.restart();
  bench.ada.end(turn, 'done at last');
  await reaches(bench, json.task.id, 'TASK_STATE_COMPLETED');
  assert.equal(bench.ada.turns.length, 1);
});

test('a message whose answer was lost is handed over again, and begins one turn', async (t) => {
  const bench = await answering(t);
  let lost = 0;
  bench.ada.misbehave = ({ path, text, headers }, response) => {
    if (path !== '/chat' || lost > 0) return false;
    lost++;
    // It accepts the turn, and the connection breaks.
    void fetch(`${bench.ada.url}/chat`, {
      method: 'POST',
      body: text,
      headers: { 'x-matrix-user': String(headers['x-matrix-user']) },
    }).then(() => response.destroy());
    return true;
  };
  const { json } = await bench.rest('POST', '/message:send', textMessage('hello'));
  assert.equal(json.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(lost, 1);
  assert.equal(bench.ada.turns.length, 1);
});

test('a stream has the task, the reply as it is written, and the end', async (t) => {
  const bench = await openA2aBench(t);
  const answer = await fetch(`${bench.url}/a2a/message:stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bench.tokens.ada}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify(textMessage('tell me')),
  });
  assert.equal(answer.headers.get('content-type'), 'text/event-stream');
  const turn = await turnOf(bench);
  bench.ada.begin(turn);
  const [task] = await eventually('the task is listed', async () => {
    const { tasks } = (await bench.rest('GET', '/tasks')).json;
    return tasks[0]?.status.state === 'TASK_STATE_WORKING' && tasks;
  });
  // The first words may be written before the agent's events are followed.
  const writing = setInterval(() => bench.ada.say(turn, 'one '), 20);
  t.after(() => clearInterval(writing));
  let received = '';
  const decoder = new TextDecoder();
  for await (const chunk of answer.body!) {
    received += decoder.decode(chunk as Uint8Array, { stream: true });
    if (bench.ada.turns[0]!.status === 'done' || !received.includes('artifactUpdate')) continue;
    // The text is passed on before the end.
    clearInterval(writing);
    bench.ada.end(turn, 'one two');
  }
  const events = received
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => JSON.parse(event.slice(6)));
  assert.equal(events[0].task.id, task.id);
  const texts = events.flatMap(({ artifactUpdate: update }) =>
    update ? [[update.artifact.parts[0].text, update.append ?? false, update.lastChunk ?? false]] : [],
  );
  assert.deepEqual(texts.at(-1), ['one two', false, true]);
  assert.ok(texts.length >= 2, JSON.stringify(texts));
  assert.equal(events.at(-1).statusUpdate.status.state, 'TASK_STATE_COMPLETED');
});

test('a subscriber gets the present state first, and the end', async (t) => {
  const bench = await openA2aBench(t);
  const { json } = await bench.rest('POST', '/message:send', { ...textMessage('wait'), ...immediately });
  const turn = await turnOf(bench);
  const subscribed = bench.rest('POST', `/tasks/${json.task.id}:subscribe`);
  bench.ada.begin(turn);
  bench.ada.end(turn, 'over');
  const { text } = await subscribed;
  assert.match(text, /^data: \{"task":/);
  assert.match(text, /TASK_STATE_COMPLETED/);
  const late = await bench.rest('POST', `/tasks/${json.task.id}:subscribe`);
  assert.equal(late.status, 400);
});

test('a step that the user has to approve makes the task auth-required, without its details', async (t) => {
  const bench = await openA2aBench(t);
  const { json } = await bench.rest('POST', '/message:send', { ...textMessage('pay the bill'), ...immediately });
  const { id } = json.task;
  const turn = await turnOf(bench);
  bench.ada.begin(turn);
  bench.ada.gate(turn, 'intent-1', 'asked');
  await reaches(bench, id, 'TASK_STATE_AUTH_REQUIRED');
  const { text } = await bench.rest('GET', `/tasks/${id}`);
  assert.match(text, /needs the user's approval/);
  assert.doesNotMatch(text, /intent-1/);
  // A request that waits is answered now.
  bench.ada.gate(turn, 'intent-1', 'approved');
  await reaches(bench, id, 'TASK_STATE_WORKING');
  bench.ada.end(turn, 'paid');
  await reaches(bench, id, 'TASK_STATE_COMPLETED');
});

test('a turn that ends before its approval: the task ends with the turn that learns of it, also after a restart', async (t) => {
  const bench = await openA2aBench(t);
  const { json } = await bench.rest('POST', '/message:send', { ...textMessage('pay the bill'), ...immediately });
  const { id } = json.task;
  const turn = await turnOf(bench);
  bench.ada.begin(turn);
  bench.ada.gate(turn, 'intent-1', 'asked');
  await reaches(bench, id, 'TASK_STATE_AUTH_REQUIRED');
  bench.ada.end(turn, 'I wait for the approval');
  const cancel = await eventually('the turn was seen to end', async () => {
    const answer = await bench.rest('POST', `/tasks/${id}:cancel`);
    return answer.json.error?.message?.includes('only the user can deny it') && answer;
  });
  assert.equal(cancel.status, 400);
  await bench.restart();
  assert.equal(await stateOf(bench, id), 'TASK_STATE_AUTH_REQUIRED');
  bench.ada.wake(turn.conversation_id, 'intent-1', 'the bill is paid');
  // Any sign of life of the machine makes the router look.
  await bench.rest('POST', '/message:send', { ...textMessage('another'), ...immediately });
  await reaches(bench, id, 'TASK_STATE_COMPLETED');
  const { artifacts } = (await bench.rest('GET', `/tasks/${id}`)).json;
  assert.equal(artifacts[0].parts[0].text, 'the bill is paid');
});

test('a task is canceled with its turn; an ended one is not', async (t) => {
  const bench = await openA2aBench(t);
  const { json } = await bench.rest('POST', '/message:send', { ...textMessage('long'), ...immediately });
  const turn = await turnOf(bench);
  bench.ada.begin(turn);
  await reaches(bench, json.task.id, 'TASK_STATE_WORKING');
  const canceled = await bench.rest('POST', `/tasks/${json.task.id}:cancel`);
  assert.equal(canceled.json.status.state, 'TASK_STATE_CANCELED');
  assert.equal(turn.status, 'interrupted');
  const again = await bench.rest('POST', `/tasks/${json.task.id}:cancel`);
  assert.equal(again.status, 400);
});

test('the caller gets no reason of a failed turn, and an agent of an older version refuses the message', async (t) => {
  const bench = await openA2aBench(t);
  const sent = bench.rest('POST', '/message:send', textMessage('hello'));
  const turn = await turnOf(bench);
  bench.ada.end(turn, 'half of', 'failed');
  const { json } = await sent;
  assert.equal(json.task.status.state, 'TASK_STATE_FAILED');
  assert.equal(json.task.artifacts?.length ?? 0, 0);
  bench.ada.isOld = true;
  const refused = await bench.rest('POST', '/message:send', textMessage('hello again'));
  assert.equal(refused.json.task.status.state, 'TASK_STATE_FAILED');
  assert.match(refused.json.task.status.message.parts[0].text, /does not accept messages of other agents/);
});

test('tasks are listed newest first, in pages, by context and state', async (t) => {
  const bench = await answering(t);
  for (let n = 0; n < 5; n++)
    await bench.rest('POST', '/message:send', textMessage(`n ${n}`, { contextId: n % 2 === 0 ? 'even' : 'odd' }));
  const first = (await bench.rest('GET', '/tasks?pageSize=2')).json;
  assert.equal(first.totalSize, 5);
  const second = (await bench.rest('GET', `/tasks?pageSize=2&pageToken=${first.nextPageToken}`)).json;
  const third = (await bench.rest('GET', `/tasks?pageSize=2&pageToken=${second.nextPageToken}`)).json;
  const ids = [first, second, third].flatMap(({ tasks }) => tasks.map(({ id }: { id: string }) => id));
  assert.equal(new Set(ids).size, 5);
  assert.equal(third.nextPageToken, '');
  assert.equal((await bench.rest('GET', '/tasks?contextId=odd')).json.totalSize, 2);
  assert.equal((await bench.rest('GET', '/tasks?status=TASK_STATE_COMPLETED')).json.totalSize, 5);
  assert.equal((await bench.rest('GET', '/tasks?status=TASK_STATE_WORKING')).json.totalSize, 0);
});

test('the public card says nothing of users; the extended one is for callers', async (t) => {
  const bench = await openA2aBench(t);
  const read = async (version: string | undefined) =>
    (
      await fetch(`${bench.url}/.well-known/agent-card.json`, {
        headers: version === undefined ? {} : { 'a2a-version': version },
      })
    ).json() as Promise<Record<string, unknown> & { supportedInterfaces: { url: string }[] }>;
  const card = await read('1.0');
  assert.doesNotMatch(JSON.stringify(card), /ada|bob/);
  for (const { url } of card.supportedInterfaces) assert.equal(url, `${bench.url}/a2a`);
  const old = await read(undefined);
  assert.equal(old.url, `${bench.url}/a2a`);
  assert.equal(old.preferredTransport, 'JSONRPC');
  const extended = await bench.rest('GET', '/extendedAgentCard');
  assert.equal(extended.json.name, 'Agent of ada');
  assert.equal((await bench.rest('GET', '/extendedAgentCard', undefined, '')).status, 401);
});

test('data of a message reaches the agent as its source text', async (t) => {
  const bench = await answering(t);
  const body = `{"message":{"messageId":"digits","role":"ROLE_USER","parts":[{"text":"add"},{"data":{"n":12345678901234567890,"x":1.0}}]}}`;
  const { json } = await bench.rest('POST', '/message:send', body);
  assert.equal(json.task.status.state, 'TASK_STATE_COMPLETED');
  const { text } = bench.ada.seen.find(({ path }) => path === '/chat')!;
  assert.match(text, /"payload":\{"n":12345678901234567890,"x":1\.0\}/);
});

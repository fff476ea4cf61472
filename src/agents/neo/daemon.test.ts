import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { type Clock, systemClock } from '../../kit/clock/clock.ts';
import { createLogger, type Logger } from '../../kit/log/log.ts';
import { modelEndpoint, refusing, saying } from '../../kit/model/testing/model-endpoint.ts';
import { wakeBody } from '../../turns/testing/wakes.ts';
import { neoChild } from './testing/neo-child.ts';
import {
  accepted,
  ask,
  dataOf,
  errorOf,
  pausedModel,
  postChat,
  readEvents,
  settledTurns,
  startedNeo,
  turnsOf,
} from './testing/workbench.ts';

const DUE = Date.UTC(2026, 5, 15, 8, 10);

test('every route but health and the name needs the token', async (t) => {
  const neo = await startedNeo(t);
  for (const path of ['/chat', '/events', '/conversations', '/conversations/c', '/tools', '/nothing']) {
    for (const authorization of ['', 'Bearer wrong-token-for-the-test']) {
      const error = errorOf(await ask(neo, path, { headers: { authorization } }));
      assert.deepEqual([error.status, error.code], [401, 'unauthorized'], path);
    }
  }
  const open = { headers: { authorization: '' } };
  assert.deepEqual(dataOf(await ask(neo, '/healthz', open)), { status: 'ok', busy: false, queued: 0 });
  assert.equal(dataOf(await ask(neo, '/', open)).name, 'neo');
  assert.equal((await ask(neo, '/readyz', open)).status, 200);
});

test('Neo reports its port to a parent process that passed a descriptor', async (t) => {
  const env = { NEO_PORT: '', PORT: '1', REVEILLE_PORT_FD: '3' };
  const neo = await neoChild(temporaryFolder(t), env);
  t.after(() => neo.end('SIGKILL'));
  assert.equal(await neo.portOutput, `${new URL(neo.url).port}\n`);
  assert.equal((await ask(neo, '/healthz')).status, 200);
});

test('health says whether a machine may be put to sleep', async (t) => {
  const model = pausedModel();
  const neo = await startedNeo(t, { model });
  await accepted(neo, { message: 'one', conversation_id: 'c' });
  const requests = await model.next();
  await accepted(neo, { message: 'two', conversation_id: 'c' });
  assert.deepEqual(dataOf(await ask(neo, '/healthz')), { status: 'ok', busy: true, queued: 1 });
  requests.answer('x');
  (await model.next()).answer('y');
  await settledTurns(neo, 'c');
  assert.deepEqual(dataOf(await ask(neo, '/healthz')), { status: 'ok', busy: false, queued: 0 });
});

test('a configured endpoint answers the turn and gets the message and the cause of the wake', async (t) => {
  const endpoint = await modelEndpoint(t, saying('On ', 'it.'));
  const model = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'asked-model', apiKey: 'key' } as const;
  const neo = await startedNeo(t, { config: { model } });
  const payload = '{"n":12345678901234567890 ,"f":1.0}';
  const members = { message: 'Resume:  \u0001 holder 240 ', conversation_id: 'c' };
  await accepted(neo, `${JSON.stringify(wakeBody(DUE, members)).slice(0, -1)},"payload":${payload}}`);
  const [turn] = await settledTurns(neo, 'c');
  assert.deepEqual([turn?.status, turn?.reply, turn?.model], ['done', 'On it.', 'served-model']);
  const shown = endpoint.requests[0]!.body.messages.at(-1)!.content;
  assert.match(shown, /^Caused by: a timer/);
  assert.ok(shown.includes('\nResume:  \u0001 holder 240 \n'));
  assert.ok(shown.includes(`\n${payload}\n`));
});

/** A logger whose lines the test can read. */
function recordingLogger(): { log: Logger; lines: () => string } {
  const log = createLogger('neo', 'trace');
  let text = '';
  const stream = Object.getOwnPropertySymbols(log).find(({ description }) => description === 'pino.stream')!;
  Object.assign(log, { [stream]: { write: (line: string) => (text += line) } });
  return { log, lines: () => text };
}

test('no key and no token appears in a log, an answer or an event, also when the endpoint quotes the key', async (t) => {
  const KEY = 'sk-canary-model-key';
  const endpoint = await modelEndpoint(t, refusing(401, `Incorrect API key provided: ${KEY}`));
  const { log, lines } = recordingLogger();
  const token = 'canary-daemon-token-1';
  const model = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: KEY } as const;
  const neo = await startedNeo(t, { log, config: { model, token } });
  const authorization = { authorization: `Bearer ${token}` };
  const posted = await postChat(neo, { message: 'x', conversation_id: 'c' }, authorization);
  const events = await readEvents(t, neo, '?last_event_id=0', authorization);
  await events.next(({ data }) => data.status === 'failed');
  const refused = await postChat(neo, '{', authorization);
  const shown = await ask(neo, '/conversations/c', { headers: authorization });
  assert.match(shown.text, /"error":"the model endpoint answered 401: Incorrect API key provided: \[redacted\]/);
  await neo.close();
  assert.match(lines(), /turn failed/);
  for (const text of [posted.text, refused.text, shown.text, JSON.stringify(events.received), lines()]) {
    assert.ok(!text.includes('canary'), text);
  }
});

test('a rate-limited endpoint is called again after its delay, and the turn ends well', async (t) => {
  const endpoint = await modelEndpoint(t, refusing(429, 'slow down', { 'retry-after': '0' }), saying('ok'));
  const model = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: undefined } as const;
  const neo = await startedNeo(t, { config: { model } });
  await accepted(neo, { message: 'x', conversation_id: 'c' });
  assert.equal((await settledTurns(neo, 'c'))[0]?.reply, 'ok');
  assert.equal(endpoint.requests.length, 2);
});

test('a close lets the running turn finish', async (t) => {
  const dataDir = temporaryFolder(t);
  const model = pausedModel();
  const neo = await startedNeo(t, { dataDir, model });
  await accepted(neo, { message: 'x', conversation_id: 'c' });
  const requests = await model.next();
  const closed = neo.close();
  requests.answer('in time');
  await closed;
  const again = await startedNeo(t, { dataDir });
  assert.equal((await turnsOf(again, 'c'))[0]?.reply, 'in time');
});

test('a turn that outlasts the close runs again at the next start', async (t) => {
  const dataDir = temporaryFolder(t);
  const model = pausedModel();
  const neo = await startedNeo(t, { dataDir, model, drainMs: 20 });
  await accepted(neo, { message: 'x', conversation_id: 'c' });
  await model.next();
  await neo.close();
  const again = await startedNeo(t, { dataDir });
  const [turn] = await settledTurns(again, 'c');
  assert.deepEqual([turn?.status, turn?.attempts, turn?.model], ['done', 2, 'offline']);
});

test('a data folder in use and a taken port stop the start with the reason', async (t) => {
  const dataDir = temporaryFolder(t);
  const neo = await startedNeo(t, { dataDir });
  await assert.rejects(startedNeo(t, { dataDir }), { code: 'unavailable', message: /neo\.db is already open/ });
  const other = temporaryFolder(t);
  await assert.rejects(startedNeo(t, { dataDir: other, config: { port: neo.port } }), {
    code: 'unavailable',
    message: /another program listens there/,
  });
  // The failed start has released its folder.
  await startedNeo(t, { dataDir: other });
});

test('without a manifest the list of tools is empty', async (t) => {
  const neo = await startedNeo(t);
  const none = { tools: [], escalate: [], escalated: [], warnings: [] };
  assert.deepEqual(dataOf(await ask(neo, '/tools')), { ...none, model: 'offline' });
});

test('a turn is cancelled over HTTP, and an unknown one is not found', async (t) => {
  const model = pausedModel();
  const neo = await startedNeo(t, { model });
  const { turn_id } = await accepted(neo, { message: 'x', conversation_id: 'c' });
  await model.next();
  const cancel = (id: string) => ask(neo, `/turns/${id}/cancel`, { method: 'POST' });
  const cancelled = dataOf(await cancel(turn_id));
  assert.deepEqual([cancelled.id, cancelled.status, cancelled.error], [turn_id, 'failed', 'cancelled on request']);
  assert.deepEqual(dataOf(await cancel(turn_id)), cancelled, 'a second time changes nothing');
  const withoutToken = errorOf(await cancel('nobody'));
  assert.deepEqual([withoutToken.status, withoutToken.code], [404, 'not_found']);
});

test('a character that the endpoint sent in two halves is assembled, and a lone half does no harm', async (t) => {
  const endpoint = await modelEndpoint(t, saying('\ud83d', '\ude00 and '), saying('a lone \ud83d'));
  const model = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: undefined } as const;
  const neo = await startedNeo(t, { config: { model } });
  const live = await readEvents(t, neo);
  await accepted(neo, { message: 'x', conversation_id: 'c' });
  await settledTurns(neo, 'c');
  await accepted(neo, { message: 'y', conversation_id: 'c' });
  const [first, second] = await settledTurns(neo, 'c');
  assert.equal(first?.reply, '\ud83d\ude00 and ');
  assert.equal(second?.reply, 'a lone \ufffd');
  await live.next(({ data }) => data.status === 'done' && data.turn_id === second?.id);
});

test('a lateness that is negative by a skewed clock is shown as such', async (t) => {
  const clock: Clock = { ...systemClock, now: () => DUE - 5 };
  const neo = await startedNeo(t, { clock });
  await accepted(neo, wakeBody(DUE, { conversation_id: 'c' }));
  assert.match((await settledTurns(neo, 'c'))[0]?.reply ?? '', /5 ms early by this machine's clock/);
});

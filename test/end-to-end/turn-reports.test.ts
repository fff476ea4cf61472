import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { neoChild } from '../../src/agents/neo/testing/neo-child.ts';
import { pausedModel, settledTurns, startedNeo, TOKEN } from '../../src/agents/neo/testing/workbench.ts';
import { modelEndpoint, refusing, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { eventually } from '../support/eventually.ts';
import { COMPILED, LEAN } from '../support/quick-start.ts';
import { atEnd } from '../support/temporary.ts';
import { assertInOrder, openChronosdWithRouter, USER } from './chronosd-with-router.ts';

const NEO = fileURLToPath(new URL('../../src/agents/neo/testing/neo-process.fixture.ts', import.meta.url));

const remoteNeo = (url: string) => ({ provider: 'http', spec: { url }, token: TOKEN });

test('an alarm wakes a sleeping Neo, and its record has the time of readiness and the end of the turn', async (t) => {
  const daemons = await openChronosdWithRouter(t);
  const env = { ...COMPILED, NEO_DATA_DIR: join(daemons.folder, 'neo') };
  await daemons.put(USER, { provider: 'process', spec: { command: [process.execPath, ...LEAN, NEO], env } });
  const fire = await daemons.finished(await daemons.setAlarm());
  assert.equal(fire.outcome, 'delivered');
  assert.equal(fire.turn?.ok, true);
  assert.ok(fire.turn.turn_id && fire.turn.conversation_id && fire.turn.started_at && fire.turn.finished_at);
  assert.ok(fire.machine_ready_at && fire.accepted_at);
  assertInOrder(fire);
});

test('a turn that the model fails is finished and not ok, with the reason', async (t) => {
  const daemons = await openChronosdWithRouter(t);
  const endpoint = await modelEndpoint(t, refusing(400, 'the model is not here'));
  const neo = await neoChild(join(daemons.folder, 'neo'), {
    ...{ NEO_CHRONOS_URL: daemons.chronosUrl, NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl },
  });
  atEnd(t, () => neo.end('SIGKILL'));
  await daemons.put(USER, remoteNeo(neo.url));
  const { turn } = await daemons.finished(await daemons.setAlarm());
  assert.equal(turn?.ok, false);
  assert.match(turn.error ?? '', /the model is not here/);
  assert.doesNotMatch(neo.log(), new RegExp(TOKEN));
});

test('a Neo that is killed before it sends its turn report sends it when it runs again', async (t) => {
  const daemons = await openChronosdWithRouter(t);
  const endpoint = await modelEndpoint(t, saying('done'));
  const model = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl };
  // Accepts connections and never answers.
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as { port: number };
  const dataDir = join(daemons.folder, 'neo');
  const doomed = await neoChild(dataDir, { NEO_CHRONOS_URL: `http://127.0.0.1:${port}`, ...model });
  atEnd(t, () => doomed.end('SIGKILL'));
  await daemons.put(USER, remoteNeo(doomed.url));
  const id = await daemons.setAlarm();
  await daemons.fire(id, 'the wake is accepted', ({ reached }) => reached === 'accepted');
  await eventually('Neo tries to send its report', () => sockets.size > 0);
  const list = await fetch(`${doomed.url}/conversations`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const { data } = (await list.json()) as { data: { conversations: { id: string }[] } };
  const [turn] = await settledTurns(doomed, data.conversations[0]!.id);
  assert.equal(turn!.status, 'done');
  await doomed.end('SIGKILL');
  assert.equal((await daemons.fires(id))[0]!.reached, 'accepted');

  const heir = await neoChild(dataDir, { NEO_CHRONOS_URL: daemons.chronosUrl, ...model });
  atEnd(t, () => heir.end('SIGKILL'));
  const fire = await daemons.finished(id);
  assert.deepEqual([fire.turn?.ok, fire.turn?.turn_id], [true, turn!.id]);
  assert.equal(fire.turn?.started_at, turn!.started_at);
});

test('a chronosd that is down while the turn ends gets the turn report afterwards', async (t) => {
  const daemons = await openChronosdWithRouter(t);
  const model = pausedModel();
  const neo = await startedNeo(t, { model, config: { chronosUrl: daemons.chronosUrl } });
  await daemons.put(USER, remoteNeo(neo.url));
  const id = await daemons.setAlarm();
  const request = await model.next();
  await daemons.fire(id, 'the turn is reported started', ({ reached }) => reached === 'turn_started');
  const [fire] = await daemons.fires(id);
  assert.equal(fire!.turn!.ok, undefined);
  await daemons.closeChronos();
  request.answer('done while chronosd was down');
  await settledTurns(neo, fire!.turn!.conversation_id!);
  await daemons.openChronos();
  assert.equal((await daemons.finished(id)).turn?.ok, true);
});

test('a machine whose token is replaced reports under the new one at once, and under the old one for a while', async (t) => {
  const daemons = await openChronosdWithRouter(t);
  const model = pausedModel();
  const neo = await startedNeo(t, { model, config: { chronosUrl: daemons.chronosUrl } });
  await daemons.put(USER, remoteNeo(neo.url));
  const id = await daemons.setAlarm();
  const request = await model.next();
  const rotated = await daemons.admin('POST', `/${USER}/rotate-token`);
  assert.equal(rotated.status, 200, rotated.text);
  assert.notEqual(rotated.json.data.token, TOKEN);
  request.answer('under the old token');
  assert.equal((await daemons.finished(id)).turn?.ok, true);
});

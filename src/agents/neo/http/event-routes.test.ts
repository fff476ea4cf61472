import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { turnEventSchemas } from '../../../wire/turn.ts';
import type { NeoModel } from '../model.ts';
import {
  accepted,
  ask,
  errorOf,
  pausedModel,
  readEvents,
  settledTurns,
  startedNeo,
  TOKEN,
} from '../testing/workbench.ts';

test('the event stream contains a turn from its acceptance to its end, and can be resumed', async (t) => {
  const model = pausedModel();
  const neo = await startedNeo(t, { model });
  const live = await readEvents(t, neo, '?conversation_id=c');
  const { turn_id } = await accepted(neo, { message: 'hi', conversation_id: 'c' });
  await accepted(neo, { message: 'hi', conversation_id: 'other' });
  const held = await model.next();
  held.request.onText('Good ');
  await live.next(({ event }) => event === 'say');
  held.request.onText('morn');
  held.answer('ing');
  await live.next(({ data }) => data.status === 'done');
  for (const { event, data } of live.received) {
    turnEventSchemas[event as keyof typeof turnEventSchemas].parse(data);
    assert.equal(data.turn_id, turn_id);
  }
  const statuses = live.received.filter(({ event }) => event === 'turn').map(({ data }) => data.status);
  assert.deepEqual(statuses, ['queued', 'running', 'done']);
  const replyOf = (events: typeof live.received) =>
    events
      .filter(({ event }) => event === 'say')
      .reduce((reply, { data }) => reply.slice(0, data.offset as number) + data.text, '');
  assert.equal(replyOf(live.received), 'Good morning');
  const ids = live.received.map(({ id }) => Number(id));
  assert.deepEqual(
    ids,
    [...ids].sort((one, other) => one - other),
  );

  for (const from of live.received) {
    const seen = live.received.filter(({ id }) => Number(id) <= Number(from.id));
    const back = await readEvents(t, neo, '?conversation_id=c', { 'last-event-id': from.id! });
    if (seen.length < live.received.length) await back.next(({ data }) => data.status === 'done');
    assert.equal(replyOf([...seen, ...back.received]), 'Good morning');
    const again = await readEvents(t, neo, `?conversation_id=c&last_event_id=${from.id}`);
    if (seen.length < live.received.length) await again.next(({ data }) => data.status === 'done');
    assert.deepEqual(again.received, back.received);
    back.stop();
    again.stop();
  }
  (await model.next()).answer('');
});

test('a reader may choose types of events; an unknown one is refused', async (t) => {
  const neo = await startedNeo(t);
  const turns = await readEvents(t, neo, '?types=turn');
  await accepted(neo, { message: 'hi', conversation_id: 'c' });
  await turns.next(({ data }) => data.status === 'done');
  assert.deepEqual([...new Set(turns.received.map(({ event }) => event))], ['turn']);
  const unknown = await ask(neo, '/events?types=turn,song');
  assert.match(errorOf(unknown).message, /^types must be types of turn, .*, separated by commas \(got "turn,song"\)$/);
});

test('an id that no event has is refused with its name and value, in the address as in the header', async (t) => {
  const neo = await startedNeo(t);
  const right = 'must be the id of an earlier event';
  const inHeader = await ask(neo, '/events', { headers: { 'last-event-id': 'abc' } });
  assert.deepEqual(errorOf(inHeader), {
    status: 400,
    code: 'invalid_request',
    message: `Last-Event-ID ${right} (got "abc")`,
  });
  const inAddress = await ask(neo, '/events?last_event_id=-1');
  assert.equal(errorOf(inAddress).message, `last_event_id ${right} (got "-1")`);
});

test('event ids keep growing after a restart, and a reader resumes across it', async (t) => {
  const dataDir = temporaryFolder(t);
  const neo = await startedNeo(t, { dataDir });
  await accepted(neo, { message: 'one', conversation_id: 'c' });
  await settledTurns(neo, 'c');
  const live = await readEvents(t, neo, '?last_event_id=0');
  const last = await live.next(({ data }) => data.status === 'done');
  await neo.close();
  await live.ended;
  const again = await startedNeo(t, { dataDir });
  await accepted(again, { message: 'two', conversation_id: 'c' });
  const back = await readEvents(t, again, '', { 'last-event-id': last.id! });
  await back.next(({ data }) => data.status === 'done');
  assert.ok(back.received.every(({ id }) => Number(id) > Number(last.id)));
  assert.equal(back.received[0]?.data.status, 'queued');
});

test('a reader that does not read costs nothing and gets everything when it continues', async (t) => {
  const reply = 'x'.repeat(200_000);
  const TURNS = 60;
  const model: NeoModel = {
    name: 'long',
    generate({ onText }) {
      onText(reply);
      return Promise.resolve({ text: reply, model: 'long' });
    },
  };
  const neo = await startedNeo(t, { model });
  for (let n = 0; n < TURNS; n++) await accepted(neo, { message: 'x', conversation_id: `c${n}` });
  for (let n = 0; n < TURNS; n++) await settledTurns(neo, `c${n}`);
  const socket = connect(neo.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.pause();
  socket.write(`GET /events?last_event_id=0 HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`);
  await accepted(neo, { message: 'meanwhile', conversation_id: 'm' });
  const [last] = await settledTurns(neo, 'm');
  let bytes = 0;
  let tail = '';
  socket.setEncoding('utf8').resume();
  for await (const chunk of socket as AsyncIterable<string>) {
    bytes += chunk.length;
    tail = (tail + chunk).slice(-1000);
    if (tail.includes(`"turn_id":"${last!.id}","status":"done"`)) break;
  }
  assert.ok(bytes > (TURNS + 1) * reply.length);
});

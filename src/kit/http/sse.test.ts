import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../clock/clock.ts';
import { silentLogger } from '../log/log.ts';
import { type RunningServer, startServer } from './server.ts';
import { type EventStream, type EventStreamOptions, formatEvent, openEventStream } from './sse.ts';

async function streaming(t: TestContext, options: Partial<EventStreamOptions> = {}) {
  const opened = Promise.withResolvers<EventStream>();
  const server = await startServer({
    name: 'testd',
    version: '0',
    host: '127.0.0.1',
    port: 0,
    log: silentLogger,
    clock: systemClock,
    routes(app) {
      app.get('/events', (c) => {
        const stream = openEventStream(c, { clock: systemClock, ...options });
        opened.resolve(stream);
        return stream.response;
      });
      app.get('/throws', (c) => {
        openEventStream(c, { clock: systemClock });
        throw new Error('a secret');
      });
    },
  });
  t.after(() => server.close());
  return { server, opened: opened.promise };
}

/** Connects a reader and collects what it gets. */
async function reader(server: RunningServer, headers: Record<string, string> = {}) {
  const request = get(`${server.url}/events`, { headers, agent: false });
  const [response] = await once(request, 'response');
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  response.on('error', () => {});
  const until = async (wanted: string) => {
    while (!text.includes(wanted)) await once(response, 'data');
  };
  return { response, request, until, text: () => text };
}

test('no line of the data of an event can be parsed as a field', () => {
  assert.equal(formatEvent({ data: 'a' }), 'data: a\n\n');
  assert.equal(
    formatEvent({ event: 'say\ndata: x', id: '7\r\n\0', data: 'one\r\ntwo\rthree\n\nid: 9' }),
    'id: 7\nevent: saydata: x\ndata: one\ndata: two\ndata: three\ndata: \ndata: id: 9\n\n',
  );
});

test('events and heartbeats reach the reader, which sends its last event id', async (t) => {
  const beats: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    after(_, callback) {
      beats.push(callback);
      return () => {};
    },
  };
  const { server, opened } = await streaming(t, { clock });
  const client = await reader(server, { 'last-event-id': '41' });
  assert.equal(client.response.headers['content-type'], 'text/event-stream; charset=utf-8');
  assert.equal(client.response.headers['cache-control'], 'no-store');
  const stream = await opened;
  assert.equal(stream.lastEventId, '41');
  assert.equal(stream.send({ id: '42', event: 'say', data: 'Grüße' }), true);
  await client.until('data: Grüße\n\n');
  beats.shift()!();
  await client.until(': keep-alive\n\n');
  assert.equal(beats.length, 1);
  const ended = once(client.response, 'end');
  stream.close();
  stream.close();
  await ended;
  assert.equal(stream.send({ data: 'late' }), false);
  assert.equal(client.text(), 'retry: 1000\n\nid: 42\nevent: say\ndata: Grüße\n\n: keep-alive\n\n');
});

test('a reader that disconnects ends the stream', async (t) => {
  const { server, opened } = await streaming(t);
  const client = await reader(server);
  const stream = await opened;
  const over = once(stream.closed, 'abort');
  client.request.destroy();
  await over;
  assert.equal(stream.send({ data: 'nobody' }), false);
});

test('a reader that does not read is disconnected at the buffer limit', async (t) => {
  const { server, opened } = await streaming(t, { maxBufferedBytes: 64 * 1024 });
  const socket = connect(server.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  socket.pause();
  socket.write('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const stream = await opened;
  let sent = 0;
  while (stream.send({ data: 'x'.repeat(10_000) })) sent++;
  assert.ok(stream.closed.aborted);
  assert.ok(sent < 10_000, 'the buffer limit is kept');
});

test('a drain ends open streams', async (t) => {
  const { server, opened } = await streaming(t);
  const client = await reader(server);
  const stream = await opened;
  const ended = once(client.response, 'end');
  await server.close();
  await ended;
  assert.ok(stream.closed.aborted);
});

test('an error of the handler after the stream began closes the connection without an event', async (t) => {
  const { server } = await streaming(t);
  let text = '';
  await assert.rejects(async () => {
    const response = await fetch(`${server.url}/throws`);
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
  });
  assert.doesNotMatch(text, /secret|Error/);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
});

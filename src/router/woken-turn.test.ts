import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { listening } from '../../test/support/temporary.ts';
import { systemClock } from '../kit/clock/clock.ts';
import { Agent } from '../kit/http/dispatchers.ts';
import { okEnvelope } from '../wire/envelope.ts';
import { DaemonNews, turnOfDaemon } from './woken-turn.ts';

const TURN = { conversation_id: 'c', turn_id: 't' };

/** A daemon with one turn; `streams` is `undefined` for one without events. */
async function daemonOf(t: TestContext, streams: Set<ServerResponse> | undefined) {
  const daemon = { status: 'running', queries: 0, eventUrls: [] as string[] };
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/events')) {
      daemon.eventUrls.push(request.url);
      if (!streams) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': here\n\n');
      streams.add(response);
      response.on('close', () => streams.delete(response));
      return;
    }
    daemon.queries++;
    const view = { ...{ id: 't', conversation_id: 'c', origin: 'chronos', message: 'm', attempts: 1 } };
    const instants = { created_at: '2026-06-15T08:10:00.000Z' };
    response.setHeader('content-type', 'application/json');
    response.end(okEnvelope({ ...view, ...instants, status: daemon.status, reply: 'Good morning' }));
  });
  const url = await listening(t, server);
  const dispatcher = new Agent();
  t.after(() => dispatcher.destroy());
  const news = new DaemonNews(systemClock);
  const follow = (signal: AbortSignal) =>
    turnOfDaemon({ news, dispatcher, clock: systemClock, url, token: 'token', accepted: TURN }).outcome(signal);
  return { daemon, follow };
}

const END = { known: 'end', status: 'done', reply: 'Good morning', error: undefined, model: undefined };

test('the end of a turn is known within 200 ms of its event, over one stream for all turns, without polling', async (t) => {
  const streams = new Set<ServerResponse>();
  const { daemon, follow } = await daemonOf(t, streams);
  const signal = AbortSignal.timeout(20_000);
  const outcomes = [follow(signal), follow(signal)];
  await eventually('a stream', () => streams.size === 1 && daemon.queries >= 4);
  assert.deepEqual(daemon.eventUrls, ['/events?types=turn']);
  const before = daemon.queries;
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(daemon.queries, before);
  daemon.status = 'done';
  const began = Date.now();
  const data = { ...TURN, status: 'done', attempts: 1, origin: 'chronos' };
  for (const stream of streams) stream.write(`id: 1\nevent: turn\ndata: ${JSON.stringify(data)}\n\n`);
  assert.deepEqual(await Promise.all(outcomes), [END, END]);
  assert.ok(Date.now() - began < 200, `${Date.now() - began} ms`);
  await eventually('the stream is closed', () => streams.size === 0);
});

test('a daemon without events is queried now and then', async (t) => {
  const { daemon, follow } = await daemonOf(t, undefined);
  const outcome = follow(AbortSignal.timeout(30_000));
  await eventually('the first queries', () => daemon.queries >= 2);
  daemon.status = 'done';
  assert.deepEqual(await outcome, END);
  assert.ok(daemon.queries <= 4, `${daemon.queries} queries`);
});

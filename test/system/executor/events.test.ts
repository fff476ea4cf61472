import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createExecutorClient, type EventOptions } from '../../../src/executor/client.ts';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { startExecutorServer } from '../../../src/executor/http/server.ts';
import { intentFeedSource } from '../../../src/executor/journal/intent-changes.ts';
import type { Journal } from '../../../src/executor/journal/journal.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { EventFeed } from '../../../src/kit/http/event-feed.ts';
import { FeedStreams } from '../../../src/kit/http/feed-stream.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { IntentEvent } from '../../../src/wire/intent-event.ts';
import { asOperator } from '../../support/cluster/approval.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { callerOf, executorSettings, readOnlyPlan, startedExecutor, TOKEN, transfer } from './executor-bench.ts';

/** Follows a user's events and collects them; resolves when the first connection is open. */
async function listen(t: TestContext, url: string, userId: string, options: Partial<EventOptions> = {}, token = TOKEN) {
  const found: IntentEvent[] = [];
  const ended = new AbortController();
  t.after(() => ended.abort());
  const opened = Promise.withResolvers<void>();
  const states: string[] = [];
  const onConnection: EventOptions['onConnection'] = ({ state }) => {
    states.push(state);
    opened.resolve();
  };
  const reading = (async () => {
    const follow = { signal: ended.signal, onConnection, ...options };
    for await (const event of createExecutorClient({ url, token, userId }).events(follow)) found.push(event);
  })();
  await Promise.race([opened.promise, reading]);
  const types = () => found.map(({ type }) => type);
  return {
    ...{ found, types, states },
    until: (type: string, count = 1) =>
      eventually(`${type} among ${types()}`, () => types().filter((each) => each === type).length >= count, 15_000),
  };
}

/** Opens a stream without a client. @returns its events so far, as `type intent`, and the cursor of its beginning */
async function openPlain(t: TestContext, url: string, headers: Record<string, string>) {
  const over = new AbortController();
  t.after(() => over.abort());
  const response = await fetch(`${url}/events`, { headers, signal: over.signal });
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  })().catch(() => {});
  const cursor = () => /^id: (.*)\nevent: ready$/m.exec(text)?.[1];
  await eventually('the beginning', () => cursor() !== undefined || response.status !== 200);
  const events = () =>
    [...text.matchAll(/^data: (\{"type".*)$/gm)].map(([, data]) => {
      const { type, intent_id } = JSON.parse(data!) as IntentEvent;
      return `${type} ${intent_id ?? ''}`.trim();
    });
  return { response, events, cursor: cursor()!, ended: reading, close: () => over.abort() };
}

test('a stream has the events of all intents of its user in order, and of no other', async (t) => {
  const executor = await startedExecutor(t, temporaryFolder(t));
  const ada = callerOf(executor, 'ada');
  const own = await listen(t, executor.url, 'ada');
  const other = await listen(t, executor.url, 'eve');
  const id = await ada.submit({ intent: transfer() });
  const one = await listen(t, executor.url, 'ada', { intentId: id });
  await ada.waiting(id);
  await ada.answer(id, 'pay');
  await own.until('intent.attest');
  assert.deepEqual(own.types(), [
    ...['intent.accepted', 'intent.planned', 'gate.invoked', 'gate.answered'],
    ...['step.started', 'step.finished', 'intent.attest'],
  ]);
  assert.ok(own.found.every(({ intent_id, at }) => intent_id === id && Date.parse(at!) > 0));
  assert.deepEqual([own.found[2]?.node_id, own.found[0]?.node_id], ['pay', undefined]);
  const second = await ada.submit({ intent: readOnlyPlan() });
  await own.until('intent.attest', 2);
  assert.equal(own.found.at(-1)?.intent_id, second);
  await one.until('intent.attest');
  assert.ok(one.found.every(({ intent_id }) => intent_id === id));
  const ended = await listen(t, executor.url, 'ada', { intentId: id });
  await ended.until('intent.attest');
  assert.deepEqual(ended.found, [{ type: 'intent.attest', intent_id: id }], 'it begins with the present state');
  assert.deepEqual(other.types(), []);
});

test('a bad credential is refused, and so are the events of another user', async (t) => {
  const executor = await startedExecutor(t, temporaryFolder(t));
  await assert.rejects(listen(t, executor.url, 'ada', {}, 'a-wrong-token-of-someone'), { code: 'unauthorized' });
  const submitter = await asOperator(executor.url, 'POST', '/submitters', { user: 'ada', name: 'laptop' });
  const { token } = submitter.data as { token: string };
  await assert.rejects(listen(t, executor.url, 'eve', {}, token), { code: 'forbidden' });
  const own = await listen(t, executor.url, 'ada', {}, token);
  const id = await callerOf(executor, 'ada').submit({ intent: readOnlyPlan() });
  await own.until('intent.attest');
  await assert.rejects(listen(t, executor.url, 'eve', { intentId: id }), { code: 'not_found' });
});

test('a stream resumes at its last event over a restart; an unknown position resets', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startedExecutor(t, folder);
  const ada = callerOf(first, 'ada');
  const before = await ada.submit({ intent: readOnlyPlan() });
  await ada.until(before, 'completed');
  const stream = await openPlain(t, first.url, ada.headers);
  const id = await ada.submit({ intent: transfer() });
  await eventually('the question', () => stream.events().includes(`gate.invoked ${id}`));
  await first.close();
  await stream.ended;

  const second = await startedExecutor(t, folder);
  const again = callerOf(second, 'ada');
  await again.waiting(id);
  await again.answer(id, 'pay');
  await again.until(id, 'completed');
  const headers = { ...again.headers, 'last-event-id': stream.cursor };
  const resumed = await openPlain(t, second.url, headers);
  await eventually('the end', () => resumed.events().includes(`intent.attest ${id}`));
  const events = resumed.events();
  const own = events.filter((event) => event.endsWith(id)).map((event) => event.split(' ')[0]);
  assert.deepEqual(own.slice(0, 4), ['intent.accepted', 'intent.planned', 'gate.invoked', 'gate.answered']);
  assert.equal(own.at(-1), 'intent.attest');
  assert.equal(new Set(events).size, events.length, 'none is repeated');
  const live = await again.submit({ intent: readOnlyPlan() });
  await eventually('a new event', () => resumed.events().includes(`intent.attest ${live}`));

  const lost = await openPlain(t, second.url, { ...again.headers, 'last-event-id': 'elsewhere' });
  await eventually('the reset', () => lost.events().includes('reset'));
  const eve = await openPlain(t, second.url, { ...callerOf(second, 'eve').headers, 'last-event-id': stream.cursor });
  assert.deepEqual(eve.events(), []);
});

test('the streams of a user and of all users are limited, with a clear error', async (t) => {
  const executor = await startedExecutor(t, temporaryFolder(t), {
    EXECUTOR_EVENT_STREAMS_PER_USER: '2',
    EXECUTOR_EVENT_STREAMS: '3',
  });
  const [ada, eve] = [callerOf(executor, 'ada'), callerOf(executor, 'eve')];
  const one = await openPlain(t, executor.url, ada.headers);
  await openPlain(t, executor.url, ada.headers);
  const { status, error } = await ada.call('GET', '/events');
  assert.deepEqual([status, error.code, error.retryable], [429, 'rate_limited', true]);
  assert.match(error.message, /^you have 2 open streams of events.*EXECUTOR_EVENT_STREAMS_PER_USER/);
  await openPlain(t, executor.url, eve.headers);
  assert.match((await eve.call('GET', '/events')).error.message, /all owners have 3 .*\(EXECUTOR_EVENT_STREAMS\)/);
  one.close();
  await eventually('a free place', async () => {
    const next = await openPlain(t, executor.url, ada.headers);
    return next.response.status === 200;
  });
});

/** The executor's server with events that the test makes. */
async function serverOf(t: TestContext, clock = systemClock) {
  let report: Parameters<Journal['onChange']>[0] = () => {};
  const submitter = { isRevoked: false, view: { id: 's', user: 'ada', name: 'laptop', created_at: '' } };
  const figures = { open: 0, sent: 0 };
  const source = intentFeedSource({
    onChange(listener) {
      report = listener;
      return () => {};
    },
    changesSince: () => [],
  });
  const feed = new EventFeed({ source, clock, name: 'the executor' });
  const streams = new FeedStreams({
    ...{ feed, clock, figures, limits: { perOwner: 8, inAll: 8 } },
    ...{ settings: { perOwner: 'A', inAll: 'B' }, refusal: (message: string) => new Error(message) },
  });
  const server = await startExecutorServer({
    config: { ...parseExecutorConfig(executorSettings(temporaryFolder(t))), host: '127.0.0.1', port: 0 },
    ...{ rail: {} as never, publicKey: '', tools: { failure: () => undefined }, log: silentLogger, drainMs: 100 },
    ...{ streams, clock: systemClock },
    journal: { submitters: { holder: () => (submitter.isRevoked ? undefined : submitter.view) } } as never,
  });
  t.after(() => {
    feed.close();
    return server.close();
  });
  return { server, figures, submitter, report: (...given: Parameters<typeof report>) => report(...given) };
}

test('a reader that does not read is disconnected', async (t) => {
  const { server, figures, report } = await serverOf(t);
  const socket = connect(server.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.pause();
  socket.write(
    `GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TOKEN}\r\nx-matrix-user: ada\r\n\r\n`,
  );
  await eventually('an open stream', () => figures.open === 1);
  const entry = { kind: 'gate.expired', body: { at: new Date().toISOString(), node_id: 'n'.repeat(4000) } } as never;
  let seq = 0;
  await eventually('the end of the stream', () => {
    seq += 100;
    report({ row: { id: 'i', user: 'ada' }, head: { seq } } as never, Array<never>(100).fill(entry));
    return figures.open === 0;
  });
});

test('the stream of a revoked token ends', async (t) => {
  const clock = new ManualClock();
  const { server, figures, submitter } = await serverOf(t, clock);
  const stream = await openPlain(t, server.url, { authorization: 'Bearer its-token' });
  await clock.advance(16_000);
  assert.equal(figures.open, 1);
  submitter.isRevoked = true;
  await clock.advance(16_000);
  await stream.ended;
  assert.equal(figures.open, 0);
});

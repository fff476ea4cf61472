/** Unmodified clients of MCP Events: the AI SDK by webhook, the official client by poll and by stream. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import {
  experimental_createMCPClient as createMCPClient,
  experimental_createMCPEventWebhook as createWebhook,
  type Experimental_MCPEventStore as EventStore,
  type Experimental_MCPEventSubscription as StoredSubscription,
} from '@ai-sdk/mcp';
import { getRequestListener } from '@hono/node-server';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { eventually } from '../../support/eventually.ts';
import { listening, temporaryFolder } from '../../support/temporary.ts';
import { callerOf, startedExecutor, TOKEN, transfer } from '../executor/executor-bench.ts';
import { type EventsBench, openEventsBench } from './mcp-events-bench.ts';

const EXTENSION = 'io.modelcontextprotocol/events';

test('the client of the AI SDK subscribes, receives, refreshes and unsubscribes', async (t) => {
  const subscriptions = new Map<string, StoredSubscription>();
  const store: EventStore = {
    get: async (key) => subscriptions.get(key),
    getById: async (id) => [...subscriptions.values()].find((one) => one.id === id),
    set: async (one) => void subscriptions.set(one.key, one),
    update: async (key, patch) => void subscriptions.set(key, { ...subscriptions.get(key)!, ...patch }),
    delete: async (key) => void subscriptions.delete(key),
  };
  const seen: { eventId: string; data: Record<string, unknown> }[] = [];
  const errors: unknown[] = [];
  const webhook = createWebhook({
    store,
    onEvent: async ({ event }) => void seen.push(event),
    onError: (error) => errors.push(error),
  });
  const address = await listening(t, createServer(getRequestListener((request) => webhook(request))));
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: new URL(address).host });
  const headers = { authorization: `Bearer ${await bench.token()}` };
  const client = await createMCPClient({
    transport: { type: 'http', url: bench.resource('chronos'), headers },
    experimental_events: { store },
  });
  t.after(() => client.close());
  const { events } = await client.experimental_events.list();
  assert.deepEqual(
    events.map(({ name, delivery }) => [name, delivery.length]),
    [
      ['alarm.due', 3],
      ['alarm.missed', 3],
      ['turn.finished', 3],
      ['turn.failed', 3],
    ],
  );
  const delivery = { mode: 'webhook', url: `${address}/events`, allowInsecureLocalhost: true } as const;
  const { id } = await client.experimental_events.subscribe({ name: 'alarm.due', delivery });
  const alarm = await bench.set('water the violets');
  await eventually('the event has arrived', () => seen.length === 1);
  assert.deepEqual([seen[0]!.data.alarm_id, seen[0]!.data.message], [alarm, 'water the violets']);
  await eventually('its cursor is kept', () => subscriptions.values().next().value?.cursor?.endsWith('.1') === true);
  await client.experimental_events.refresh({ id });
  await bench.wake('f2');
  await eventually('the next one has too', () => seen.length === 2);
  await client.experimental_events.unsubscribe({ id });
  assert.equal((await bench.wake('f3')).status, 404);
  assert.equal(subscriptions.size, 0);
  assert.deepEqual(errors, []);
});

const occurrenceSchema = z.looseObject({ eventId: z.string(), name: z.string(), data: z.looseObject({}) });
const pollSchema = z.looseObject({
  events: z.array(occurrenceSchema),
  cursor: z.string(),
  truncated: z.boolean(),
  hasMore: z.boolean(),
  nextPollMs: z.number(),
});

type Mode = 'legacy' | { pin: string };
async function official(t: TestContext, bench: EventsBench, mode: Mode, endpoint = 'chronos') {
  const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${await bench.token({}, endpoint)}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(bench.resource(endpoint)), { requestInit }));
  t.after(() => client.close());
  return client;
}

for (const mode of ['legacy', { pin: '2026-07-28' }] as const) {
  const revision = typeof mode === 'string' ? '2025-11-25' : mode.pin;

  test(`the official client polls (${revision})`, async (t) => {
    const bench = await openEventsBench(t);
    const client = await official(t, bench, mode);
    // It knows no capability of drafts, for which the AI SDK looks.
    assert.deepEqual(client.getServerCapabilities()?.extensions, { [EXTENSION]: {} });
    const poll = (cursor: string | null, more: object = {}) =>
      client.request({ method: 'events/poll', params: { name: 'alarm.due', cursor, ...more } }, pollSchema);
    const first = await poll(null);
    assert.deepEqual([first.events, first.truncated, first.hasMore], [[], false, false]);
    for (let n = 1; n <= 5; n++) assert.equal((await bench.wake(`f${n}`)).status, 200, 'somebody reads them');
    const some = await poll(first.cursor, { maxEvents: 3 });
    assert.equal(some.hasMore, true);
    const rest = await poll(some.cursor);
    assert.deepEqual(
      [...some.events, ...rest.events].map(({ eventId }) => eventId),
      ['f1:due', 'f2:due', 'f3:due', 'f4:due', 'f5:due'],
    );
    const none = await poll(rest.cursor);
    assert.deepEqual([none.events, none.hasMore], [[], false]);
    assert.equal((await poll(first.cursor)).events.length, 5, 'a cursor can be used again');
    const young = await poll(first.cursor, { maxAgeMs: 0 });
    assert.deepEqual([young.events, young.truncated], [[], true]);
  });

  test(`the official client has a stream (${revision})`, async (t) => {
    const bench = await openEventsBench(t);
    const seen: { method: string; params: Record<string, unknown> }[] = [];
    const of = (method: string) => seen.filter((one) => one.method === `notifications/events/${method}`);
    const open = async (cursor: string | null) => {
      const client = await official(t, bench, mode);
      client.fallbackNotificationHandler = async (notification) => {
        seen.push(notification as (typeof seen)[number]);
      };
      const params = { name: 'alarm.due', cursor };
      client.request({ method: 'events/stream', params }, z.looseObject({})).catch(() => {});
      return client;
    };
    const first = await open(null);
    await eventually('it is active', () => of('active').length === 1);
    await bench.wake('f1');
    await bench.wake('f2', { payload: { big: 7 } });
    await eventually('both have arrived', () => of('event').length === 2);
    const [one, two] = of('event').map(({ params }) => params);
    assert.deepEqual([one!.eventId, two!.eventId], ['f1:due', 'f2:due']);
    const meta = (two!._meta ?? {}) as Record<string, unknown>;
    assert.ok('io.modelcontextprotocol/subscriptionId' in meta);
    await first.close();
    await bench.wake('f3');
    await open(String(one!.cursor));
    await eventually('it resumes', () => of('event').length === 4);
    assert.deepEqual(
      of('event').map(({ params }) => params.eventId),
      ['f1:due', 'f2:due', 'f2:due', 'f3:due'],
    );
  });
}

test('a question of an intent reaches a reader of intents', async (t) => {
  const executor = await startedExecutor(t, temporaryFolder(t));
  const bench = await openEventsBench(t, { ROUTER_EXECUTOR_URL: executor.url, ROUTER_EXECUTOR_TOKEN: TOKEN });
  const client = await official(t, bench, 'legacy', 'intents');
  const poll = (cursor: string | null) =>
    client.request({ method: 'events/poll', params: { name: 'intent.waiting', cursor } }, pollSchema);
  const { cursor } = await poll(null);
  const intentId = await callerOf(executor, 'ada').submit({ intent: transfer() });
  await eventually('it is reported', async () => {
    const { events } = await poll(cursor);
    return events.length === 1 && events[0]!.data.intent_id === intentId;
  });
});

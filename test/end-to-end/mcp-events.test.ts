/** Alarms that wait for the events of an MCP server, from the alarm to the turn: by poll and by webhook. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  experimental_createMCPClient as createMCPClient,
  experimental_createMCPEventWebhook as createWebhook,
  type Experimental_MCPEventStore as EventStore,
  type Experimental_MCPEventSubscription as StoredSubscription,
} from '@ai-sdk/mcp';
import { getRequestListener } from '@hono/node-server';
import { webhookSigner } from '../../src/kit/identity/webhook-signature.ts';
import { eventsOf, fixtureMachine } from '../../src/router/testing/bench.ts';
import { eventually } from '../support/eventually.ts';
import { type EventServer, startEventServer } from '../support/stand-ins/event-server.ts';
import { atEnd } from '../support/temporary.ts';
import { openChronosdWithRouter, USER } from './chronosd-with-router.ts';

/** The address that servers reach: an operator's proxy in front of chronosd. */
async function startFront(t: TestContext, target: () => string) {
  const statuses: number[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const { 'content-length': _, host: __, connection: ___, ...headers } = request.headers as Record<string, string>;
    const answer = await fetch(new URL(request.url!, target()), { method: 'POST', headers, body }).catch(
      () => undefined,
    );
    statuses.push(answer?.status ?? 502);
    response.writeHead(answer?.status ?? 502, { 'content-type': 'application/json' }).end(await answer?.text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => server.close());
  return { statuses, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function open(t: TestContext, server: Pick<EventServer, 'url'>, { isPublic = true } = {}) {
  const front = await startFront(t, () => daemons.chronosUrl);
  const daemons = await openChronosdWithRouter(t, process.env, isPublic ? { CHRONOS_PUBLIC_URL: front.url } : {});
  const manifest = join(daemons.folder, 'agent.json');
  const servers = [{ alias: 'desk', transport: 'http', url: server.url }];
  writeFileSync(manifest, JSON.stringify({ schema_version: '1', agent: 'a', allowed_side_effects: ['read'], servers }));
  await daemons.put(USER, fixtureMachine(daemons.work, undefined, {}, { NEO_MANIFEST: manifest }));
  const set = async (event: object = {}) => {
    const asked = {
      source: 'mcp',
      server: 'desk',
      name: 'ticket.created',
      repeat: 'always',
      ...event,
    };
    return (await daemons.client().createAlarm({ wake_message: 'answer', event: asked as never })).id;
  };
  /** The data of the events that the turns have had, in order. */
  const woken = () =>
    eventsOf(daemons.work, 'chat').flatMap(({ body }) => {
      const { payload } = JSON.parse(Buffer.from(body!, 'base64').toString());
      return (payload.events as { data: Record<string, unknown> }[]).map(({ data }) => data);
    });
  return { ...daemons, daemons, front, set, woken };
}

const subscribed = (server: EventServer) => eventually('it has subscribed', () => server.subscriptions.size === 1);

const idsOf = (woken: readonly Record<string, unknown>[]) => woken.map(({ eventId }) => eventId);

for (const delivery of ['poll', 'webhook'] as const)
  test(`each event of a server becomes one turn, in order (${delivery})`, async (t) => {
    const server = await startEventServer(t);
    const { set, woken, daemons } = await open(t, server);
    await server.emit('before', {});
    const id = await set({ delivery, ...(delivery === 'poll' && { look_every: 'PT1S' }) });
    if (delivery === 'webhook') await subscribed(server);
    for (let n = 0; n < 5; n++)
      await server.emit(`t${n}`, { n, title: 'größer \u{1F514}', exact: 12345678901234567890n.toString() });
    await eventually('five events have woken', () => woken().length === 5);
    assert.deepEqual(idsOf(woken()), ['t0', 't1', 't2', 't3', 't4']);
    assert.deepEqual(woken()[0]!.data, { n: 0, title: 'größer \u{1F514}', exact: '12345678901234567890' });
    const view = await daemons.client().getAlarm(id);
    assert.deepEqual([view.status, view.last_error, view.hook], ['active', undefined, undefined]);
    assert.equal(server.calls.includes(delivery === 'poll' ? 'subscribe' : 'poll'), false);
    assert.equal(JSON.stringify(view).includes('whsec_'), false);
  });

test('a subscription is renewed, survives a restart of either side, and redelivers nothing twice', async (t) => {
  const server = await startEventServer(t, { ttlMs: 11_000 });
  const { set, woken, daemons } = await open(t, server);
  await set({ delivery: 'webhook' });
  await subscribed(server);
  await server.emit('one', {});
  const { until } = server.only();
  await eventually('it is renewed before its end', () => server.only().until > until);
  // The server has forgotten it, and something happens meanwhile.
  const [lost] = [server.only()];
  server.subscriptions.clear();
  await server.emit('two', {});
  await daemons.closeChronos();
  await server.emit('three', {});
  await daemons.openChronos();
  await eventually('it has subscribed again, from where it was', () => woken().length === 3);
  assert.deepEqual(idsOf(woken()), ['one', 'two', 'three']);
  for (const event of server.events)
    assert.deepEqual(await (await server.post({ ...lost!, ...server.only() }, event)).json(), {
      ok: true,
      data: { recorded: 0, known: 1 },
    });
});

test('events that a server has deleted before it is subscribed to again are a gap', async (t) => {
  const server = await startEventServer(t, { ttlMs: 11_000 });
  const { set, woken } = await open(t, server);
  await set({ delivery: 'webhook' });
  await subscribed(server);
  await server.emit('one', {});
  await eventually('the first has woken', () => woken().length === 1);
  server.subscriptions.clear();
  server.state.oldest = 2;
  await server.emit('deleted', {});
  await eventually('the gap has woken', () => woken().length === 2);
  await server.emit('two', {});
  await eventually('the next has woken', () => woken().length === 3);
  assert.deepEqual(
    woken().map(({ eventId, truncated }) => [eventId, truncated]),
    [
      ['one', undefined],
      [undefined, true],
      ['two', undefined],
    ],
  );
});

test('a filter, a gap, an event of 256 KiB, a wrong signature, and the end of a subscription', async (t) => {
  const server = await startEventServer(t);
  const { set, woken, daemons, front } = await open(t, server);
  const id = await set({ delivery: 'webhook', filter: { pointer: '/data/level', equals: 'high' } });
  await subscribed(server);
  await server.emit('low', { level: 'low' });
  await server.emit('high', { level: 'high' });
  const to = server.only();
  assert.equal((await server.post(to, { type: 'gap', cursor: '7', truncated: true })).status, 200);
  const large = { eventId: 'large', name: 'ticket.created', timestamp: new Date().toISOString() };
  const body = (characters: number) => ({ ...large, data: { level: 'high', text: 'x'.repeat(characters) } });
  assert.equal((await server.post(to, body(255_000))).status, 200);
  assert.equal((await server.post(to, body(300_000))).status, 413);
  assert.equal(
    (await server.post({ ...to, secret: `whsec_${randomBytes(24).toString('base64')}` }, body(1))).status,
    401,
  );
  await eventually('three have woken', () => woken().length === 3);
  assert.deepEqual(
    woken().map(({ eventId, truncated, bytes }) => [eventId, truncated, typeof bytes]),
    [
      ['high', undefined, 'undefined'],
      [undefined, true, 'undefined'],
      ['large', undefined, 'number'],
    ],
  );
  const refused = await server.post(to, { hello: 'world' } as never);
  assert.match(await refused.text(), /must be an event of MCP Events, with eventId/);
  const error = { code: -32_012, message: 'your access has ended' };
  assert.equal((await server.post(to, { type: 'terminated', error })).status, 200);
  await eventually('its end has woken too', () => woken().length === 4);
  assert.deepEqual(woken()[3]!.error, error);
  await eventually('the alarm has ended', async () => (await daemons.client().getAlarm(id)).status === 'fired');
  await server.emit('later', { level: 'high' });
  assert.equal(front.statuses.at(-1), 410);
});

test('what cannot be subscribed to is refused when it is set, with the remedy', async (t) => {
  const server = await startEventServer(t, { delivery: ['poll'], capability: 'draft' });
  const { set } = await open(t, server);
  await assert.rejects(set({ delivery: 'webhook' }), /delivers ticket\.created by poll, not by webhook/);
  await assert.rejects(set({ delivery: 'webhook', look_every: 'PT1S' }), /look_every is for a server that is asked/);
  await assert.rejects(set({ delivery: 'webhook', name: 'other' }), /has no event other; it has ticket\.created/);
  const unreachable = await open(t, server, { isPublic: false });
  await assert.rejects(
    unreachable.set({ delivery: 'webhook' }),
    /event\.delivery "webhook" needs an address that the server reaches; set CHRONOS_PUBLIC_URL/,
  );
  await set();
});

test('only the secret proves an event or a challenge; what comes to a paused alarm wakes it later', async (t) => {
  const server = await startEventServer(t);
  const { set, daemons, front, woken } = await open(t, server);
  const id = await set({ delivery: 'webhook' });
  await subscribed(server);
  assert.deepEqual(front.statuses, [200]);
  // An attacker who knows the address, and not the secret, learns nothing from a challenge.
  const { url } = server.only();
  const sign = webhookSigner('another secret, of an attacker');
  const body = JSON.stringify({ type: 'verification', challenge: 'echo me' });
  const signed = sign({ id: 'msg_1', timestampSeconds: Date.now() / 1000, body });
  const answer = await fetch(url, { method: 'POST', headers: { ...signed }, body });
  assert.equal(answer.status, 401);
  assert.equal((await answer.text()).includes('echo me'), false);
  assert.equal((await server.post(server.only(), { type: 'verification', challenge: 'again' })).status, 200);
  await daemons.client().pauseAlarm(id);
  await server.emit('while paused', {});
  assert.deepEqual(woken(), []);
  await daemons.client().resumeAlarm(id);
  await eventually('it wakes when it is resumed', () => woken().length === 1);
});

test('the same server serves the client of the AI SDK', async (t) => {
  const server = await startEventServer(t, { capability: 'draft' });
  const subscriptions = new Map<string, StoredSubscription>();
  const store: EventStore = {
    get: async (key) => subscriptions.get(key),
    getById: async (id) => [...subscriptions.values()].find((one) => one.id === id),
    set: async (one) => void subscriptions.set(one.key, one),
    update: async (key, patch) => void subscriptions.set(key, { ...subscriptions.get(key)!, ...patch }),
    delete: async (key) => void subscriptions.delete(key),
  };
  const seen: string[] = [];
  const webhook = createWebhook({ store, onEvent: async ({ event }) => void seen.push(event.eventId) });
  const listener = createServer(getRequestListener((request) => webhook(request))).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  atEnd(t, () => listener.close());
  const client = await createMCPClient({
    transport: { type: 'http', url: server.url },
    experimental_events: { store },
  });
  atEnd(t, () => client.close());
  const { events } = await client.experimental_events.list();
  assert.deepEqual(
    events.map(({ name }) => name),
    ['ticket.created'],
  );
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/events`;
  await client.experimental_events.subscribe({
    name: 'ticket.created',
    delivery: { mode: 'webhook', url, allowInsecureLocalhost: true },
  });
  await server.emit('t1', {});
  assert.deepEqual(seen, ['t1']);
});

test('an edit to another event, or to another kind of source, takes nothing more from the earlier server', async (t) => {
  const server = await startEventServer(t);
  const { set, daemons, woken } = await open(t, server);
  const id = await set({ delivery: 'webhook' });
  await subscribed(server);
  const earlier = server.only();
  const event = { source: 'mcp', server: 'desk', name: 'ticket.created', repeat: 'always' } as const;
  const late = (n: number) => ({
    eventId: `late-${n}`,
    name: 'ticket.created',
    timestamp: new Date().toISOString(),
    data: {},
  });
  await daemons.client().patchAlarm(id, { event: { ...event, delivery: 'webhook', arguments: { level: 'high' } } });
  await eventually('it has subscribed anew', () => server.subscriptions.size === 2);
  assert.equal((await server.post(earlier, late(1))).status, 401);
  await daemons.client().patchAlarm(id, { event: { source: 'webhook', repeat: 'always' } });
  for (const one of server.subscriptions.values()) assert.equal((await server.post(one, late(2))).status, 401);
  assert.deepEqual(woken(), []);
});

const PYTHON = process.env.REVEILLE_TEST_PYTHON ?? 'python3';
const hasPythonServer = () => spawnSync(PYTHON, ['-c', 'import mcp_webhook_events, uvicorn']).status === 0;

test('a server of the Python SDK, with another implementation of webhooks', {
  skip: !hasPythonServer() && 'needs the Python packages mcp-webhook-events and uvicorn',
}, async (t) => {
  const program = fileURLToPath(new URL('../support/stand-ins/event-server.py', import.meta.url));
  const server = spawn(PYTHON, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  atEnd(t, () => void server.kill());
  const [line] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
  const { set, woken, front, daemons } = await open(t, { url: line.trim() });
  const id = await set({ delivery: 'webhook', filter: { pointer: '/data/level', equals: 'high' } });
  await eventually('its challenge was answered', () => front.statuses.length === 1);
  for (const [n, level] of ['high', 'low', 'high'].entries()) server.stdin.write(`${JSON.stringify({ n, level })}\n`);
  await eventually('two have woken', () => woken().length === 2);
  assert.deepEqual(
    woken().map(({ data }) => (data as { n: number }).n),
    [0, 2],
  );
  await daemons.client().cancelAlarm(id);
  server.stdin.write(`${JSON.stringify({ n: 3, level: 'high' })}\n`);
  await eventually('a server that posts to a cancelled alarm gets 410', () => front.statuses.at(-1) === 410);
  assert.deepEqual(front.statuses, [200, 200, 200, 200, 410]);
});

/** What one event costs, and what is stored, at the documented limits: work and bytes, counted. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { Access } from '../../../src/mcp-http/events/access.ts';
import { Callbacks } from '../../../src/mcp-http/events/callbacks.ts';
import { MOST_IN_ALL, MOST_OF_SUBJECT } from '../../../src/mcp-http/events/methods.ts';
import { EventStore, STORE_LIMITS, type Subscription } from '../../../src/mcp-http/events/store.ts';
import { Webhooks } from '../../../src/mcp-http/events/webhooks.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { newSecret, openEventsBench, startReceiver } from './mcp-events-bench.ts';

const ISSUER = 'https://login.example';
const clientOf = (userId: string, clientId = 'c', issuer = ISSUER) => ({
  ...{ issuer, subject: `subject-of-${userId}`, clientId, userId, clientName: undefined },
  scopes: ['alarms:read'] as const,
  grant: { subject: userId, clientId, tokenId: undefined, issuedAt: 1, claims: {} },
});

const subscriptionOf = (principal: number, n: number, url: string, secret: string): Subscription => ({
  ...{ id: `sub_${principal}_${n}`, principal, name: 'alarm.due', arguments: { label: `l${n}` }, url, secret },
  ...{ old: undefined, expiresAt: null, position: 0, failures: 0, failedSince: null },
  ...{ lastDeliveryAt: null, lastError: null },
});

const event = (eventId: string, label: string, bytes = 2) => ({
  ...{ eventId, name: 'alarm.due', at: 1, facts: { label } },
  data: bytes < 8 ? '{}' : JSON.stringify({ a: 'x'.repeat(bytes - 8) }),
});

/** Counts the queries of deliveries. */
class CountingStore extends EventStore {
  readonly count = { pages: 0, examined: 0, read: 0, written: 0 };

  override page(...given: Parameters<EventStore['page']>) {
    const page = super.page(...given);
    this.count.pages++;
    this.count.examined += page.events.length;
    return page;
  }

  override dataOf(...given: Parameters<EventStore['dataOf']>) {
    this.count.read++;
    return super.dataOf(...given);
  }

  override progress(...given: Parameters<EventStore['progress']>) {
    this.count.written++;
    return super.progress(...given);
  }
}

async function openWebhooks(t: TestContext, subscriptions: number, url: string, secret: string) {
  const store = new CountingStore(temporaryFolder(t), systemClock);
  const issuer = { issuer: ISSUER, userOf: (subject: string) => subject.replace('subject-of-', '') };
  const callbacks = new Callbacks({ allow: new URL(url).hostname, clock: systemClock });
  const access = new Access([issuer as never], systemClock);
  const webhooks = new Webhooks({
    ...{ store, access, callbacks, clock: systemClock, log: silentLogger, giveUpMs: 1e9 },
  });
  atEnd(t, async () => {
    await webhooks.close();
    await callbacks.close();
    await store.close();
  });
  store.onEvents((userId, added) => webhooks.notify(userId, added));
  const { id } = await store.putPrincipal(clientOf('ada'));
  const all = Array.from({ length: subscriptions }, (_, n) => subscriptionOf(id, n, url, secret));
  await Promise.all(all.map((one) => store.create(one)));
  for (const one of all) webhooks.begin(one);
  await eventually('each has looked once', () => store.count.pages === subscriptions);
  return { store };
}

test('an event costs queries only for the subscriptions that select it, however many there are', async (t) => {
  const receiver = await startReceiver(t);
  const costs = [];
  for (const subscriptions of [50, 100, 200]) {
    const { store } = await openWebhooks(t, subscriptions, receiver.url, receiver.secret);
    const before = receiver.ids().length;
    Object.assign(store.count, { pages: 0, examined: 0, read: 0, written: 0 });
    for (let n = 0; n < 10; n++) await store.add('ada', [event(`e${subscriptions}:${n}`, n === 9 ? 'l7' : 'none')]);
    await eventually('it is delivered', () => receiver.ids().length === before + 1);
    await eventually('its position is stored', () => store.count.written === 1);
    costs.push({ ...store.count });
  }
  assert.deepEqual(costs[0], { pages: 1, examined: 1, read: 1, written: 1 });
  assert.deepEqual(costs[1], costs[0]);
  assert.deepEqual(costs[2], costs[0]);
});

test('a subscription that selects nothing examines a backlog in bounded pages, and reads no data', async (t) => {
  const store = new CountingStore(temporaryFolder(t), systemClock);
  atEnd(t, () => store.close());
  for (let n = 0; n < 20; n++)
    await store.add(
      'ada',
      Array.from({ length: 500 }, (_, one) => event(`e${n}:${one}`, 'none', 1000)),
    );
  let pages = 0;
  for (let position = 0; position < store.head('ada'); pages++)
    ({ end: position } = store.page('ada', position, 'turn.failed', 200));
  assert.ok(pages >= 5 && pages <= 6, `${pages}`);
  assert.equal(store.count.read, 0);
});

test('the stored events of a user, and of all, stay within their bytes and rows; the oldest are deleted', async (t) => {
  const folder = temporaryFolder(t);
  const limits = { ...STORE_LIMITS, events: 500, bytes: 1_000_000, bytesInAll: 2_500_000 };
  const store = new EventStore(folder, systemClock, limits);
  await store.add('small', [event('first', 'a')]);
  for (let n = 0; n < 2000; n += 100)
    await Promise.all(Array.from({ length: 100 }, (_, one) => store.add('rows', [event(`r${n + one}`, 'a')])));
  const { end } = store.page('rows', store.floor('rows'), 'alarm.due', 1000);
  assert.ok(end - store.floor('rows') <= limits.events);
  for (const user of ['a', 'b', 'c', 'd'])
    for (let n = 0; n < 60; n++) {
      await store.add(user, [event(`${user}${n}`, 'a', 100_000)]);
      assert.ok(store.bytesOf(user) <= limits.bytes && store.bytes <= limits.bytesInAll, `${user} ${n}`);
    }
  assert.equal(store.head('d'), 60);
  assert.notEqual(store.dataOf('d', 60), undefined, 'the newest is there');
  assert.notEqual(store.dataOf('small', 1), undefined, 'who stores little loses nothing');
  assert.equal(store.positionOf('d', store.cursorAt(1)).isTruncated, true, 'a reader learns of the gap');
  const counted = store.bytes;
  await store.close();
  const again = new EventStore(folder, systemClock, limits);
  assert.equal(again.bytes, counted, 'a restart counts the same');
  await assert.rejects(again.create(subscriptionOf(999, 1, 'https://a.example/', newSecret())));
  assert.equal(again.bytes, counted, 'a lost transaction changes nothing');
  await again.close();
  // 24 MB were stored.
  assert.ok(statSync(join(folder, 'mcp-events.db')).size < 3 * limits.bytesInAll);
});

test('the clients, readers and callbacks of a subject are limited, and active subscriptions keep their client', async (t) => {
  const store = new EventStore(temporaryFolder(t), systemClock, { ...STORE_LIMITS, clients: 10, readers: 5 });
  atEnd(t, () => store.close());
  const first = await store.putPrincipal(clientOf('ada', 'first'));
  await store.create(subscriptionOf(first.id, 1, 'https://a.example/', newSecret()));
  const other = await store.putPrincipal(clientOf('bob'));
  for (let n = 0; n < 50; n++) {
    const { id } = await store.putPrincipal(clientOf('ada', `c${n}`));
    await store.seen(id, 'alarm.due', `{"label":"${n}"}`);
    await store.verify(id, `https://a.example/${n}`);
  }
  assert.ok(store.principals <= 13, `${store.principals}`);
  assert.equal(store.readersOf('ada').length, 5);
  assert.deepEqual([store.principal(first.id), store.principal(other.id)], [first, other]);
});

test('a router with the most subscriptions of all answers while it delivers', async (t) => {
  const receiver = await startReceiver(t);
  const settings: Record<string, string> = { ROUTER_MCP_CALLBACK_ALLOW: receiver.host };
  const bench = await openEventsBench(t, settings);
  const users = Array.from({ length: MOST_IN_ALL / MOST_OF_SUBJECT }, (_, n) => `user-${n}`);
  const ofUsers = Object.fromEntries(users.map((user) => [`subject-of-${user}`, user]));
  settings.ROUTER_MCP_ISSUERS = JSON.stringify([{ issuer: bench.issuer.url, users: ofUsers }]);
  await bench.closeRouter();
  const store = new EventStore(join(bench.folder, 'router'), systemClock);
  for (const user of users) {
    const { id } = await store.putPrincipal(clientOf(user, 'c', bench.issuer.url));
    const own = Array.from({ length: MOST_OF_SUBJECT }, (_, n) => subscriptionOf(id, n, receiver.url, receiver.secret));
    await Promise.all(own.map((one) => store.create(one)));
  }
  await store.close();
  await bench.openRouter();
  const heap = process.memoryUsage().heapUsed;
  let longest = 0;
  let isDone = false;
  const health = (async () => {
    for (; !isDone; await new Promise((resolve) => setTimeout(resolve, 20))) {
      const began = performance.now();
      const { status } = await bench.internal.send('GET', '/healthz', '');
      assert.equal(status, 200);
      longest = Math.max(longest, performance.now() - began);
    }
  })();
  for (const [n, user_id] of users.entries())
    assert.equal((await bench.wake(`f${n}`, { user_id, label: `l${n % MOST_OF_SUBJECT}` })).status, 200);
  await eventually('each is delivered once', () => receiver.ids().length === users.length, 120_000);
  isDone = true;
  await health;
  t.diagnostic(`${Math.round(longest)} ms`);
  // Usually some 50 ms, on a busy computer too. One event took seconds when it woke every subscription.
  assert.ok(longest < 5000, `${longest} ms`);
  assert.ok(process.memoryUsage().heapUsed - heap < 256 * 1024 * 1024);
});

/** Subscriptions by webhook: what is delivered, renewed, rotated, and ended. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { verifyWebhook } from '../../../src/kit/identity/webhook-signature.ts';
import { eventsOf, fixtureMachine } from '../../../src/router/testing/bench.ts';
import { eventually } from '../../support/eventually.ts';
import { newSecret, openEventsBench, startReceiver } from './mcp-events-bench.ts';

test('an alarm of a user without a machine is delivered to its subscriber', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const { id, refreshBefore } = await bench.subscribe(receiver);
  assert.match(id, /^sub_[0-9a-f]{32}$/);
  assert.ok(Date.parse(String(refreshBefore)) > Date.now());
  const alarm = await bench.set('water the violets', { label: 'violets', payload: { pot: 7 } });
  await eventually('it is delivered', () => receiver.ids().length === 1);
  const [{ headers, body }] = receiver.delivered as [(typeof receiver.delivered)[number]];
  assert.equal(headers['webhook-id'], body.eventId);
  assert.equal(headers['x-mcp-subscription-id'], id);
  assert.equal(headers['content-type'], 'application/json');
  const { scheduled_for, set_by: _, ...data } = body.data!;
  const fireId = `${alarm}@${Date.parse(String(scheduled_for))}`;
  assert.deepEqual([body.name, body.eventId], ['alarm.due', `${fireId}:due`]);
  assert.deepEqual(data, {
    ...{ alarm_id: alarm, fire_id: fireId, label: 'violets', message: 'water the violets', payload: { pot: 7 } },
  });
  await eventually('the alarm has fired', async () => (await bench.alarms.getAlarm(alarm)).status === 'fired');
  const [fire] = (await bench.alarms.listFires(alarm)).fires;
  assert.equal(fire?.outcome, 'delivered');
});

test('without a subscription, and after its end, such an alarm fails as before', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  assert.equal((await bench.wake('f1')).status, 404);
  await bench.subscribe(receiver, { arguments: { label: 'violets' } });
  assert.equal((await bench.wake('f2')).status, 404, 'a filter that does not fit');
  assert.equal((await bench.wake('f3', { label: 'violets' })).status, 200);
  const delivery = { url: receiver.url };
  await bench.call('events/unsubscribe', { name: 'alarm.due', arguments: { label: 'violets' }, delivery });
  assert.equal((await bench.wake('f4', { label: 'violets' })).status, 404);
  const again = await bench.refused('events/unsubscribe', {
    ...{ name: 'alarm.due', arguments: { label: 'violets' }, delivery },
  });
  assert.deepEqual([again.code, again.data], [-32_011, { kind: 'subscription' }]);
});

test('repeated attempts of a fire are one event; several subscriptions get it once each', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const one = await bench.subscribe(receiver);
  const other = await bench.subscribe(receiver, { arguments: { alarm_id: 'a1' } });
  assert.notEqual(one.id, other.id);
  for (const attempt of [1, 2, 3]) assert.equal((await bench.wake('f1', { alarm_id: 'a1', attempt })).status, 200);
  await eventually('both have it', () => receiver.delivered.length === 2);
  await bench.wake('f2', { alarm_id: 'a2' });
  await eventually('one has the other', () => receiver.delivered.length === 3);
  assert.deepEqual(receiver.ids().toSorted(), ['f1:due', 'f1:due', 'f2:due']);
});

test('only of alarms that this client has set', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  await bench.subscribe(receiver, { arguments: { own: true } });
  assert.equal((await bench.wake('f1')).status, 404);
  assert.equal((await bench.wake('f2', { set_by: { kind: 'client', client_id: 'client-2' } })).status, 404);
  assert.equal((await bench.wake('f3', { set_by: { kind: 'client', client_id: 'client-1' } })).status, 200);
  await eventually('it is delivered', () => receiver.ids().join() === 'f3:due');
});

test('a receiver that is down gets everything later, in order; the router may restart meanwhile', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const { id } = await bench.subscribe(receiver);
  receiver.state.status = 503;
  for (const n of [1, 2, 3]) assert.equal((await bench.wake(`f${n}`)).status, 200);
  await eventually('it was tried', () => receiver.attempts.length > 1);
  const renewed = await bench.subscribe(receiver);
  const status = renewed.deliveryStatus as Record<string, unknown>;
  assert.deepEqual([renewed.id, status.lastError, typeof status.failedSince], [id, 'http_5xx', 'string']);
  await bench.restartRouter();
  receiver.state.status = 200;
  await eventually('it has all', () => receiver.ids().length === 3);
  assert.deepEqual(receiver.ids(), ['f1:due', 'f2:due', 'f3:due']);
  const challenges = receiver.attempts.filter((body) => body.includes('verification'));
  assert.equal(challenges.length, 1, 'a verified callback is not challenged again');
});

test('an event of the largest alarm fits 256 KiB, and names its omitted members', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  await bench.subscribe(receiver);
  const message = '\u0001'.repeat(60_000);
  assert.equal((await bench.wake('f1', { message, payload: { a: 'x'.repeat(60_000) } })).status, 200);
  assert.equal(
    (await bench.wake('f2', { message: 'm'.repeat(230_000), payload: { a: 'x'.repeat(60_000) } })).status,
    200,
  );
  await eventually('they are delivered', () => receiver.ids().length === 2);
  for (const body of receiver.attempts) assert.ok(Buffer.byteLength(body) <= 256 * 1024);
  const [one, two] = receiver.delivered.map(({ body }) => body.data!);
  assert.deepEqual([one!.omitted, two!.omitted], [['message', 'payload'], ['payload']]);
  assert.equal(two!.message, 'm'.repeat(230_000));
});

test('a new secret is signed with beside the old one, and neither is stored readably', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const first = receiver.secret;
  const { id } = await bench.subscribe(receiver);
  const second = newSecret(24);
  const renewed = await bench.subscribe({ url: receiver.url, secret: second });
  assert.equal(renewed.id, id);
  await bench.wake('f1');
  await eventually('the old secret verifies it', () => receiver.ids().length === 1);
  const { headers } = receiver.delivered[0]!;
  assert.equal(String(headers['webhook-signature']).split(' ').length, 2);
  const body = receiver.attempts.at(-1)!;
  const given = headers as Record<string, string>;
  assert.ok(verifyWebhook({ headers: given, body, secrets: [second], nowMs: Date.now() }).ok);
  await bench.restartRouter();
  await bench.wake('f2');
  await eventually('after a restart too', () => receiver.ids().length === 2);
  const files = ['mcp-events.db', 'mcp-events.db-wal'].map((name) => {
    try {
      return readFileSync(join(bench.folder, 'router', name), 'latin1');
    } catch {
      return '';
    }
  });
  for (const secret of [first, second]) assert.ok(!files.join('').includes(secret.slice('whsec_'.length)));
});

test('an expired subscription ends; a client can resume from its cursor', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const { cursor, id, refreshBefore } = await bench.subscribe(receiver, { ttlMs: 1 });
  assert.ok(Date.parse(String(refreshBefore)) - Date.now() > 50_000, 'a minute is the least');
  await bench.closeRouter();
  const file = new DatabaseSync(join(bench.folder, 'router', 'mcp-events.db'));
  file.exec('UPDATE subscriptions SET expires_at = 1');
  file.close();
  await bench.openRouter();
  assert.equal((await bench.wake('f1')).status, 404, 'chronosd tries it again');
  // Another reader keeps the events.
  await bench.call('events/poll', { name: 'alarm.due' });
  assert.equal((await bench.wake('f2')).status, 200);
  const renewed = await bench.subscribe(receiver, { cursor });
  assert.deepEqual([renewed.id, renewed.truncated], [id, false]);
  await eventually('it has what it missed', () => receiver.ids().join() === 'f2:due');
  const stale = await bench.subscribe(receiver, { cursor: '00000000.1', arguments: { label: 'other' } });
  assert.equal(stale.truncated, true);
});

test('events that may be missing are a gap, by each way of delivery', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  const { id } = await bench.subscribe(receiver, { name: 'turn.failed' });
  const { result: before } = await bench.call('events/poll', { name: 'turn.finished' });
  await bench.closeRouter();
  const file = new DatabaseSync(join(bench.folder, 'router', 'mcp-events.db'));
  file.exec(`UPDATE sources SET cursor = '1.00000000.1'`);
  file.close();
  await bench.openRouter();
  await eventually('the gap is posted', () => receiver.controls().length === 1);
  const [{ headers, body }] = receiver.delivered as [(typeof receiver.delivered)[number]];
  assert.match(String(headers['webhook-id']), /^msg_gap_[0-9a-f]{24}$/);
  assert.deepEqual([headers['x-mcp-subscription-id'], body.type, typeof body.cursor], [id, 'gap', 'string']);
  const { result: after } = await bench.call('events/poll', { name: 'turn.finished', cursor: before.cursor });
  assert.deepEqual([after.events, after.truncated], [[], true]);
  const { result: next } = await bench.call('events/poll', { name: 'turn.finished', cursor: after.cursor });
  assert.equal(next.truncated, false);
  const { result: due } = await bench.call('events/poll', { name: 'alarm.due', cursor: before.cursor });
  assert.equal(due.truncated, false, 'due alarms come with the wakes');
});

test('a user with a machine has the wake there, and the subscriber has the event', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host });
  await bench.internal.put('ada', fixtureMachine(bench.folder));
  await bench.subscribe(receiver);
  assert.equal((await bench.wake('f1')).status, 202);
  await eventually('it is delivered', () => receiver.ids().length === 1);
  assert.equal(eventsOf(bench.folder, 'chat').length, 1);
  await bench.internal.admin('POST', '/ada/suspend', { reason: 'test' });
  assert.equal((await bench.wake('f2')).status, 451, 'a suspended user gets nothing');
  await bench.internal.admin('DELETE', '/ada');
  assert.equal((await bench.wake('f3')).status, 200);
  await eventually('it is delivered', () => receiver.ids().length === 2);
  assert.deepEqual(receiver.ids(), ['f1:due', 'f3:due']);
});

test('the turn of an alarm is reported with its answer', async (t) => {
  const receiver = await startReceiver(t);
  const bench = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: receiver.host, REVEILLE_SEPARATION: 'off' });
  const machine = fixtureMachine(bench.folder);
  await bench.internal.put('ada', { ...machine, spec: { ...machine.spec, cwd: bench.folder, checks: 'commands' } });
  await bench.subscribe(receiver, { name: 'turn.finished', arguments: { label: 'count' } });
  await bench.set('not this one', { label: 'other', run: { argv: ['/bin/true'] } });
  const alarm = await bench.set('count', { label: 'count', run: { argv: ['/bin/echo', 'seven'] } });
  await eventually('it is reported', () => receiver.ids().length === 1);
  const { name, eventId, data } = receiver.delivered[0]!.body;
  assert.deepEqual([name, data!.alarm_id, data!.label, data!.outcome], ['turn.finished', alarm, 'count', 'ok']);
  assert.equal(eventId, `${data!.fire_id}:finished`);
});

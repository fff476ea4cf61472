import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type ChronosClient,
  createChronosClient,
  type EventOptions,
  holdPrincipal,
} from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import type { Follower, StoredChange } from '../../../src/chronos/store/stored-change.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { createLogger } from '../../../src/kit/log/log.ts';
import type { ChronosEvent } from '../../../src/wire/chronos-event.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { createHttpBench, refused, TRANSPORT } from './http-bench.ts';

const TOKEN = 'transport-token-of-the-test';
const log = createLogger('chronosd', 'error');

/** Accepts every wake. */
const router = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(202).end('{}'));
});
let wakeUrl = '';

before(async () => {
  router.listen(0, '127.0.0.1');
  await once(router, 'listening');
  wakeUrl = `http://127.0.0.1:${(router.address() as { port: number }).port}/internal/wake`;
});
after(() => router.close());

function start(settings: Record<string, string>) {
  const config = parseChronosConfig({
    CHRONOS_ENROLLMENT: 'tofu',
    CHRONOS_DATA_DIR: '/nowhere',
    CHRONOS_PORT: '0',
    CHRONOS_TOKEN: TOKEN,
    CHRONOS_ADMIN_TOKEN: 'admin-token-of-the-test',
    CHRONOS_AGENT_AUTH_SECRET: 'one-secret-for-all-replicas',
    CHRONOS_WAKE_TOKEN: 'wake-token-of-the-test',
    CHRONOS_ROUTER_WAKE_URL: wakeUrl,
    ...settings,
  });
  return startChronos({ config, clock: systemClock, log });
}

const ada = agentIdentity('ada', generateKey());
const eve = agentIdentity('eve', generateKey());
const clientOf = (url: string, identity = ada): ChronosClient =>
  createChronosClient({ url, token: TOKEN, identity, principal: holdPrincipal() });

/** Follows events and collects them; resolves when the first connection is open. */
async function listen(client: ChronosClient, options: Partial<EventOptions> = {}) {
  const found: ChronosEvent[] = [];
  const ended = new AbortController();
  const opened = Promise.withResolvers<void>();
  const states: string[] = [];
  const onConnection: EventOptions['onConnection'] = (connection) => {
    states.push(connection.state);
    opened.resolve();
  };
  const reading = (async () => {
    const follow = { signal: ended.signal, onConnection, ...options };
    for await (const event of client.events(follow)) found.push(event);
  })();
  await Promise.race([opened.promise, reading]);
  const types = () => found.map(({ type }) => type);
  return {
    ...{ found, types, states },
    until: (type: string, count = 1) =>
      eventually(`${type} among ${types()}`, () => types().filter((each) => each === type).length >= count, 15_000),
    async end() {
      ended.abort();
      await reading;
    },
  };
}

const soon = () => ({ kind: 'once', wake_message: 'now', fire_at: new Date(Date.now() + 300).toISOString() }) as const;

test('a stream has the alarms and fires of its owner in order, and of no other', async (t) => {
  const daemon = await start({ CHRONOS_DATA_DIR: temporaryFolder(t) });
  t.after(() => daemon.close());
  const client = clientOf(daemon.url);
  const own = await listen(client);
  const other = await listen(clientOf(daemon.url, eve));
  const few = await listen(client, { types: ['fire.delivered'] });
  const { id } = await client.createAlarm(soon());
  await own.until('fire.delivered');
  const waits = await client.createAlarm({ kind: 'once', wake_message: 'later', delay_seconds: 600 });
  await client.patchAlarm(waits.id, { label: 'another' });
  await client.cancelAlarm(waits.id);
  await own.until('alarm.cancelled');
  assert.deepEqual(own.types(), [
    ...['alarm.created', 'fire.started', 'fire.delivered'],
    ...['alarm.created', 'alarm.updated', 'alarm.cancelled'],
  ]);
  const delivered = own.found[2]!;
  assert.match(delivered.fire_id!, new RegExp(`^${id}@`));
  assert.deepEqual([delivered.alarm_id, delivered.attempt, delivered.http_status], [id, 1, 202]);
  await few.until('fire.delivered');
  assert.deepEqual(few.types(), ['fire.delivered']);
  assert.deepEqual(other.types(), []);
  await Promise.all([own.end(), other.end(), few.end()]);
});

test('a stream resumes after a restart of chronosd at its last event', async (t) => {
  const settings = { CHRONOS_DATA_DIR: temporaryFolder(t), CHRONOS_PORT: String(await reservePort()) };
  const first = await start(settings);
  const stream = await listen(clientOf(first.url));
  const merged = await listen(clientOf(first.url), { coalesceMs: 100 });
  await clientOf(first.url).createAlarm({ kind: 'once', wake_message: 'before', delay_seconds: 600 });
  await stream.until('alarm.created');
  await merged.until('changed');
  await first.close();
  const second = await start(settings);
  t.after(() => second.close());
  // A connection of the first process may still be in the pool.
  const later = { kind: 'once', wake_message: 'after', delay_seconds: 600, idempotency_key: 'after' } as const;
  const { id } = await eventually('an alarm', () =>
    clientOf(second.url)
      .createAlarm(later)
      .catch(() => undefined),
  );
  await eventually('the later alarm', () => stream.found.some(({ alarm_id }) => alarm_id === id), 15_000);
  await merged.until('changed', 2);
  assert.ok(merged.found.every(({ types }) => types?.join() === 'alarm.created'));
  assert.ok(!stream.types().includes('reset'));
  assert.ok(stream.states.includes('lost'));
  await Promise.all([stream.end(), merged.end()]);
});

test('an unknown or too old cursor is answered with reset, then with later events', async (t) => {
  const daemon = await start({ CHRONOS_DATA_DIR: temporaryFolder(t) });
  t.after(() => daemon.close());
  const client = clientOf(daemon.url);
  const old = `${Date.now() - 86_400_000}.0123abcd.4`;
  for (const cursor of ['7', 'nonsense', old]) {
    const stream = await listen(client, { after: cursor });
    await stream.until('reset');
    await client.createAlarm({ kind: 'once', wake_message: 'later', delay_seconds: 600 });
    await stream.until('alarm.created');
    await stream.end();
  }
});

/** A store whose changes the test reports. */
async function benchWithFeed(t: TestContext) {
  let report: Follower['onChanges'] = () => {};
  const bench = await createHttpBench(t, {
    eventStore: {
      async follow(follower) {
        report = (changes) => follower.onChanges(changes.filter(({ owner }) => follower.owners.has(owner)));
        return { refresh: async () => {}, end() {} };
      },
      changesSince: async () => [],
    },
  });
  return { bench, report: (...changes: StoredChange[]) => report(changes) };
}

const SOME = '?coalesce_ms=200';

/** The events of one connection, and the text as it was received. */
async function connected({ url }: { url: string }, principal: string, query: string, lastEventId?: string) {
  const ended = new AbortController();
  const answer = await fetch(`${url}/v1/events${query}`, {
    headers: {
      ...{ authorization: `Bearer ${TRANSPORT}`, 'x-chronos-agent': principal },
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    signal: ended.signal,
  });
  assert.equal(answer.status, 200);
  let text = '';
  void (async () => {
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) text += chunk;
  })().catch(() => {});
  const data = () => [...text.matchAll(/^data: (\{"type".*)$/gm)].map(([, json]) => JSON.parse(json!) as ChronosEvent);
  return {
    end: () => ended.abort(),
    ...{ data, text: () => text.slice(text.indexOf('event: changed')) },
    lastId: () => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1],
  };
}

const edited = (owner: string, n: number) => ({ kind: 'edited', owner, alarmId: `alarm-${n}`, at: n }) as const;

test('a burst reaches a stream of merged events as a few, the last change included', async (t) => {
  const { bench, report } = await benchWithFeed(t);
  const [ada, eve] = [await bench.agent('ada'), await bench.agent('eve')];
  const one = await connected(bench, ada.principal, SOME);
  const same = await connected(bench, ada.principal, SOME);
  const fires = await connected(bench, ada.principal, `${SOME}&types=fire.delivered`);
  const each = await connected(bench, ada.principal, '');
  const other = await connected(bench, eve.principal, SOME);
  await eventually('ready', () => [one, same, fires, each, other].every(({ lastId }) => lastId() !== undefined));
  const began = performance.now();
  for (let n = 0; n < 1000; n++) {
    report(edited('ada', n));
    if (n % 100 === 99) await pause(50);
  }
  assert.ok(one.data().length > 0, 'the first event does not wait for the end of the burst');
  report({ kind: 'cancelled', owner: 'ada', alarmId: 'the last', at: 1000 });
  await eventually('the last change', () => one.data().some(({ types }) => types?.includes('alarm.cancelled')));
  await eventually('all events', () => each.data().length === 1001);
  const most = Math.ceil((performance.now() - began) / 200) + 2;
  assert.ok(one.data().length <= most, `${one.data().length} events`);
  assert.ok(one.data().every(({ type, alarm_id }) => type === 'changed' && alarm_id === undefined));
  await eventually('the same at the other stream', () => same.text() === one.text());
  assert.deepEqual(fires.data(), []);
  assert.deepEqual(other.data(), []);
});

test('a stream of merged events resumes with one event, or with none if nothing changed', async (t) => {
  const { bench, report } = await benchWithFeed(t);
  const { principal } = await bench.agent('ada');
  const first = await connected(bench, principal, SOME);
  report(edited('ada', 1));
  await eventually('an event', () => first.data().length === 1);
  const cursor = first.lastId();
  first.end();
  await eventually('the end', () => bench.events.figures.open === 0);
  const unchanged = await connected(bench, principal, SOME, cursor);
  await eventually('ready', () => unchanged.lastId() !== undefined);
  unchanged.end();
  await eventually('the end', () => bench.events.figures.open === 0);
  for (let n = 2; n < 10; n++) report(edited('ada', n), { kind: 'cancelled', owner: 'ada', alarmId: 'x', at: n });
  const resumed = await connected(bench, principal, SOME, cursor);
  await eventually('the missed changes', () => resumed.data().length > 0);
  assert.deepEqual(
    resumed.data().map(({ type, types }) => [type, types]),
    [['changed', ['alarm.updated', 'alarm.cancelled']]],
  );
  assert.deepEqual(unchanged.data(), []);
  const unknown = await connected(bench, principal, SOME, '7');
  await eventually('reset', () => unknown.data()[0]?.type === 'reset');
  refused(await bench.call('GET', '/v1/events'), 401, 'unauthorized');
  const { call } = await bench.agent('eve');
  refused(await call('GET', '/v1/events?coalesce_ms=99'), 400, 'invalid_request', /from 100 to 60,?000/);
});

test('the limits of streams are per owner and in total, and an ended stream frees its place', async (t) => {
  const bench = await createHttpBench(t, { streams: { perOwner: 2, inAll: 3 } });
  const [one, two] = [await bench.agent('ada'), await bench.agent('eve')];
  const open = async ({ principal }: { principal: string }) => {
    const headers = { authorization: `Bearer ${TRANSPORT}`, 'x-chronos-agent': principal };
    const ended = new AbortController();
    const answer = await fetch(`${bench.url}/v1/events`, { headers, signal: ended.signal });
    assert.equal(answer.status, 200);
    return () => ended.abort();
  };
  const close = await open(one);
  await open(one);
  refused(await one.call('GET', '/v1/events'), 429, 'rate_limited', /you have 2 open streams/);
  await open(two);
  refused(await two.call('GET', '/v1/events'), 429, 'rate_limited', /all owners have 3 open streams/);
  close();
  await eventually('a free place', () => bench.events.figures.open === 2);
  await open(two);
  refused(await bench.call('GET', '/v1/events'), 401, 'unauthorized');
  refused(await one.call('GET', '/v1/events?types=alarm.rang'), 400, 'invalid_request', /alarm\.rang/);
});

test('a reader that does not read is disconnected', async (t) => {
  const { bench, report } = await benchWithFeed(t);
  const { principal } = await bench.agent('ada');
  const socket = connect(bench.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.pause();
  socket.write(
    `GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${TRANSPORT}\r\nx-chronos-agent: ${principal}\r\n\r\n`,
  );
  await eventually('an open stream', () => bench.events.figures.open === 1);
  const reason = 'x'.repeat(4000);
  await eventually('the end of the stream', () => {
    const at = bench.events.figures.sent;
    const change = { kind: 'deferred', owner: 'ada', alarmId: 'a', at, until: at, reason } as const;
    report(...Array.from({ length: 100 }, (_, n) => ({ ...change, fireId: `a@${n}` })));
    return bench.events.figures.open === 0;
  });
});

test('a stream ends when chronosd shuts down', async (t) => {
  const daemon = await start({ CHRONOS_DATA_DIR: temporaryFolder(t) });
  const stream = await listen(clientOf(daemon.url));
  const began = performance.now();
  await daemon.close();
  assert.ok(performance.now() - began < 5000);
  await eventually('the loss', () => stream.states.includes('lost'));
  await stream.end();
});

test('with PostgreSQL, a stream of one replica has what another replica stored, also after a move', async (t) => {
  const postgres: PostgresServer = await startPostgres();
  const CHRONOS_POSTGRES_URI = postgres.uri(await postgres.createDatabase());
  const [one, two] = [
    await start({ CHRONOS_POSTGRES_URI }),
    await start({ CHRONOS_POSTGRES_URI, CHRONOS_DISPATCH: '0' }),
  ];
  t.after(async () => {
    await Promise.all([one.close(), two.close()]);
    await postgres.remove();
  });
  const stream = await listen(clientOf(two.url));
  const other = await listen(clientOf(two.url, eve));
  const { id } = await clientOf(one.url).createAlarm(soon());
  await stream.until('fire.delivered');
  assert.deepEqual(stream.types(), ['alarm.created', 'fire.started', 'fire.delivered']);
  const waits = await clientOf(one.url).createAlarm({ kind: 'once', wake_message: 'later', delay_seconds: 600 });
  await clientOf(one.url).pauseAlarm(waits.id);
  await stream.until('alarm.updated');
  await clientOf(one.url).cancelAlarm(waits.id);
  await stream.until('alarm.cancelled');
  assert.ok(stream.found.every(({ alarm_id }) => alarm_id === id || alarm_id === waits.id));
  assert.deepEqual(other.types(), []);
  await Promise.all([stream.end(), other.end()]);
});

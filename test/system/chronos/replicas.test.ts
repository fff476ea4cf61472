import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { createLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

const TOKEN = 'transport-token-of-the-test';
const identity = agentIdentity('fleet', generateKey());

/** How often each fire id arrived. */
const arrivals = new Map<string, number>();
/** The events of each fire id with events. */
const carried = new Map<string, string>();
/** For each fire id, its signed send time; seconds since the epoch. */
const signedAt = new Map<string, number>();
const router = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const { fire_id, payload } = JSON.parse(text) as {
      fire_id: string;
      payload?: { events?: { data: { n: number } }[] };
    };
    if (payload?.events) carried.set(fire_id, payload.events.map(({ data }) => data.n).join());
    arrivals.set(fire_id, (arrivals.get(fire_id) ?? 0) + 1);
    signedAt.set(fire_id, Number(request.headers['webhook-timestamp']));
    response.end('{}');
  });
});

let postgres: PostgresServer;
let uri: string;
const replicas: RunningChronos[] = [];

before(async () => {
  router.listen(0, '127.0.0.1');
  await once(router, 'listening');
  postgres = await startPostgres();
  uri = postgres.uri(await postgres.createDatabase());
});

after(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  router.close();
  await postgres.remove();
});

/** An unexpected log line is shown beside the failure that it explains. */
const log = createLogger('chronosd', 'error');

async function startReplica(roles: Record<string, string> = {}, clock = systemClock): Promise<RunningChronos> {
  const address = router.address();
  assert.ok(typeof address === 'object' && address !== null);
  const config = parseChronosConfig({
    CHRONOS_POSTGRES_URI: uri,
    CHRONOS_ENROLLMENT: 'tofu',
    CHRONOS_DATA_DIR: '/nowhere',
    CHRONOS_PORT: '0',
    CHRONOS_TOKEN: TOKEN,
    CHRONOS_ADMIN_TOKEN: 'admin-token-of-the-test',
    CHRONOS_AGENT_AUTH_SECRET: 'one-secret-for-all-replicas',
    CHRONOS_WAKE_TOKEN: 'wake-token-of-the-test',
    CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${address.port}/internal/wake`,
    ...roles,
  });
  const replica = await startChronos({ config, clock, log });
  replicas.push(replica);
  return replica;
}

const clientOf = ({ url }: RunningChronos): ChronosClient =>
  createChronosClient({ url, token: TOKEN, identity, principal: holdPrincipal() });
const statusOf = async (url: string) => (await fetch(url)).status;

test('alarms set through either of two replicas fire once each, and both replicas know all of them', async () => {
  const clients = [clientOf(await startReplica()), clientOf(await startReplica())];
  const ids = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const client = clients[index % 2]!;
      return (await client.createAlarm({ kind: 'once', wake_message: `number ${index}`, delay_seconds: 1 })).id;
    }),
  );
  await eventually('all have fired', () => arrivals.size === 40, 15_000);
  for (const client of clients) {
    await eventually(
      'all are fired',
      async () => (await client.listAlarms({ status: 'fired', limit: 500 })).count === 40,
      10_000,
    );
    for (const id of ids) assert.equal((await client.getAlarm(id)).fire_count, 1);
  }
  assert.deepEqual([...new Set(arrivals.values())], [1]);
});

test('one backfill, requested of two replicas at once and repeatedly, fires each instant once and in order', async () => {
  const clients = replicas.map(clientOf);
  const [client] = clients;
  const { id } = await client!.createAlarm({ kind: 'cron', cron_expr: '0 0 1 * *', wake_message: 'x' });
  const part = { from: '1990-01-01T00:00:00Z', to: '1998-05-01T00:00:00Z' };
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => clients[n % 2]!.backfillAlarm(id, part)));
  assert.equal(
    answers.reduce((sum, { backfill }) => sum + backfill.added, 0),
    100,
  );
  const instants = () =>
    [...arrivals.keys()].filter((fire) => fire.startsWith(id)).map((fire) => Number(fire.split('@')[1]));
  await eventually('all have fired', async () => (await client!.getAlarm(id)).fire_count === 100, 30_000);
  assert.deepEqual(
    instants(),
    Array.from({ length: 100 }, (_, n) => Date.UTC(1990, n)),
  );
  assert.deepEqual((await client!.backfillAlarm(id, part)).backfill, { added: 0, known: 100 });
  await client!.cancelAlarm(id);
  assert.deepEqual([...new Set(arrivals.values())], [1]);
  arrivals.clear();
});

test('a nonce can be verified by either replica', async () => {
  const [one, other] = replicas;
  const { nonce, message } = await clientOf(one!).challenge(identity.did);
  const verify = async () => {
    const answer = await fetch(`${other!.url}/v1/agent/auth/verify`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        did: identity.did,
        public_key: identity.publicKeyHex,
        nonce,
        signature: identity.sign(message),
      }),
    });
    return answer.status;
  };
  assert.equal(await verify(), 200);
  assert.equal(await verify(), 401);
});

test('roles can be split: one replica accepts alarms, another dispatches them', async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.close()));
  const api = await startReplica({ CHRONOS_DISPATCH: '0' });
  const before = arrivals.size;
  const { id } = await clientOf(api).createAlarm({ kind: 'once', wake_message: 'split', delay_seconds: 1 });
  const dispatching = await startReplica({ CHRONOS_API: '0' });
  assert.equal(await statusOf(`${dispatching.url}/healthz`), 200);
  assert.equal(await statusOf(`${dispatching.url}/v1/alarms`), 404);
  await eventually('it fired', () => arrivals.size === before + 1, 15_000);
  await eventually('it is fired', async () => (await clientOf(api).getAlarm(id)).status === 'fired', 10_000);
});

test('while PostgreSQL is away nothing is acknowledged; when it is back everything continues by itself', async () => {
  const [api] = replicas;
  const client = clientOf(api!);
  await client.createAlarm({ kind: 'once', wake_message: 'set before', delay_seconds: 2, idempotency_key: 'before' });
  const before = arrivals.size;
  await postgres.stop('immediate');
  await assert.rejects(
    client.createAlarm({ kind: 'once', wake_message: 'set while it is away', delay_seconds: 2 }),
    (error) => error instanceof ReveilleError && error.code === 'unavailable' && error.retryable,
  );
  assert.equal(await statusOf(`${api!.url}/healthz`), 200);
  assert.equal(await statusOf(`${api!.url}/readyz`), 503);

  const late = await startReplica();
  assert.equal(await statusOf(`${late.url}/healthz`), 200, 'a replica starts although the database is away');
  assert.equal(await statusOf(`${late.url}/readyz`), 503);

  await postgres.start();
  await eventually('it fired', () => arrivals.size > before, 30_000);
  await eventually('the late replica is ready', async () => (await statusOf(`${late.url}/readyz`)) === 200, 30_000);
});

test('a fault for the operator to repair stops the start with one sentence, which does not contain the password', async () => {
  const good = uri;
  const { password } = new URL(good);
  uri = good.replace(password, 'a-wrong-password');
  try {
    await assert.rejects(startReplica(), (error: Error) => {
      assert.ok(error instanceof ReveilleError);
      assert.doesNotMatch(error.message, /a-wrong-password/);
      return true;
    });
  } finally {
    uri = good;
  }
});

test('a replica whose own clock is wrong fires at the right time, and signs a time that the router believes', async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.close()));
  const HOUR_MS = 3_600_000;
  const replica = await startReplica({}, { ...systemClock, now: () => systemClock.now() + HOUR_MS });
  const { id, next_fire_at } = await clientOf(replica).createAlarm({
    kind: 'once',
    wake_message: 'on time',
    delay_seconds: 1,
  });
  const due = Date.parse(next_fire_at ?? '');
  assert.ok(Math.abs(due - systemClock.now()) < HOUR_MS / 2, `due at ${next_fire_at}`);
  const fireId = `${id}@${due}`;
  await eventually('it fires', () => arrivals.get(fireId) === 1, 20_000);
  assert.ok(
    Math.abs(signedAt.get(fireId)! - due / 1000) < 300,
    `signed at ${signedAt.get(fireId)}, due at ${due / 1000}`,
  );
});

test('events that come at two replicas at once are carried once each, in batches that grow while they are claimed', async () => {
  const [one, other] = [await startReplica(), await startReplica()];
  const { hook } = await clientOf(one).createAlarm({
    wake_message: 'look',
    event: { source: 'webhook', verify: 'path', repeat: 'always', batch_up_to: 20 },
  });
  const count = 600;
  let next = 0;
  const send = async ({ url }: RunningChronos) => {
    while (next < count) {
      const n = next++;
      const headers = { 'content-type': 'application/json', 'idempotency-key': `event-${n}` };
      const body = JSON.stringify({ n });
      const answer = await fetch(new URL(hook!.address, url), { method: 'POST', headers, body });
      assert.equal(answer.status, 200, await answer.text());
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, at) => send(at % 2 === 0 ? one : other)));
  const all = () => [...carried.values()].flatMap((events) => events.split(',').map(Number));
  await eventually('all have been carried', () => all().length >= count);
  const found = all();
  assert.equal(new Set(found).size, count);
  assert.equal(found.length, count, 'none by two fires');
  assert.ok(carried.size < count, `${carried.size} fires`);
});

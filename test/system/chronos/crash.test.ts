/**
 * `kill -9` of chronosd. During creates: acknowledged alarms are stored, others are stored once or not at all. During
 * deliveries: the next start resumes them at once.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { diceOf, rounds } from '../../support/random/random.ts';

const ROUNDS = rounds(4, 10);
const WRITERS = 8;
const TOKEN = 'transport-token-canary';
const SECRETS = {
  CHRONOS_TOKEN: TOKEN,
  CHRONOS_AGENT_AUTH_SECRET: 'principal-secret-canary',
  CHRONOS_ADMIN_TOKEN: 'admin-token-canary-01',
  CHRONOS_WAKE_TOKEN: 'wake-token-canary-012',
};

type Process = { child: ChildProcess; url: string; log: () => string };

/** Starts chronosd on a folder; resolves when it reports its address. */
async function start(home: string, settings: Record<string, string> = {}): Promise<Process> {
  const child = spawn(process.execPath, [PROGRAM, 'chronosd', '--json'], {
    env: {
      PATH: process.env.PATH,
      REVEILLE_HOME: home,
      REVEILLE_LOG: 'debug',
      CHRONOS_PORT: '0',
      ...SECRETS,
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', (line) => resolve((JSON.parse(line) as { url: string }).url));
    child.once('exit', (status) => reject(new Error(`chronosd ended with status ${status}:\n${log}`)));
  });
  return { child, url, log: () => log };
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}

async function allAlarms(client: ChronosClient): Promise<Map<string, string[]>> {
  const idsByKey = new Map<string, string[]>();
  let cursor: string | undefined;
  do {
    const page = await client.listAlarms({ limit: 500, ...(cursor ? { cursor } : {}) });
    for (const { id, idempotency_key: key = '' } of page.alarms) idsByKey.set(key, [...(idsByKey.get(key) ?? []), id]);
    cursor = page.next_cursor;
  } while (cursor);
  return idsByKey;
}

test(`${ROUNDS} times kill -9 during creates: nothing acknowledged is lost, nothing is stored twice`, {
  timeout: 60_000,
}, async (t: TestContext) => {
  const dice = diceOf(t);
  const home = mkdtempSync(join(tmpdir(), 'reveille-crash-'));
  let running: ChildProcess | undefined;
  t.after(async () => {
    if (running && running.exitCode === null && running.signalCode === null) await kill(running);
    rmSync(home, { recursive: true });
  });
  const identity = agentIdentity('ada', generateKey());
  const acknowledged = new Map<string, string>();
  const unanswered = new Set<string>();
  let logs = '';
  let serial = 0;

  for (let round = 0; round < ROUNDS; round++) {
    const { child, url, log } = await start(home);
    running = child;
    const client = createChronosClient({ url, token: TOKEN, identity, principal: holdPrincipal(), timeoutMs: 5000 });
    await client.listAlarms();
    let alive = true;
    const writer = async () => {
      while (alive) {
        const key = `key-${serial++}`;
        try {
          const { id } = await client.createAlarm({
            kind: 'once',
            wake_message: key,
            delay_seconds: 3600,
            idempotency_key: key,
          });
          acknowledged.set(key, id);
        } catch (thrown) {
          assert.ok(thrown instanceof ReveilleError && thrown.code === 'unavailable', String(thrown));
          unanswered.add(key);
          return;
        }
      }
    };
    const enough = acknowledged.size + 5 + dice(100);
    const writers = Array.from({ length: WRITERS }, writer);
    while (acknowledged.size < enough) await new Promise((resolve) => setTimeout(resolve, 1));
    await kill(child);
    alive = false;
    await Promise.all(writers);
    logs += log();
  }

  const { child, url, log } = await start(home);
  running = child;
  const client = createChronosClient({ url, token: TOKEN, identity, principal: holdPrincipal() });
  const kept = await allAlarms(client);
  for (const [key, id] of acknowledged) assert.deepEqual(kept.get(key), [id], `${key} was acknowledged`);
  const survived = [...unanswered].filter((key) => kept.has(key));
  for (const key of survived) assert.equal(kept.get(key)!.length, 1, `${key} is stored twice`);
  assert.equal(kept.size, acknowledged.size + survived.length, 'no other alarm was requested');
  // A request whose answer was lost is repeated under its key: it ends as one alarm, whether or not the first one was
  // stored.
  for (const key of unanswered) {
    const { id, deduped } = await client.createAlarm({
      kind: 'once',
      wake_message: key,
      delay_seconds: 3600,
      idempotency_key: key,
    });
    assert.equal(deduped, kept.has(key));
    if (deduped) assert.deepEqual(kept.get(key), [id]);
  }
  logs += log();
  for (const secret of Object.values(SECRETS)) assert.ok(!logs.includes(secret), 'a secret is in the log');
  t.diagnostic(
    `${ROUNDS} kills, ${acknowledged.size} acknowledged, ${unanswered.size} unanswered of which ${survived.length} were stored`,
  );
});

test('deliveries that a kill interrupts are repeated at the next start', {
  timeout: 120_000,
}, async (t: TestContext) => {
  const home = mkdtempSync(join(tmpdir(), 'reveille-crash-'));
  const wakes: { fireId: string; attempt: number }[] = [];
  const unanswered: ServerResponse[] = [];
  let hangs = true;
  const router = createServer(async (request, response) => {
    const { fire_id: fireId, attempt } = (await json(request)) as { fire_id: string; attempt: number };
    wakes.push({ fireId, attempt });
    if (hangs) unanswered.push(response);
    else response.writeHead(202, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
  }).listen(0, '127.0.0.1');
  await once(router, 'listening');
  const settings = {
    CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${(router.address() as AddressInfo).port}/internal/wake`,
  };
  let running: ChildProcess | undefined;
  t.after(async () => {
    if (running && running.exitCode === null && running.signalCode === null) await kill(running);
    router.closeAllConnections();
    router.close();
    rmSync(home, { recursive: true });
  });
  const enough = async (count: number) => {
    while (wakes.length < count) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  const identity = agentIdentity('ada', generateKey());
  const clientOf = (url: string) =>
    createChronosClient({ url, token: TOKEN, identity, principal: holdPrincipal(), timeoutMs: 30_000 });

  const first = await start(home, settings);
  running = first.child;
  const ids = await Promise.all(
    ['one', 'two', 'three'].map(async (message) => {
      const alarm = { kind: 'once', wake_message: message, delay_seconds: 1 } as const;
      return (await clientOf(first.url).createAlarm(alarm)).id;
    }),
  );
  await enough(3);
  await kill(first.child);
  hangs = false;

  const killed = performance.now();
  const second = await start(home, settings);
  running = second.child;
  const listening = performance.now();
  await enough(6);
  const again = performance.now();
  t.diagnostic(
    `the last of three interrupted wakes ${Math.round(again - killed)} ms after the next process was started, ${Math.round(again - listening)} ms after it listened`,
  );
  const firstFires = wakes.slice(0, 3).map(({ fireId }) => fireId);
  assert.deepEqual(
    wakes.slice(3).toSorted((one, other) => firstFires.indexOf(one.fireId) - firstFires.indexOf(other.fireId)),
    firstFires.map((fireId) => ({ fireId, attempt: 2 })),
  );
  const client = clientOf(second.url);
  for (const id of ids) {
    while ((await client.getAlarm(id)).status !== 'fired') await new Promise((resolve) => setTimeout(resolve, 10));
    const { fires } = await client.listFires(id);
    assert.deepEqual(
      fires.map(({ attempt, outcome }) => [attempt, outcome]),
      [
        [2, 'delivered'],
        [1, 'unknown'],
      ],
    );
    const [repeated, interrupted] = fires;
    assert.ok(Date.parse(interrupted!.finished_at) <= Date.parse(repeated!.started_at));
  }
  assert.equal(wakes.length, 6, 'nothing was delivered a third time');
});

test(`${ROUNDS} times kill -9 while events come: each acknowledged one is carried by one fire, in order`, {
  timeout: 120_000,
}, async (t: TestContext) => {
  const dice = diceOf(t);
  const home = mkdtempSync(join(tmpdir(), 'reveille-crash-'));
  /** The events that each fire carried, by fire id. */
  const fires = new Map<string, string>();
  const router = createServer(async (request, response) => {
    const wake = (await json(request)) as { fire_id: string; payload: { events: { data: { n: number } }[] } };
    const events = wake.payload.events.map(({ data }) => data.n).join();
    assert.equal(fires.get(wake.fire_id) ?? events, events, 'each try of a fire carries the same events');
    fires.set(wake.fire_id, events);
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
  }).listen(0, '127.0.0.1');
  await once(router, 'listening');
  const settings = {
    CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${(router.address() as AddressInfo).port}/internal/wake`,
  };
  let running: ChildProcess | undefined;
  t.after(async () => {
    if (running && running.exitCode === null && running.signalCode === null) await kill(running);
    router.closeAllConnections();
    router.close();
    rmSync(home, { recursive: true });
  });
  const identity = agentIdentity('ada', generateKey());
  const acknowledged: number[] = [];
  let path: string | undefined;
  let serial = 0;

  for (let round = 0; round < ROUNDS; round++) {
    const { child, url } = await start(home, settings);
    running = child;
    if (path === undefined) {
      const client = createChronosClient({ url, token: TOKEN, identity, principal: holdPrincipal() });
      const event = { source: 'webhook', verify: 'path', repeat: 'always', batch_up_to: 1 + dice(4) } as const;
      const { hook } = await client.createAlarm({ kind: 'event', wake_message: 'look', event });
      path = new URL(hook!.address, url).pathname;
    }
    const target = `${url}${path}`;
    const enough = acknowledged.length + 20 + dice(100);
    // One sender, so that the order is known; it repeats what was not acknowledged.
    const sending = (async () => {
      for (let n = serial; ; n++) {
        const headers = { 'content-type': 'application/json', 'idempotency-key': `event-${n}` };
        const answer = await fetch(target, { method: 'POST', headers, body: JSON.stringify({ n }) }).catch(
          () => undefined,
        );
        if (answer === undefined) return;
        assert.equal(answer.status, 200, await answer.text());
        acknowledged.push(n);
        serial = n + 1;
      }
    })();
    while (acknowledged.length < enough) await new Promise((resolve) => setTimeout(resolve, 1));
    await kill(child);
    await sending;
  }

  const { child } = await start(home, settings);
  running = child;
  const carried = () => [...fires.values()].flatMap((events) => events.split(',').map(Number));
  for (let time = 0; time < 1000 && carried().length < acknowledged.length; time++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const extra = carried().length - acknowledged.length;
  assert.ok(extra >= 0 && extra <= 1, 'the last event may have been stored without an answer');
  assert.deepEqual(carried().slice(0, acknowledged.length), acknowledged);
  t.diagnostic(`${ROUNDS} kills, ${acknowledged.length} events in ${fires.size} fires`);
});

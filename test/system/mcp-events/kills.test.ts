/**
 * chronosd, the router and the subscriber are killed (SIGKILL) again and again while alarms become due and turns end:
 * every event arrives. Only an event whose acknowledgement was lost with a killed process comes again, with its id.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  experimental_createMCPClient as createMCPClient,
  experimental_createMCPEventWebhook as createWebhook,
  type Experimental_MCPEventStore as EventStore,
  type Experimental_MCPEventSubscription as StoredSubscription,
} from '@ai-sdk/mcp';
import { getRequestListener } from '@hono/node-server';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { systemClock, wait } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { ADMIN_TOKEN, clientOf, fixtureMachine, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { eventually, eventuallyBy } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { COMPILED } from '../../support/quick-start.ts';
import { atEnd, listening, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { startIssuer } from '../mcp-http/mcp-http-bench.ts';
import { newSecret } from './mcp-events-bench.ts';

/** The whole campaign: REVEILLE_TEST_EVENTS=1000 REVEILLE_TEST_KILLS=50. */
const EVENTS = Number(process.env.REVEILLE_TEST_EVENTS ?? 60);
const KILLS = Number(process.env.REVEILLE_TEST_KILLS ?? 6);
const LIMIT_MS = 100_000;
const FIXTURE = fileURLToPath(new URL('./subscriber.fixture.ts', import.meta.url));
const TRANSPORT = 'transport-token-of-the-tests';
const CHRONOS_ADMIN = 'admin-token-of-the-chronosd-of-the-tests';

type Reached = { readonly url: string; readonly headers: { readonly authorization: string } };

/** The official client, which polls. It connects again whenever the router was killed, and continues at its cursor. */
function pollWithOfficialClient(owner: Owner, { url, headers }: Reached): string[] {
  const schema = z.looseObject({ events: z.array(z.looseObject({ eventId: z.string() })), cursor: z.string() });
  const seen: string[] = [];
  const over = new AbortController();
  let cursor: string | null = null;
  const life = async () => {
    const client = new Client({ name: 'test', version: '0' });
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
      for (;;) {
        const params = { name: 'alarm.due', cursor };
        const answer = await client.request({ method: 'events/poll', params }, schema);
        seen.push(...answer.events.map(({ eventId }) => eventId));
        cursor = answer.cursor;
        await wait(systemClock, 300, over.signal);
      }
    } finally {
      await client.close().catch(() => {});
    }
  };
  const polling = (async () => {
    while (!over.signal.aborted) {
      await life().catch(() => {});
      await wait(systemClock, 100, over.signal).catch(() => {});
    }
  })();
  atEnd(owner, async () => {
    over.abort();
    await polling;
  });
  return seen;
}

/** The client of the AI SDK and its handler of webhooks. */
async function receiveWithAiSdk(owner: Owner) {
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
  const address = await listening(owner, createServer(getRequestListener((request) => webhook(request))));
  return {
    ...{ seen, host: new URL(address).host },
    async subscribe({ url, headers }: Reached) {
      const client = await createMCPClient({
        transport: { type: 'http', url, headers },
        experimental_events: { store },
      });
      const delivery = { mode: 'webhook', url: `${address}/events`, allowInsecureLocalhost: true } as const;
      await client.experimental_events.subscribe({ name: 'alarm.due', delivery });
      await client.close();
    },
  };
}

test(`${EVENTS} events arrive over ${KILLS} kills`, { timeout: 2 * LIMIT_MS }, async (t) => {
  const folder = temporaryFolder(t);
  const issuer = await startIssuer(t);
  const [chronosPort, internalPort, publicPort, hookPort] = [
    ...[await reservePort(), await reservePort(), await reservePort(), await reservePort()],
  ];
  const secret = newSecret();
  const aiSdk = await receiveWithAiSdk(t);
  const file = join(folder, 'received.txt');
  for (const name of [file, `${file}.repeated`]) writeFileSync(name, '');
  const base = { PATH: process.env.PATH, HOME: folder, ...COMPILED };
  const chronosUrl = `http://127.0.0.1:${chronosPort}`;
  const routerUrl = `http://127.0.0.1:${internalPort}`;
  const publicUrl = `http://127.0.0.1:${publicPort}`;
  const users = { ada: 'ada', bob: 'bob' };
  const programs = {
    chronosd: {
      args: [PROGRAM, 'chronosd'],
      env: {
        ...{ CHRONOS_PORT: String(chronosPort), CHRONOS_DATA_DIR: join(folder, 'chronos') },
        ...{ CHRONOS_TOKEN: TRANSPORT, CHRONOS_ADMIN_TOKEN: CHRONOS_ADMIN, CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
        CHRONOS_AGENT_AUTH_SECRET: 'auth-secret-of-the-tests-of-events',
        CHRONOS_ROUTER_WAKE_URL: `${routerUrl}/internal/wake`,
      },
      ready: chronosUrl,
    },
    router: {
      args: [PROGRAM, 'router'],
      env: {
        ...{ ROUTER_PORT: String(internalPort), ROUTER_PUBLIC_PORT: String(publicPort), REVEILLE_SEPARATION: 'off' },
        ...{ ROUTER_DATA_DIR: join(folder, 'router'), ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
        ...{ ROUTER_CHRONOS_URL: chronosUrl, ROUTER_CHRONOS_TOKEN: TRANSPORT },
        ROUTER_CHRONOS_ADMIN_TOKEN: CHRONOS_ADMIN,
        ROUTER_MCP_ISSUERS: JSON.stringify([{ issuer: issuer.url, users }]),
        ROUTER_MCP_CALLBACK_ALLOW: `127.0.0.1:${hookPort},${aiSdk.host}`,
      },
      ready: routerUrl,
    },
    subscriber: {
      args: [FIXTURE],
      env: { FIXTURE_FILE: file, FIXTURE_PORT: String(hookPort), FIXTURE_SECRET: secret },
      ready: undefined,
    },
  };
  type Name = keyof typeof programs;
  const running = new Map<Name, ChildProcess>();
  const start = async (name: Name) => {
    const { args, env, ready } = programs[name];
    const child = spawn(process.execPath, args, { env: { ...base, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
    running.set(name, child);
    if (ready === undefined) return;
    const isReady = () =>
      fetch(`${ready}/healthz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    await eventuallyBy(child, `${name} is ready`, isReady);
  };
  const kill = async (name: Name) => {
    const child = running.get(name)!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  atEnd(t, async () => {
    for (const name of running.keys()) await kill(name);
  });
  for (const name of ['chronosd', 'router', 'subscriber'] as const) await start(name);

  const machine = fixtureMachine(folder);
  await clientOf(routerUrl).put('bob', { ...machine, spec: { ...machine.spec, cwd: folder, checks: 'commands' } });
  const subscribe = async (user: string, name: string) => {
    const bearer = await issuer.sign({ sub: user, aud: `${publicUrl}/mcp/chronos`, scope: 'alarms:read' });
    const delivery = { mode: 'webhook', url: `http://127.0.0.1:${hookPort}/hook`, secret };
    const response = await fetch(`${publicUrl}/mcp/chronos`, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...{ 'mcp-protocol-version': '2025-11-25', authorization: `Bearer ${bearer}` },
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'events/subscribe', params: { name, delivery } }),
    });
    const body = await response.text();
    return String(/sub_[0-9a-f]{32}/.exec(body)?.[0] ?? assert.fail(body));
  };
  const due = await subscribe('ada', 'alarm.due');
  const bearer = await issuer.sign({ sub: 'ada', aud: `${publicUrl}/mcp/chronos`, scope: 'alarms:read' });
  const reached = { url: `${publicUrl}/mcp/chronos`, headers: { authorization: `Bearer ${bearer}` } };
  await aiSdk.subscribe(reached);
  const polled = pollWithOfficialClient(t, reached);
  // A turn that a killed router leaves behind has failed.
  const ends = new Map([
    [await subscribe('bob', 'turn.finished'), 'finished'],
    [await subscribe('bob', 'turn.failed'), 'failed'],
  ]);

  const clientFor = async (user: string) => {
    const key = generateKey();
    const client = createChronosClient({
      ...{ url: chronosUrl, token: TRANSPORT, adminToken: CHRONOS_ADMIN, principal: holdPrincipal() },
      identity: agentIdentity(user, key),
    });
    await client.enrollAgent({ label: user, public_key: key.publicKeyHex });
    return client;
  };
  const [ada, bob] = [await clientFor('ada'), await clientFor('bob')];
  const began = Date.now();
  const expected = new Set<string>();
  const spread = Math.max(2000, KILLS * 1500);
  for (let n = 0; n < EVENTS; n++) {
    // Three of four are due alarms of a user without a machine; the others are turns of commands.
    const isTurn = n % 4 === 3;
    const at = began + 5000 + Math.round((spread * n) / EVENTS) + EVENTS * 6;
    const fire_at = new Date(at).toISOString();
    const { id } = await (isTurn ? bob : ada).createAlarm({
      ...{ kind: 'once', wake_message: `event ${n}`, fire_at },
      ...(isTurn && { run: { argv: ['/bin/true'] } }),
    });
    expected.add(`${id}@${at}:${isTurn ? 'end' : 'due'}`);
  }
  const linesOf = (name: string) =>
    readFileSync(name, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  /** The events of a file; each end of a turn must come to its own subscription. */
  const received = (name = file) =>
    linesOf(name).map((line) => {
      const [subscription, id] = line.split('\t') as [string, string];
      const end = ends.get(subscription);
      if (end !== undefined && id.endsWith(`:${end}`)) return id.replace(/[a-z]+$/, 'end');
      return subscription === due ? id : line;
    });
  const names = ['chronosd', 'router', 'subscriber'] as const;
  for (let n = 0; n < KILLS; n++) {
    const name = names[n % 3]!;
    await kill(name);
    await wait(systemClock, 100 + Math.random() * 300);
    await start(name);
    await wait(systemClock, 200 + Math.random() * 500);
  }
  const missing = () => {
    const seen = new Set(received());
    return [...expected].filter((one) => !seen.has(one));
  };
  await eventually('all have arrived', () => missing().length === 0, LIMIT_MS).catch(async () => {
    const [first] = missing();
    const { fires } = await (first!.endsWith('due') ? ada : bob).listFires(first!.split('@')[0]!);
    assert.fail(`${missing().length} of ${EVENTS} are missing, such as ${first}: ${JSON.stringify(fires)}`);
  });
  const all = received();
  assert.deepEqual(
    all.filter((one, at) => !expected.has(one) || all.indexOf(one) !== at),
    [],
    'nothing else, nothing twice, and no gap',
  );
  const dues = [...expected].filter((one) => one.endsWith(':due'));
  const reachAll = (seen: readonly string[]) => () => dues.every((one) => seen.includes(one));
  await eventually('the official client has polled them', reachAll(polled), LIMIT_MS);
  assert.deepEqual(polled.toSorted(), dues.toSorted(), 'nothing else, and nothing twice');
  await eventually('the AI SDK has received them', reachAll(aiSdk.seen), LIMIT_MS);
  assert.deepEqual([...new Set(aiSdk.seen)].toSorted(), dues.toSorted());
  const aiRepeated = aiSdk.seen.length - dues.length;
  assert.ok(aiRepeated <= KILLS, `${aiRepeated} repetitions at the AI SDK`);
  t.diagnostic(
    `the official client polled ${polled.length} of ${dues.length}; the AI SDK received ${dues.length}, ${aiRepeated} of them again`,
  );
  const repeated = received(`${file}.repeated`).length;
  const failed = linesOf(file).filter((line) => line.endsWith(':failed')).length;
  assert.ok(repeated <= KILLS * (ends.size + 1), `${repeated} repetitions`);
  const seconds = Math.round((Date.now() - began) / 1000);
  t.diagnostic(
    `${all.length} of ${EVENTS} events, ${KILLS} kills, ${repeated} repeated, ${failed} failed, ${seconds} s`,
  );
});

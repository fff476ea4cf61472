/**
 * Events and checks. Events: signed webhooks at chronosd, for one alarm and for many users, from the start of each
 * request to its wake at a receiver, one wake each and collected. Checks: alarms whose check says no, through chronosd
 * and a real router; the processor time of both per check, and whether anything was started.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { randomSecret } from '../../src/kit/identity/secrets.ts';
import { webhookSigner } from '../../src/kit/identity/webhook-signature.ts';
import { createRouterClient } from '../../src/router/client.ts';
import { processorSeconds } from '../processes.ts';
import { percentile } from '../statistics.ts';
import { CHRONOS_TOKEN, type RunningChronosd, reveille, startChronosd } from '../systems/chronosd.ts';
import type { Workbench } from '../workbench.ts';
import { type Context, figure } from './context.ts';

export type EventsRow = {
  store: string;
  /** Alarms of different users that share the events. */
  alarms: number;
  /** Whether one wake carries all events of a second. */
  collected: boolean;
  events: number;
  perSecond: number;
  /** Events without a 2xx. */
  refused: number;
  /** Events with a 2xx that no wake carried, and events that two wakes with different fire ids carried. */
  lost: number;
  repeated: number;
  wakes: number;
  /** From the start of the request to the wake at its receiver, milliseconds. */
  p50: number;
  p99: number;
  most: number;
};

export type ChecksRow = {
  store: string;
  checks: number;
  skipped: number;
  /** Deliveries to the machine. */
  started: number;
  /** Processor time per check beside the same alarms' wakes without a check, milliseconds; null without /proc. */
  chronosdMs: number | null;
  routerMs: number | null;
};

export type ConditionsResult = { events: EventsRow[]; checks: ChecksRow[] };

const CONCURRENT = 64;
const USERS = 20;
const WARM_UP = 500;
const PATIENCE_MS = 60_000;

type Client = ReturnType<typeof createChronosClient>;

function clientOf(url: string, user: string): Client {
  const identity = agentIdentity(user, generateKey());
  return createChronosClient({ url, token: CHRONOS_TOKEN, identity, principal: holdPrincipal() });
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Waits for a condition, at most for {@link PATIENCE_MS}. */
async function until(isMet: () => boolean): Promise<void> {
  const limit = performance.now() + PATIENCE_MS;
  while (!isMet() && performance.now() < limit) await pause(50);
}

type Wake = { fire_id: string; payload?: { events: { data: { n: number } }[] } };

/** Notes when each event arrives, and with which fire. */
async function startReceiver() {
  const seen = new Map<number, { at: number; fire: string }>();
  const fires = new Set<string>();
  let repeated = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const at = performance.now();
      response.statusCode = 202;
      response.end('{"ok":true,"data":{}}');
      const { fire_id, payload } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Wake;
      fires.add(fire_id);
      for (const { data } of payload?.events ?? []) {
        const known = seen.get(data.n);
        if (known === undefined) seen.set(data.n, { at, fire: fire_id });
        else if (known.fire !== fire_id) repeated++;
      }
    });
  });
  server.keepAliveTimeout = 60_000;
  return { seen, fires, url: await listening(server), server, repeated: () => repeated };
}

async function measureEvents(
  { plan, reveille: systems, progress }: Context,
  { alarms, collected }: Pick<EventsRow, 'alarms' | 'collected'>,
): Promise<EventsRow[]> {
  const { events: count, seconds } = plan.conditions;
  const rows: EventsRow[] = [];
  for (const system of systems) {
    const shape = collected ? 'one alarm, collected' : alarms === 1 ? 'one alarm' : `${alarms} alarms`;
    progress.step(`events: ${figure(count)} in ${seconds} s for ${shape}, ${system.title}`);
    const receiver = await startReceiver();
    const installation = await system.install();
    try {
      const running = (await installation.start(`${receiver.url}/internal/wake`)) as RunningChronosd;
      const gathers = collected ? { at_most_every: 'PT1S', batch_up_to: 1000 } : {};
      const openHook = async (user: string) => {
        const { hook } = await clientOf(running.url, user).createAlarm({
          wake_message: 'an event',
          event: { source: 'webhook', repeat: 'always', ...gathers },
        });
        return { address: new URL(hook!.address, running.url), sign: webhookSigner(hook!.secret!) };
      };
      const hooks = await Promise.all(Array.from({ length: alarms }, (_, user) => openHook(`events-${user}`)));
      // Each owner's events of a minute are limited.
      const warmUp = await openHook('warm-up');
      const sent = new Map<number, number>();
      let refused = 0;
      const send = async (n: number) => {
        const body = JSON.stringify({ n });
        const { address, sign } = n < 0 ? warmUp : hooks[n % alarms]!;
        const signed = sign({ id: `event-${n}`, timestampSeconds: Date.now() / 1000, body });
        sent.set(n, performance.now());
        const headers = { 'content-type': 'application/json', ...signed };
        const answer = await fetch(address, { method: 'POST', headers, body });
        await answer.arrayBuffer();
        if (answer.ok) return;
        refused++;
        sent.delete(n);
      };
      // Connections are open and the code is compiled when the measurement begins.
      for (let n = 0; n < WARM_UP; n++) await send(-1 - n);
      await until(() => receiver.seen.size === sent.size);
      for (const known of [sent, receiver.seen, receiver.fires]) known.clear();
      const began = performance.now();
      const open = new Set<Promise<void>>();
      for (let n = 0; n < count; n++) {
        const due = began + (1000 * seconds * n) / count;
        if (due > performance.now()) await pause(due - performance.now());
        while (open.size >= CONCURRENT) await Promise.race(open);
        const sending = send(n).finally(() => open.delete(sending));
        open.add(sending);
      }
      await Promise.all(open);
      const took = (performance.now() - began) / 1000;
      await until(() => receiver.seen.size >= sent.size);
      const latencies = [...sent]
        .flatMap(([n, at]) => (receiver.seen.has(n) ? [receiver.seen.get(n)!.at - at] : []))
        .sort((one, other) => one - other);
      rows.push({
        ...{ store: system.store, alarms, collected, events: count, perSecond: count / took, refused },
        ...{ lost: sent.size - latencies.length, repeated: receiver.repeated(), wakes: receiver.fires.size },
        ...{ p50: percentile(latencies, 0.5) ?? 0, p99: percentile(latencies, 0.99) ?? 0, most: latencies.at(-1) ?? 0 },
      });
    } finally {
      await installation.remove();
      receiver.server.closeAllConnections();
      receiver.server.close();
    }
  }
  return rows;
}

/** A site that a check reads, and a machine that counts its deliveries. */
async function startSite() {
  let deliveries = 0;
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === '/chat') deliveries++;
    response.setHeader('content-type', 'application/json');
    response.statusCode = request.url === '/chat' ? 202 : 200;
    response.end('{"ok":true,"data":{"status":"ok","state":"closed"}}');
  });
  server.keepAliveTimeout = 60_000;
  return { url: await listening(server), server, deliveries: () => deliveries };
}

async function startRouter(bench: Workbench, wakeToken: string, site: string) {
  const adminToken = randomSecret();
  const child = bench.start('the router of the checks', reveille('router', '--json'), {
    ...{ REVEILLE_HOME: bench.folder, REVEILLE_LOG: 'error', ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0' },
    ...{ ROUTER_DATA_DIR: bench.makeFolder('router'), ROUTER_WAKE_TOKEN: wakeToken },
    ...{ ROUTER_ADMIN_TOKEN: adminToken, ROUTER_CHECK_ALLOW: new URL(site).host },
  });
  const { url } = await child.says<{ url: string }>();
  return { child, url, client: createRouterClient({ url, token: adminToken }) };
}

/** Runs alarms with or without a check, and returns the processor seconds of both processes. */
async function runChecks(context: Context, system: Context['reveille'][number], hasCheck: boolean) {
  const { bench, plan } = context;
  const { checks: count, checkSeconds } = plan.conditions;
  const site = await startSite();
  const wakeToken = randomSecret();
  const router = await startRouter(bench, wakeToken, site.url);
  const installation = await system.install();
  try {
    const settings = { CHRONOS_WAKE_TOKEN: wakeToken, CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake` };
    const running = await startChronosd(bench, installation.location, settings);
    try {
      const users = Array.from({ length: 20 }, (_, n) => `checker-${n}`);
      for (const user of users)
        await router.client.put(user, { provider: 'http', spec: { url: site.url }, token: randomSecret() });
      const clients = users.map((user) => clientOf(running.url, user));
      const check = { http: { url: `${site.url}/state`, pointer: '/data/state', equals: 'open' } };
      const dueFrom = Date.now() + 5_000 + count * 2;
      const ids: [Client, string][] = [];
      for (let n = 0; n < count; n += clients.length)
        await Promise.all(
          clients.map(async (client, at) => {
            const fire_at = new Date(dueFrom + (1000 * checkSeconds * (n + at)) / count).toISOString();
            const alarm = { kind: 'once' as const, wake_message: 'look', fire_at, ...(hasCheck && { check }) };
            const { id } = await client.createAlarm(alarm);
            ids.push([client, id]);
          }),
        );
      await pause(Math.max(0, dueFrom - 500 - Date.now()));
      const pids = [running.pid, router.child.pid];
      const before = pids.map(processorSeconds);
      await pause(Math.max(0, dueFrom + checkSeconds * 1000 + 3_000 - Date.now()));
      const after = pids.map(processorSeconds);
      const spent = pids.map((_, at) =>
        before[at] === undefined || after[at] === undefined ? null : after[at]! - before[at]!,
      );
      let skipped = 0;
      for (const [client, id] of ids)
        if (hasCheck)
          skipped += (await client.listFires(id)).fires.filter(({ outcome }) => outcome === 'skipped').length;
      return { spent, skipped, deliveries: site.deliveries(), count: ids.length };
    } finally {
      await running.stop();
    }
  } finally {
    await router.child.stop();
    await installation.remove();
    site.server.closeAllConnections();
    site.server.close();
  }
}

async function measureChecks(context: Context): Promise<ChecksRow[]> {
  const rows: ChecksRow[] = [];
  for (const system of context.reveille) {
    context.progress.step(`checks: ${figure(context.plan.conditions.checks)} that say no, ${system.title}`);
    const { spent, skipped, deliveries, count } = await runChecks(context, system, true);
    const each = (seconds: number | null | undefined) => (seconds == null ? null : (1000 * seconds) / count);
    rows.push({
      ...{ store: system.store, checks: count, skipped, started: deliveries },
      ...{ chronosdMs: each(spent[0]), routerMs: each(spent[1]) },
    });
  }
  return rows;
}

export async function measureConditions(context: Context): Promise<ConditionsResult> {
  const events: EventsRow[] = [];
  for (const shape of [
    { alarms: USERS, collected: false },
    { alarms: 1, collected: false },
    { alarms: 1, collected: true },
  ])
    events.push(...(await measureEvents(context, shape)));
  return { events, checks: await measureChecks(context) };
}

/**
 * Cost of open consoles for chronosd: the same burst without a console, and with two hundred users' consoles at the
 * router. Each console reads the list again at each change event, as the page does.
 */
import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { alarmKeyOf, personKeyMark, rightsOf } from '../../src/kit/identity/person-rights.ts';
import { randomSecret } from '../../src/kit/identity/secrets.ts';
import { createRouterClient } from '../../src/router/client.ts';
import type { Child } from '../children.ts';
import { runOnce } from '../measure.ts';
import { OWNERS } from '../series.ts';
import { median, percentile } from '../statistics.ts';
import { CHRONOS_ADMIN_TOKEN, CHRONOS_TOKEN, type RunningChronosd, reveille } from '../systems/chronosd.ts';
import { Unavailable } from '../systems/system.ts';
import type { Workbench } from '../workbench.ts';
import type { Context } from './context.ts';

type Round = { perSecond: number; processorMicros: number | null; looks: number; wallSeconds: number };

export type ConsolesResult = {
  count: number;
  seconds: number;
  rows: {
    consoles: number;
    /** Fires per second, and processor time of chronosd per fire. */
    perSecond: number;
    processorMicros: number | null;
    /** Share of the fires per second without a console, in the same round. */
    ofNone: number;
    /**
     * Additional processor time of chronosd compared with no console, in seconds per second: this share of a core is
     * not available for fires.
     */
    ofCore: number | null;
    /** Pages that the consoles read during the run. */
    looks: number;
    rounds: Round[];
  }[];
  /** Events at a steady rate, one stream for each user. Results of earlier versions lack them. */
  events?: EventLatency[];
};

/** From the end of an attempt to the event at its reader, which runs on the same computer; milliseconds. */
export type EventLatency = {
  store: string;
  perSecond: number;
  streams: number;
  fires: number;
  missing: number;
  p50: number;
  p99: number;
  most: number;
};

/** The users whose alarms fire. */
const userNames = (count: number) =>
  Array.from({ length: count }, (_, at) => `user-${String(at % OWNERS).padStart(5, '0')}`);
const WARMUP = { afterMs: 0, spanMs: 2_000, count: 2_000 };
/** Time until all consoles are connected and idle. */
const COME_IN_MS = 25_000;
const PATIENCE_MS = 60_000;
const STEADY = { perSecond: 1000, seconds: 10 };
/** Time until all streams are open. */
const CONNECT_MS = 10_000;

async function startRouter(bench: Workbench, chronosUrl: string) {
  const adminToken = randomSecret();
  const child = bench.start('the router of the consoles', reveille('router', '--json'), {
    ...{ REVEILLE_HOME: bench.folder, REVEILLE_LOG: 'error', ROUTER_PORT: '0' },
    ...{ ROUTER_DATA_DIR: bench.makeFolder('router'), ROUTER_WAKE_TOKEN: randomSecret() },
    ...{ ROUTER_ADMIN_TOKEN: adminToken, ROUTER_CONSOLE: '1' },
    ...{ ROUTER_CHRONOS_URL: chronosUrl, ROUTER_CHRONOS_TOKEN: CHRONOS_TOKEN },
  });
  const { url, public_url } = await child.says<{ url: string; public_url: string }>();
  return { child, origin: public_url, client: createRouterClient({ url, token: adminToken }) };
}

type House = Awaited<ReturnType<typeof startRouter>>;

/** One open console: a stream, and a read of the alarms for each change event, one at a time. */
async function open({ origin, client }: House, chronosUrl: string, user: string, onRead: () => void): Promise<void> {
  const known = await client.users(user);
  const { id, token } = known.length === 0 ? await client.addUser(user, {}) : await client.addUserToken(user, {});
  const { publicKeyHex: alarm_key } = alarmKeyOf(rightsOf(token));
  const admin = createChronosClient({ url: chronosUrl, token: CHRONOS_TOKEN, adminToken: CHRONOS_ADMIN_TOKEN });
  await admin.enrollAgent({ label: user, public_key: alarm_key });
  const alarm_mark = personKeyMark(user, { owner: user, publicKey: alarm_key }, CHRONOS_ADMIN_TOKEN);
  await client.grantUser(user, id, { alarm_key, alarm_mark });
  const answer = await fetch(`${origin}/sign-in`, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token }).toString(),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0];
  const base = /href="(\/~[^"]+\/)upcoming"/.exec(await answer.text())?.[1];
  if (cookie === undefined || base === undefined) throw new Error(`${user} cannot sign in: ${answer.status}`);
  let isLooking = false;
  let again = false;
  const readPage = async (): Promise<void> => {
    again = isLooking;
    if (isLooking) return;
    isLooking = true;
    const headers = { cookie, 'x-reveille-part': 'main' };
    const page = await fetch(`${origin}${base}alarms`, { headers }).catch(() => undefined);
    await page?.text().catch(() => undefined);
    if (page?.ok) onRead();
    isLooking = false;
    if (again) setTimeout(() => void readPage(), 400);
  };
  await new Promise<void>((resolve, reject) => {
    const stream = request(`${origin}${base}live`, { headers: { cookie }, agent: false }, (incoming) => {
      if (incoming.statusCode !== 200) return reject(new Error(`the stream answered ${incoming.statusCode}`));
      incoming.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('event: hello')) resolve();
        if (text.includes('data: alarms')) void readPage();
      });
      incoming.on('error', () => {});
    });
    stream.on('error', reject);
    stream.end();
  });
}

async function drain({ bench, plan, reveille: systems }: Context, consoles: number): Promise<Round> {
  const system = systems.find(({ store }) => store === 'sqlite');
  if (!system) throw new Unavailable('the consoles are measured on SQLite, which is not among the systems');
  const { count, seconds } = plan.consoles;
  let looks = 0;
  let began = 0;
  let child: Child | undefined;
  const during = async ({ running }: { running: unknown[] }) => {
    began = Date.now();
    const [chronosd] = running as RunningChronosd[];
    const router = await startRouter(bench, chronosd!.url);
    child = router.child;
    const all = userNames(consoles);
    for (let at = 0; at < all.length; at += 8)
      await Promise.all(all.slice(at, at + 8).map((user) => open(router, chronosd!.url, user, () => looks++)));
    await pause(0);
  };
  const burst = { afterMs: COME_IN_MS, spanMs: seconds * 1000, count };
  try {
    return await runOnce(bench, system, { phases: [WARMUP, burst], patienceMs: PATIENCE_MS, during }, async (run) => {
      const series = run.series[1]!;
      const { lateness, lastArrival } = await run.arrivals(series);
      if (lateness.missing > 0) throw new Error(`${lateness.missing} fires did not arrive`);
      const perSecond = (1000 * count) / (lastArrival - series.firstDue);
      const wallSeconds = (Date.now() - began) / 1000;
      return { perSecond, processorMicros: run.own?.processorMicroseconds ?? null, looks, wallSeconds };
    });
  } finally {
    await child?.stop();
  }
}

/** Opens a user's stream, and notes how long after its attempt each delivered fire arrives. */
async function listen(url: string, user: string, signal: AbortSignal, note: (latencyMs: number) => void) {
  const identity = agentIdentity(user, generateKey());
  const client = createChronosClient({ url, token: CHRONOS_TOKEN, identity, principal: holdPrincipal() });
  const opened = Promise.withResolvers<void>();
  const reading = (async () => {
    const follow = { signal, types: ['fire.delivered'] as const, onConnection: () => opened.resolve() };
    for await (const { type, at } of client.events(follow))
      if (type === 'fire.delivered') note(Date.now() - Date.parse(at));
  })();
  reading.catch(opened.reject);
  await opened.promise;
}

async function measureEvents({ bench, plan, reveille: systems, progress }: Context): Promise<EventLatency[]> {
  const results: EventLatency[] = [];
  for (const system of systems) {
    progress.step(`events: ${system.store}, ${plan.consoles.consoles} streams at ${STEADY.perSecond} fires/s`);
    const latencies: number[] = [];
    const ended = new AbortController();
    const during = async ({ running }: { running: unknown[] }) => {
      const [chronosd] = running as RunningChronosd[];
      const all = userNames(plan.consoles.consoles);
      const note = (latencyMs: number) => void latencies.push(latencyMs);
      for (let at = 0; at < all.length; at += 8)
        await Promise.all(all.slice(at, at + 8).map((user) => listen(chronosd!.url, user, ended.signal, note)));
    };
    const fires = STEADY.perSecond * STEADY.seconds;
    const steady = { afterMs: CONNECT_MS, spanMs: STEADY.seconds * 1000, count: fires };
    await runOnce(bench, system, { phases: [steady], patienceMs: PATIENCE_MS, during }, async () => {
      await pause(1000);
      ended.abort();
      latencies.sort((one, other) => one - other);
      const share = (part: number) => percentile(latencies, part) ?? 0;
      results.push({
        ...{ store: system.store, perSecond: STEADY.perSecond, streams: plan.consoles.consoles, fires },
        ...{ missing: fires - latencies.length, p50: share(0.5), p99: share(0.99), most: latencies.at(-1) ?? 0 },
      });
    });
  }
  return results;
}

export async function measureConsoles(context: Context): Promise<ConsolesResult> {
  const { plan, progress } = context;
  const { count, seconds, consoles } = plan.consoles;
  const numbers = [0, consoles];
  const rounds = new Map<number, Round[]>(numbers.map((number) => [number, []]));
  for (let round = 0; round < plan.rounds; round++)
    for (const number of round % 2 === 0 ? numbers : numbers.toReversed()) {
      progress.step(`consoles: ${number} open, round ${round + 1} of ${plan.rounds}`);
      rounds.get(number)!.push(await drain(context, number));
    }
  const none = rounds.get(0)!;
  const events = await measureEvents(context);
  return {
    ...{ count, seconds, events },
    rows: numbers.map((number) => {
      const own = rounds.get(number)!;
      return {
        consoles: number,
        perSecond: median(own.map(({ perSecond }) => perSecond))!,
        processorMicros: median(own.map(({ processorMicros }) => processorMicros)),
        ofNone: median(own.map(({ perSecond }, at) => perSecond / none[at]!.perSecond))!,
        ofCore: median(
          own.map(({ processorMicros: micros, wallSeconds }, at) => {
            const { processorMicros: without } = none[at]!;
            const jobs = count + WARMUP.count;
            return micros === null || without === null ? null : ((micros - without) * jobs) / 1e6 / wallSeconds;
          }),
        ),
        looks: median(own.map(({ looks }) => looks))!,
        rounds: own,
      };
    }),
  };
}

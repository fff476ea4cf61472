/**
 * A user's requests through the router's public listener, compared with a bare reverse proxy and no proxy. Measures the
 * added latency, the throughput, and the time of the first request that must wake the machine.
 */
import { join } from 'node:path';
import { Pool } from 'undici';
import { randomSecret } from '../../src/kit/identity/secrets.ts';
import { createRouterClient, type RouterClient } from '../../src/router/client.ts';
import { rotated } from '../plan.ts';
import { processorSeconds } from '../processes.ts';
import { median, percentile } from '../statistics.ts';
import { reveille } from '../systems/chronosd.ts';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import type { Context } from './context.ts';

export type ProxyResult = {
  ways: {
    way: ProxyWay;
    title: string;
    /** One request at a time, milliseconds. */
    p50: number;
    p99: number;
    /** The difference to the case without a proxy, in the same round. */
    addedP50: number;
    addedP99: number;
    /** Requests per second with many in parallel. */
    perSecond: number;
    /**
     * Processor time of the proxy per request, where there is a proxy and the system reports it. Other load on the
     * machine does not change it.
     */
    processorMicros: number | null;
    rounds: Round[];
  }[];
  wakes: { title: string; milliseconds: number; rounds: number[] }[];
};

type Round = { p50: number; p99: number; perSecond: number; processorMicros: number | null };

const TITLES = {
  direct: 'no proxy',
  bare: 'bare reverse proxy',
  listener: "the router's public listener",
} as const;
export type ProxyWay = keyof typeof TITLES;

const PROGRAM = join(BENCH_FOLDER, 'hands', 'proxy.ts');
const USER = 'bench';
/** Parallel requests in the throughput measurement. */
const CLIENTS = 32;
const PATH = '/conversations?limit=20';

type ProxyAddress = { url: string; token?: string | undefined; pid?: number };

async function startRouter(bench: Workbench) {
  const adminToken = randomSecret();
  const most = '1000000';
  const child = bench.start('the router', reveille('router', '--json'), {
    REVEILLE_HOME: bench.folder,
    ROUTER_PORT: '0',
    ROUTER_DATA_DIR: bench.makeFolder('router'),
    ROUTER_WAKE_TOKEN: randomSecret(),
    ROUTER_ADMIN_TOKEN: adminToken,
    ROUTER_PUBLIC_REQUESTS_PER_MINUTE: most,
    ROUTER_PUBLIC_REQUESTS_PER_USER: '1000',
    REVEILLE_LOG: 'error',
  });
  const { url, public_url } = await child.says<{ url: string; public_url: string }>();
  const client = createRouterClient({ url, token: adminToken });
  const { token } = await client.addUser(USER, {});
  return { child, client, place: { url: public_url, token, pid: child.pid } };
}

/** Sends requests over so many connections; `more` says whether there is another one. @returns the duration of each */
async function send({ url, token }: ProxyAddress, clients: number, more: () => boolean): Promise<number[]> {
  const pool = new Pool(url, { connections: clients, pipelining: 1 });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const took: number[] = [];
  const work = async () => {
    while (more()) {
      const began = performance.now();
      const { statusCode, body } = await pool.request({ path: PATH, method: 'GET', headers });
      await body.text();
      if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`);
      took.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: clients }, work));
  await pool.close();
  return took;
}

const times = (count: number) => () => count-- > 0;
const until = (end: number) => () => performance.now() < end;

async function round(address: ProxyAddress, calls: number, seconds: number): Promise<Round> {
  const took = (await send(address, 1, times(calls))).sort((one, other) => one - other);
  const used = () => (address.pid === undefined ? undefined : processorSeconds(address.pid));
  const before = used();
  const began = performance.now();
  const many = await send(address, CLIENTS, until(began + seconds * 1000));
  const perSecond = (many.length * 1000) / (performance.now() - began);
  const after = used();
  const spent = before === undefined || after === undefined ? undefined : after - before;
  const processorMicros = spent === undefined ? null : (1e6 * spent) / many.length;
  return { p50: percentile(took, 0.5)!, p99: percentile(took, 0.99)!, perSecond, processorMicros };
}

/** From the request to a sleeping machine until its answer. */
async function wake(address: ProxyAddress, router: RouterClient): Promise<number> {
  await router.suspend(USER);
  await router.restore(USER);
  const [took] = await send(address, 1, times(1));
  return took!;
}

/** From the start of the same program to its answer: the lower limit of a wake. */
async function bareStart(bench: Workbench): Promise<number> {
  const began = performance.now();
  const child = bench.start('a bare daemon', [PROGRAM, 'target']);
  await send(await child.says<ProxyAddress>(), 1, times(1));
  const took = performance.now() - began;
  await child.stop();
  return took;
}

export async function measureProxy({ bench, plan, progress }: Context): Promise<ProxyResult> {
  const { calls, seconds, wakes } = plan.proxy;
  const target = bench.start('the target', [PROGRAM, 'target']);
  const direct = await target.says<ProxyAddress>();
  const proxy = bench.start('the bare proxy', [PROGRAM, 'bare', direct.url]);
  const bare = { ...(await proxy.says<ProxyAddress>()), pid: proxy.pid };
  const router = await startRouter(bench);
  await router.client.put(USER, { provider: 'http', spec: { url: direct.url } });
  const addresses: { readonly [Way in ProxyWay]: ProxyAddress } = { direct, bare, listener: router.place };
  const ways = Object.keys(TITLES) as ProxyWay[];
  const found = new Map<ProxyWay, Round[]>(ways.map((way) => [way, []]));
  for (const way of ways) await round(addresses[way], 500, 1);
  for (let number = 0; number < plan.rounds; number++) {
    progress.step(`proxy: round ${number + 1} of ${plan.rounds}`);
    for (const way of rotated(ways, number)) found.get(way)!.push(await round(addresses[way], calls, seconds));
  }
  progress.step('proxy: wake by the first request');
  const command = [process.execPath, PROGRAM, 'target'];
  await router.client.put(USER, { provider: 'process', spec: { command } });
  const times = { wake: [] as number[], bare: [] as number[] };
  await wake(router.place, router.client);
  for (let number = 0; number < wakes; number++) {
    times.bare.push(await bareStart(bench));
    times.wake.push(await wake(router.place, router.client));
  }
  await Promise.all([target, proxy, router.child].map((child) => child.stop()));
  const base = found.get('direct')!;
  return {
    ways: ways.map((way) => {
      const rounds = found.get(way)!;
      const middle = (of: (round: number) => number) => median(rounds.map((_, at) => of(at)))!;
      return {
        ...{ way, title: TITLES[way], rounds },
        p50: middle((at) => rounds[at]!.p50),
        p99: middle((at) => rounds[at]!.p99),
        addedP50: middle((at) => rounds[at]!.p50 - base[at]!.p50),
        addedP99: middle((at) => rounds[at]!.p99 - base[at]!.p99),
        perSecond: middle((at) => rounds[at]!.perSecond),
        processorMicros: median(rounds.map(({ processorMicros }) => processorMicros)),
      };
    }),
    wakes: [
      {
        title: 'the daemon alone, from its start to its first answer',
        milliseconds: median(times.bare)!,
        rounds: times.bare,
      },
      { title: 'a request that wakes it through the listener', milliseconds: median(times.wake)!, rounds: times.wake },
    ],
  };
}

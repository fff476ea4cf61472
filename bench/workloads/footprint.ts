/** Memory of an idle chronosd, and the start time of each command until it is usable. */

import { randomSecret } from '../../src/kit/identity/secrets.ts';
import type { Child } from '../children.ts';
import { residentMegabytes } from '../processes.ts';
import { median } from '../statistics.ts';
import { chronosdEnvironment, reveille, startChronosd } from '../systems/chronosd.ts';
import type { Workbench } from '../workbench.ts';
import type { Context } from './context.ts';

export type Footprint = {
  idle: { system: string; title: string; residentMegabytes: number }[];
  /** Milliseconds from the start of the process, medians. */
  starts: { command: string; until: string; milliseconds: number; rounds: number[] }[];
};

/** Time without requests before a daemon counts as idle. */
const IDLE_MS = 5_000;

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '0' } },
};

type Start = {
  command: string;
  until: string;
  environment(bench: Workbench): Record<string, string>;
  words: readonly string[];
  /** Resolves when the command is usable. */
  ready(child: Child): Promise<unknown>;
};

const listening = { until: 'it accepts requests', ready: (child: Child) => child.says() };

const STARTS: readonly Start[] = [
  {
    command: 'reveille chronosd',
    words: ['chronosd', '--json'],
    environment: (bench) => chronosdEnvironment(bench, { folder: bench.makeFolder('start') }),
    ...listening,
  },
  {
    command: 'reveille router',
    words: ['router', '--json'],
    environment: (bench) => ({
      ROUTER_PORT: '0',
      ROUTER_DATA_DIR: bench.makeFolder('start'),
      ROUTER_WAKE_TOKEN: randomSecret(),
      ROUTER_ADMIN_TOKEN: randomSecret(),
    }),
    ...listening,
  },
  {
    command: 'reveille neo',
    words: ['neo', '--json'],
    environment: (bench) => ({
      NEO_PORT: '0',
      NEO_DATA_DIR: bench.makeFolder('start'),
      NEO_DAEMON_TOKEN: randomSecret(),
    }),
    ...listening,
  },
  {
    command: 'reveille mcp',
    words: ['mcp'],
    until: 'it has answered `initialize`',
    environment: () => ({}),
    ready(child) {
      child.write(`${JSON.stringify(INITIALIZE)}\n`);
      return child.says();
    },
  },
  {
    command: 'reveille --version',
    words: ['--version'],
    until: 'it has ended',
    environment: () => ({}),
    ready: (child) => child.ended(),
  },
];

async function timeStart(bench: Workbench, start: Start): Promise<number> {
  const environment = { REVEILLE_HOME: bench.folder, ...start.environment(bench) };
  const startedAt = performance.now();
  const child = bench.start(start.command, reveille(...start.words), environment);
  await start.ready(child);
  const took = performance.now() - startedAt;
  await child.stop();
  return took;
}

async function measureStarts({ bench, plan, progress }: Context): Promise<Footprint['starts']> {
  const found: Footprint['starts'] = [];
  for (const start of STARTS) {
    progress.step(`cold start: ${start.command}`);
    // The very first start fills Node's compile cache, as the first start after an installation does.
    await timeStart(bench, start);
    const rounds: number[] = [];
    for (let round = 0; round < plan.footprint.starts; round++) rounds.push(await timeStart(bench, start));
    found.push({ command: start.command, until: start.until, milliseconds: median(rounds)!, rounds });
  }
  return found;
}

async function measureIdle({ bench, progress, reveille: systems }: Context): Promise<Footprint['idle']> {
  const found: Footprint['idle'] = [];
  for (const { name, title, install } of systems) {
    progress.step(`idle: ${title}`, Date.now() + IDLE_MS);
    const installation = await install();
    const chronosd = await startChronosd(bench, installation.location);
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    found.push({ system: name, title, residentMegabytes: residentMegabytes(chronosd.pid) });
    await chronosd.stop();
    await installation.remove();
  }
  return found;
}

export async function measureFootprint(context: Context): Promise<Footprint> {
  return { idle: await measureIdle(context), starts: await measureStarts(context) };
}

/** The peers, each with its default settings and with the best settings of its documentation. */
import { join } from 'node:path';
import { createDatabase, type Database, dropDatabase, settleDatabase } from '../databases.ts';
import type { PeerName } from '../plan.ts';
import type { Series } from '../series.ts';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import type { Installation, Running, System } from './system.ts';

type Setting = 'default' | 'best';
type Peer = { program: PeerName; store: 'postgres' | 'redis'; settings: Record<Setting, string> };

const PEERS: readonly Peer[] = [
  {
    program: 'graphile-worker',
    store: 'postgres',
    settings: {
      default: '`run()` with an empty preset: 1 job at a time, a query for future jobs every 2 s.',
      best: `\`concurrentJobs: 256\`, the number of chronosd. \`localQueue: {size: 500}\`, \`completeJobBatchDelay: 0\`,
        \`failJobBatchDelay: 0\` and \`maxPoolSize: 25\`, as its performance page recommends. \`pollInterval: 5\` ms, because only
        polling finds a job with \`runAt\`. No log line per job.`,
    },
  },
  {
    program: 'pg-boss',
    store: 'postgres',
    settings: {
      default: '`work(queue, handler)`: 1 job every 2 s, as documented.',
      best: `25 workers with \`pollingIntervalSeconds: 0.5\`, the minimum, started 20 ms apart, so that one polls every 20 ms.
        \`batchSize: 500\`; a batch is POSTed at once. After a full batch a worker calls \`notifyWorker\` for the next one.
        \`priority: false\`; 25 connections.`,
    },
  },
  {
    program: 'bullmq',
    store: 'redis',
    settings: {
      default: '`new Worker(queue, handler)`: 1 job at a time.',
      best: `\`concurrency: 256\`, the number of chronosd; \`removeOnComplete\`. \`redis-server\` with \`appendonly yes\` and
        \`appendfsync always\`, so that a job is on disk before the acknowledgement.`,
    },
  },
];

/** Maintenance of a store outside the measured work. */
type Upkeep = { settle(): Promise<void>; drop(): Promise<void> };

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ');

function peerSystem(bench: Workbench, { program, store, settings }: Peer, setting: Setting): System {
  const path = join(BENCH_FOLDER, 'peers', `${program}.mjs`);
  const command = (word: string, task: object) =>
    bench.start(`${program} ${word}`, [path, word, JSON.stringify({ setting, ...task })]);

  /** Runs a command that ends by itself. */
  const run = async (word: string, task: object) => {
    const child = command(word, task);
    await child.says();
    await child.ended();
  };

  const makeTemplate = async () => {
    const template = await createDatabase(bench);
    await run('install', template);
    return template;
  };

  const installationOn = (uri: string, { settle, drop }: Upkeep): Installation => {
    let running: Running | undefined;
    return {
      ...(store === 'postgres' ? { uri } : {}),
      async load(series: readonly Series[]) {
        await run('load', { uri, series });
        await settle();
      },
      async start(sink = bench.sink.url) {
        const child = command('work', { uri, sink });
        await child.says();
        running = { pid: child.pid, alive: () => child.running, stop: () => child.stop() };
        return running;
      },
      async remove() {
        await running?.stop();
        await drop();
      },
    };
  };

  let template: Promise<Database> | undefined;
  return {
    name: setting === 'best' ? program : `${program}-default`,
    title: setting === 'best' ? program : `${program}, default setting`,
    settings: oneLine(settings[setting]),
    store,
    peer: setting,
    loadRate: 13_000,
    async install() {
      if (store === 'redis') {
        const { uri } = await bench.redis();
        await run('install', { uri });
        return installationOn(uri, { settle: async () => {}, drop: () => run('install', { uri }) });
      }
      template ??= makeTemplate();
      const database = await createDatabase(bench, await template);
      return installationOn(database.uri, {
        settle: () => settleDatabase(database),
        drop: () => dropDatabase(bench, database),
      });
    },
  };
}

/** Every peer in one setting. */
export function peersIn(bench: Workbench, setting: Setting): System[] {
  return PEERS.map((peer) => peerSystem(bench, peer, setting));
}

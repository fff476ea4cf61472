/**
 * The scenarios of public benchmarks of job queues in a database. First a steady rate. Then the same while a
 * transaction delays vacuum, so that dead rows accumulate where jobs are searched. Then the same while the store is
 * killed and restarts.
 *
 * The rate and the open transaction are those of the public benchmark of PgQue ("queues under a blocked xmin horizon",
 * 800 jobs per second). Unlike there, jobs are stored beforehand, as in all our workloads, and a window takes half a
 * minute. The burst has its own workload.
 */
import pg from 'pg';
import { withClient } from '../databases.ts';
import { type RunInProgress, type RunOptions, runOnce } from '../measure.ts';
import { dueBefore, endOf } from '../series.ts';
import type { Lateness } from '../statistics.ts';
import type { Running, System } from '../systems/system.ts';
import type { Workbench } from '../workbench.ts';
import { type Context, figure } from './context.ts';

export const SCENARIOS = ['steady', 'held', 'restart'] as const;
export type Scenario = (typeof SCENARIOS)[number];

export type QueueRow = {
  scenario: Scenario;
  system: string;
  title: string;
  /** Jobs per second. */
  rate: number;
  lateness: Lateness;
  /**
   * On PostgreSQL: dead rows in the tables at the end of the window, and the size of all tables and indexes, in bytes.
   */
  deadRows?: number;
  bytes?: number;
  /** After the restart. */
  recovery?: Recovery;
};

export type Recovery = {
  /**
   * Time to the next fire, in ms, from the first accepted connection of the store or the start of the process that is
   * the store. `null` without a fire.
   */
  firstFireMs: number | null;
  /**
   * From then until the last job that fell due before it has fired, interrupted ones included, ms; `null` if one is
   * missing.
   */
  overdueMs: number | null;
  /** From the last due time until the last arrival, ms. */
  caughtUpMs: number;
  /** The system's own process ended because of the kill, or was killed because it is the store, and was restarted. */
  processEnded: boolean;
};

const WARMUP_MS = 3_000;
const PATIENCE_MS = 45_000;
/** How long the store is unavailable. */
const DOWN_MS = 1_000;
/** A supervisor restarts an ended process after about this time; it also polls at this interval. */
const SUPERVISOR_MS = 1_000;

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Opens a transaction with a snapshot of the current database: vacuum cannot remove rows that die later. */
async function holdSnapshot(uri: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('SELECT count(*) FROM pg_class');
  return () => client.end();
}

/**
 * Kills the store of the system, waits, and restarts it.
 *
 * @returns when it accepted connections again, epoch ms; for SQLite, when its next process was started
 */
async function restartStore(
  bench: Workbench,
  { store }: System,
  { installation, running }: RunInProgress,
): Promise<number> {
  if (store === 'postgres') {
    await bench.postgres.kill();
    await pause(DOWN_MS);
    await bench.postgres.start();
  } else if (store === 'redis') {
    const redis = await bench.redis();
    await redis.kill();
    await pause(DOWN_MS);
    await redis.start();
  } else {
    // The process is the database.
    process.kill(running[0]!.pid, 'SIGKILL');
    await pause(DOWN_MS);
    const startedAt = Date.now();
    running[0] = await installation.start();
    return startedAt;
  }
  return Date.now();
}

/** Restarts ended processes until it is stopped. */
function supervise({ installation, running }: RunInProgress) {
  let stopped = false;
  let processEnded = false;
  const watch = async () => {
    while (!stopped) {
      await pause(SUPERVISOR_MS);
      if (running[0]!.alive() || stopped) continue;
      processEnded = true;
      running[0] = await installation.start().catch((): Running => running[0]!);
    }
  };
  const done = watch();
  return async () => {
    stopped = true;
    await done;
    return processEnded;
  };
}

async function sizeOf(uri: string): Promise<{ deadRows: number; bytes: number }> {
  const { rows } = await withClient(uri, (client) =>
    client.query<{ deadRows: number; bytes: number }>(
      `SELECT COALESCE(sum(n_dead_tup), 0)::float8 AS "deadRows",
              COALESCE(sum(pg_total_relation_size(relid)), 0)::float8 AS bytes FROM pg_stat_user_tables`,
    ),
  );
  return rows[0]!;
}

async function measure({ bench, plan, progress }: Context, system: System, scenario: Scenario): Promise<QueueRow> {
  const { rate, seconds } = plan.queue;
  const label = `queue, ${scenario}, ${figure(rate)}/s: ${system.title}`;
  progress.step(label);
  let recovery: { backAt: number; processEnded: boolean } | undefined;

  const holding = async ({ installation, series }: RunInProgress) => {
    const release = await holdSnapshot(installation.uri!);
    await pause(endOf(series[1]!) - Date.now());
    await release();
  };
  const restarting = async (under: RunInProgress) => {
    const window = under.series[1]!;
    await pause(window.firstDue + window.spanMs / 3 - Date.now());
    // The restart itself kills and starts the process that is the store.
    const stop = system.store === 'sqlite' ? async () => true : supervise(under);
    const backAt = await restartStore(bench, system, under);
    await bench.sink.drained(
      under.series.reduce((sum, { count }) => sum + count, 0),
      endOf(window) + PATIENCE_MS,
    );
    recovery = { backAt, processEnded: await stop() };
  };
  const during = { steady: undefined, held: holding, restart: restarting }[scenario];
  const options: RunOptions = {
    phases: [
      { afterMs: 0, spanMs: WARMUP_MS, count: (rate * WARMUP_MS) / 1000 },
      { afterMs: WARMUP_MS, spanMs: seconds * 1000, count: rate * seconds },
    ],
    patienceMs: PATIENCE_MS,
    onStart: (endsAt) => progress.step(label, endsAt),
    ...(during === undefined ? {} : { during }),
  };
  return runOnce(bench, system, options, async ({ series, arrivals, uri }) => {
    const window = series[1]!;
    const { lateness, lastArrival } = await arrivals(window);
    const row: QueueRow = { scenario, system: system.name, title: system.title, rate, lateness };
    if (uri !== undefined && scenario !== 'restart') Object.assign(row, await sizeOf(uri));
    if (recovery) {
      const first = await bench.sink.firstAfter(recovery.backAt);
      const overdue = await arrivals(dueBefore(window, recovery.backAt));
      row.recovery = {
        firstFireMs: first === undefined ? null : first - recovery.backAt,
        overdueMs: overdue.lateness.missing > 0 ? null : overdue.lastArrival - recovery.backAt,
        caughtUpMs: Math.max(0, lastArrival - endOf(window)),
        processEnded: recovery.processEnded,
      };
    }
    return row;
  });
}

/** One round: this measures whether jobs are delivered, not how fast. */
export async function measureQueue(context: Context): Promise<QueueRow[]> {
  const rows: QueueRow[] = [];
  for (const scenario of SCENARIOS) {
    for (const system of [...context.reveille, ...context.peers]) {
      if (scenario === 'held' && system.store !== 'postgres') continue;
      rows.push(await measure(context, system, scenario));
    }
  }
  return rows;
}

/** One run of one system: jobs loaded, processes started, the window awaited, the sink asked. */
import { countDatabaseWork, type DatabaseWork } from './database-work.ts';
import { processorSeconds } from './processes.ts';
import { endOf, type Series } from './series.ts';
import type { Arrivals } from './sink/sink.ts';
import type { Installation, Running, System } from './systems/system.ts';
import type { Workbench } from './workbench.ts';

/** A series whose first due instant is not known yet: it comes so many milliseconds after the first of all. */
export type Phase = { afterMs: number; spanMs: number; count: number };

/** From the end of the loading to the first due instant: processes start, and caches come to rest. */
const START_MS = 2_500;
/** Everything must be ready this long before the first is due. */
const READY_MS = 300;

type Prepared = { series: Series[]; running: Running[] };

export type Run = {
  /** Each phase with its due instants. */
  series: Series[];
  /** Asks the sink what has arrived of one. */
  arrivals: (series: Series) => Promise<Arrivals>;
  /** Processor time that the system's own processes used for each job of all phases, µs; not the database server's. */
  processorMicroseconds: number | undefined;
  /** What PostgreSQL did for each job of all phases, where the store is PostgreSQL. */
  databaseWork: DatabaseWork | undefined;
};

/**
 * Loads the phases into a fresh installation and starts it, early enough for the first fire. When loading took longer than the
 * system said, it is done again with more time.
 */
async function prepare(
  installation: Installation,
  phases: readonly Phase[],
  replicas: number,
  loadRate: number,
): Promise<Prepared | undefined> {
  const total = phases.reduce((sum, { count }) => sum + count, 0);
  const zero = Date.now() + START_MS + (1000 * total) / loadRate;
  const series = phases.map(
    ({ afterMs, spanMs, count }, index): Series => ({
      number: index,
      count,
      spanMs,
      firstDue: Math.ceil(zero + afterMs),
    }),
  );
  await installation.load(series);
  const running: Running[] = [];
  for (let replica = 0; replica < replicas; replica++) running.push(await installation.start());
  if (Date.now() < zero - READY_MS) return { series, running };
  await Promise.all(running.map((process) => process.stop()));
  return undefined;
}

export type RunOptions = {
  phases: readonly Phase[];
  /** Processes of the system; 1 unless told. */
  replicas?: number;
  /** How long to wait after the last due instant for what has not arrived. */
  patienceMs: number;
  /** Called when the jobs are loaded and the processes run. */
  onStart?: (endsAt: number) => void;
};

function processorTime(running: readonly Running[]): number | undefined {
  const seconds = running.map(({ pid }) => processorSeconds(pid));
  return seconds.includes(undefined) ? undefined : seconds.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/** Carries a run out, hands it to `read` while everything is still up, and cleans up. */
export async function runOnce<T>(
  bench: Workbench,
  system: System,
  { phases, replicas = 1, patienceMs, onStart }: RunOptions,
  read: (run: Run) => Promise<T>,
): Promise<T> {
  const total = phases.reduce((sum, { count }) => sum + count, 0);
  for (let loadRate = system.loadRate; ; loadRate /= 2) {
    const installation = await system.install();
    try {
      await bench.sink.reset();
      const prepared = await prepare(installation, phases, replicas, loadRate);
      if (!prepared) continue;
      const { series, running } = prepared;
      const end = Math.max(...series.map(endOf));
      onStart?.(end);
      const databaseWork =
        installation.uri === undefined ? undefined : await countDatabaseWork(bench, installation.uri);
      const before = processorTime(running);
      await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
      await bench.sink.drained(total, end + patienceMs);
      const after = processorTime(running);
      const done = await databaseWork?.(total);
      return await read({
        series,
        arrivals: (each) => bench.sink.arrivals({ from: each.firstDue, until: endOf(each), expected: each.count }),
        processorMicroseconds:
          before === undefined || after === undefined ? undefined : (1e6 * (after - before)) / total,
        databaseWork: done,
      });
    } finally {
      await installation.remove();
    }
  }
}

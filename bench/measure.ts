/** One run of one system: loads jobs, starts processes, waits for the window to end, queries the sink. */
import { countDatabaseWork, type DatabaseWork } from './database-work.ts';
import { peakMegabytes, processorSeconds, writtenBytes } from './processes.ts';
import { endOf, type Series } from './series.ts';
import type { Arrivals } from './sink/sink.ts';
import type { Installation, Running, System } from './systems/system.ts';
import type { Workbench } from './workbench.ts';

/** A series whose first due time is not known yet: it follows the first of all by so many milliseconds. */
export type Phase = { afterMs: number; spanMs: number; count: number; owners?: number };

/** From the end of loading to the first due time: processes start and caches settle. */
const START_MS = 2_500;
/** Everything must be ready this long before the first due time. */
const READY_MS = 300;

type Prepared = { series: Series[]; running: Running[] };

export type OwnWork = {
  /** Processor time per job of all phases, µs. */
  processorMicroseconds: number;
  /** Written to disk per job of all phases, bytes. */
  writtenBytes: number;
  /** Peak resident memory of all processes together, MB. */
  peakMegabytes: number;
};

export type Run = {
  /** The phases with their due times. */
  series: Series[];
  /** Queries the sink for the arrivals of one phase. */
  arrivals: (series: Series) => Promise<Arrivals>;
  /** Work of the system's own processes, without the database server; empty where the machine does not report it. */
  own: OwnWork | undefined;
  /** Work of PostgreSQL per job of all phases, where the store is PostgreSQL. */
  databaseWork: DatabaseWork | undefined;
  /** The address of the database, where the store is PostgreSQL. */
  uri: string | undefined;
};

/**
 * Loads the phases into a fresh installation and starts it early enough for the first fire. If loading takes longer
 * than the system promised, it is repeated with more time.
 */
async function prepare(
  installation: Installation,
  phases: readonly Phase[],
  { replicas, target }: { replicas: number; target?: string | undefined },
  loadRate: number,
): Promise<Prepared | undefined> {
  const total = phases.reduce((sum, { count }) => sum + count, 0);
  const zero = Date.now() + START_MS + (1000 * total) / loadRate;
  const series = phases.map(
    ({ afterMs, spanMs, count, owners }, index): Series => ({
      number: index,
      count,
      spanMs,
      owners,
      firstDue: Math.ceil(zero + afterMs),
    }),
  );
  await installation.load(series);
  const running: Running[] = [];
  for (let replica = 0; replica < replicas; replica++) running.push(await installation.start(target));
  if (Date.now() < zero - READY_MS) return { series, running };
  await Promise.all(running.map((process) => process.stop()));
  return undefined;
}

export type RunOptions = {
  phases: readonly Phase[];
  /** Processes of the system; 1 by default. */
  replicas?: number;
  /** The target of their POSTs; the sink's `url` by default. */
  target?: string | undefined;
  /** How long to wait for missing fires after the last due time. */
  patienceMs: number;
  /** Called when the jobs are loaded and the processes run. */
  onStart?: (endsAt: number) => void;
  /** An action on the system while its processes run. The run ends no earlier than the action. */
  during?: (under: RunInProgress) => Promise<void>;
};

/** A run in progress. */
export type RunInProgress = {
  installation: Installation;
  /** Its processes. A restarted one replaces the one that ended. */
  running: Running[];
  series: readonly Series[];
};

/** The sum over all processes; `undefined` if one has no figure. */
function sumOver(running: readonly Running[], figure: (pid: number) => number | undefined): number | undefined {
  const figures = running.map(({ pid }) => figure(pid));
  return figures.includes(undefined) ? undefined : figures.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/** Starts to count the work of processes. The returned function reports the work since then, per job of `jobs` jobs. */
function countOwnWork(running: readonly Running[]): (jobs: number) => OwnWork | undefined {
  const seconds = sumOver(running, processorSeconds);
  const bytes = sumOver(running, writtenBytes);
  return (jobs) => {
    const now = { seconds: sumOver(running, processorSeconds), bytes: sumOver(running, writtenBytes) };
    const peak = sumOver(running, peakMegabytes);
    if (seconds === undefined || bytes === undefined) return undefined;
    if (now.seconds === undefined || now.bytes === undefined || peak === undefined) return undefined;
    return {
      processorMicroseconds: (1e6 * (now.seconds - seconds)) / jobs,
      writtenBytes: (now.bytes - bytes) / jobs,
      peakMegabytes: peak,
    };
  };
}

/** Carries out a run, passes it to `read` while all processes still run, and cleans up. */
export async function runOnce<T>(
  bench: Workbench,
  system: System,
  { phases, replicas = 1, target, patienceMs, onStart, during }: RunOptions,
  read: (run: Run) => Promise<T>,
): Promise<T> {
  const total = phases.reduce((sum, { count }) => sum + count, 0);
  for (let loadRate = system.loadRate; ; loadRate /= 2) {
    const installation = await system.install();
    try {
      await bench.sink.reset();
      const prepared = await prepare(installation, phases, { replicas, target }, loadRate);
      if (!prepared) continue;
      const { series, running } = prepared;
      const end = Math.max(...series.map(endOf));
      onStart?.(end);
      // A server that is killed during the run loses its counters.
      const databaseWork =
        installation.uri === undefined || during !== undefined
          ? undefined
          : await countDatabaseWork(bench, installation.uri);
      const ownWork = countOwnWork(running);
      const meanwhile = during?.({ installation, running, series });
      await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
      await meanwhile;
      await bench.sink.drained(total, end + patienceMs);
      const own = ownWork(total);
      const done = await databaseWork?.(total);
      return await read({
        series,
        arrivals: (each) => bench.sink.arrivals({ from: each.firstDue, until: endOf(each), expected: each.count }),
        own,
        databaseWork: done,
        uri: installation.uri,
      });
    } finally {
      await installation.remove();
    }
  }
}

/** One run of one system: jobs loaded, processes started, the window awaited, the sink asked. */
import { countDatabaseWork, type DatabaseWork } from './database-work.ts';
import { peakMegabytes, processorSeconds, writtenBytes } from './processes.ts';
import { endOf, type Series } from './series.ts';
import type { Arrivals } from './sink/sink.ts';
import type { Installation, Running, System } from './systems/system.ts';
import type { Workbench } from './workbench.ts';

/** A series whose first due instant is not known yet: it comes so many milliseconds after the first of all. */
export type Phase = { afterMs: number; spanMs: number; count: number; owners?: number };

/** From the end of the loading to the first due instant: processes start, and caches come to rest. */
const START_MS = 2_500;
/** Everything must be ready this long before the first is due. */
const READY_MS = 300;

type Prepared = { series: Series[]; running: Running[] };

export type OwnWork = {
  /** Processor time for each job of all phases, µs. */
  processorMicroseconds: number;
  /** Written to disks for each job of all phases, bytes. */
  writtenBytes: number;
  /** Resident at the most, all processes together, MB. */
  peakMegabytes: number;
};

export type Run = {
  /** Each phase with its due instants. */
  series: Series[];
  /** Asks the sink what has arrived of one. */
  arrivals: (series: Series) => Promise<Arrivals>;
  /** What the system's own processes did, not the database server's; nothing where the machine does not say. */
  own: OwnWork | undefined;
  /** What PostgreSQL did for each job of all phases, where the store is PostgreSQL. */
  databaseWork: DatabaseWork | undefined;
  /** The address of the database, where the store is PostgreSQL. */
  uri: string | undefined;
};

/**
 * Loads the phases into a fresh installation and starts it, early enough for the first fire. When loading took longer than the
 * system said, it is done again with more time.
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
  /** Processes of the system; 1 unless told. */
  replicas?: number;
  /** Where its processes POST; the sink's `url` unless told. */
  target?: string | undefined;
  /** How long to wait after the last due instant for what has not arrived. */
  patienceMs: number;
  /** Called when the jobs are loaded and the processes run. */
  onStart?: (endsAt: number) => void;
  /** What happens to the system meanwhile, begun when its processes run; the run ends no sooner than this does. */
  during?: (under: UnderWay) => Promise<void>;
};

/** A run that goes on. */
export type UnderWay = {
  installation: Installation;
  /** Its processes; one that is started again takes the place of the one that ended. */
  running: Running[];
  series: readonly Series[];
};

/** The sum over all processes; `undefined` when one of them has no figure. */
function sumOver(running: readonly Running[], figure: (pid: number) => number | undefined): number | undefined {
  const figures = running.map(({ pid }) => figure(pid));
  return figures.includes(undefined) ? undefined : figures.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/** Begins to count what processes do; what it returns tells what they did since, for each of `jobs` jobs. */
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

/** Carries a run out, hands it to `read` while everything is still up, and cleans up. */
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
      // A server that is killed meanwhile loses its counters.
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

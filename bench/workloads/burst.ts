/** A burst: the throughput for many alarms that are due within a short time. */
import { join } from 'node:path';
import type { DatabaseWork } from '../database-work.ts';
import { type OwnWork, type RunOptions, runOnce } from '../measure.ts';
import { rotated } from '../plan.ts';
import { median } from '../statistics.ts';
import type { System } from '../systems/system.ts';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import { type Context, figure } from './context.ts';

/** The result of one system for a burst. */
export type Drain = {
  /** Fires per second, from the first due time to the last arrival. */
  perSecond: number;
  /** Number of fires missing at the end of waiting; `perSecond` then counts the arrived ones. */
  missing: number;
  repeated: number;
  /** Work of the system's own processes per fire, where known. */
  own?: OwnWork;
  /** Work of PostgreSQL per fire, where it is the store. */
  database?: DatabaseWork;
};

/** The target: one that answers at once, the same with TLS, or one that takes ten milliseconds. */
export type Target = 'plain' | 'tls' | 'slow';

export type BurstRow = {
  system: string;
  title: string;
  median: number;
  toRaw: number;
  /** Medians of the rounds without missing fires; `null` without such a round. */
  own: OwnWork | null;
  rounds: Drain[];
};

export type BurstResult = {
  count: number;
  seconds: number;
  /** POSTs per second of the same client to the same sink with no scheduler. */
  raw: { median: number; rounds: number[] };
  rows: BurstRow[];
  /** The same burst to the other targets, one round. */
  targets: { target: Target; rows: { system: string; title: string; drain: Drain }[] }[];
};

/** Opens connections and compiles code, as in a daemon that has run for some time. */
const WARMUP = { afterMs: 0, spanMs: 2_000, count: 2_000 };
const PAUSE_MS = 2_000;
const PATIENCE_MS = 60_000;

export function burstPhases(count: number, seconds: number): RunOptions['phases'] {
  return [WARMUP, { afterMs: WARMUP.spanMs + PAUSE_MS, spanMs: seconds * 1000, count }];
}

export async function rawRate(bench: Workbench, count: number): Promise<number> {
  await bench.sink.reset();
  const child = bench.start('the raw client', [join(BENCH_FOLDER, 'raw-post.ts'), bench.sink.url, String(count)]);
  const { milliseconds } = await child.says<{ milliseconds: number }>();
  await child.ended();
  return (1000 * count) / milliseconds;
}

function medianWork(works: readonly OwnWork[]): OwnWork | null {
  if (works.length === 0) return null;
  return {
    processorMicroseconds: median(works.map((work) => work.processorMicroseconds))!,
    writtenBytes: median(works.map((work) => work.writtenBytes))!,
    peakMegabytes: median(works.map((work) => work.peakMegabytes))!,
  };
}

/** Drains one burst with so many processes of a system. */
export async function drainBurst(
  bench: Workbench,
  system: System,
  {
    count,
    seconds,
    replicas = 1,
    target,
    patienceMs = PATIENCE_MS,
    onStart,
  }: {
    count: number;
    seconds: number;
    replicas?: number;
    /** Target of the fires; the sink's `url` by default. */
    target?: string | undefined;
    patienceMs?: number;
    onStart: (endsAt: number) => void;
  },
): Promise<Drain> {
  const options = { phases: burstPhases(count, seconds), replicas, target, patienceMs, onStart };
  return runOnce(bench, system, options, async ({ series, arrivals, own, databaseWork }) => {
    const burst = series[1]!;
    const { lateness, lastArrival } = await arrivals(burst);
    const arrived = lateness.expected - lateness.missing;
    const perSecond = arrived === 0 ? 0 : (1000 * arrived) / (lastArrival - burst.firstDue);
    const { missing, repeated } = lateness;
    return {
      perSecond,
      missing,
      repeated,
      ...(own === undefined || missing > 0 ? {} : { own }),
      ...(databaseWork === undefined || missing > 0 ? {} : { database: databaseWork }),
    };
  });
}

/** The burst of every system to another target. */
async function measureTarget({ bench, plan, progress, reveille, peers }: Context, target: Target, url: string) {
  const { count, seconds } = plan.burst;
  const rows: BurstResult['targets'][number]['rows'] = [];
  for (const system of [...reveille, ...peers]) {
    const label = `burst of ${figure(count)}, target ${target}: ${system.title}`;
    progress.step(label);
    const onStart = (endsAt: number) => progress.step(label, endsAt);
    const drain = await drainBurst(bench, system, { count, seconds, target: url, onStart });
    rows.push({ system: system.name, title: system.title, drain });
  }
  return { target, rows };
}

export async function measureBurst(context: Context): Promise<BurstResult> {
  const { bench, plan, progress, reveille, peers, peersByDefault } = context;
  const { count, seconds, defaultsPatienceSeconds } = plan.burst;
  const raw: number[] = [];
  const drains = new Map<System, Drain[]>();

  const add = async (system: System, round: string, patienceMs?: number) => {
    const label = `burst of ${figure(count)}: ${system.title}, ${round}`;
    progress.step(label);
    const onStart = (endsAt: number) => progress.step(label, endsAt);
    const wait = patienceMs === undefined ? {} : { patienceMs };
    const drain = await drainBurst(bench, system, { count, seconds, onStart, ...wait });
    drains.set(system, [...(drains.get(system) ?? []), drain]);
  };

  for (let round = 0; round < plan.rounds; round++) {
    const name = `round ${round + 1} of ${plan.rounds}`;
    progress.step(`burst of ${figure(count)}: no scheduler, ${name}`);
    raw.push(await rawRate(bench, count));
    for (const system of rotated([...reveille, ...peers], round)) await add(system, name);
  }
  for (const system of peersByDefault) await add(system, 'one round', defaultsPatienceSeconds * 1000);

  const rawMedian = median(raw)!;
  const rows = [...drains].map(([{ name, title }, rounds]) => {
    const middle = median(rounds.map(({ perSecond }) => perSecond))!;
    return {
      system: name,
      title,
      median: middle,
      toRaw: middle / rawMedian,
      own: medianWork(rounds.flatMap(({ own }) => own ?? [])),
      rounds,
    };
  });
  const targets: BurstResult['targets'] = [];
  const { slowUrl, tlsUrl } = bench.sink;
  if (tlsUrl !== undefined) targets.push(await measureTarget(context, 'tls', tlsUrl));
  targets.push(await measureTarget(context, 'slow', slowUrl));
  return { count, seconds, raw: { median: rawMedian, rounds: raw }, rows, targets };
}

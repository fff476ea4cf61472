/** A burst: many alarms due within a moment, and how fast they are out. */
import { join } from 'node:path';
import type { DatabaseWork } from '../database-work.ts';
import { type RunOptions, runOnce } from '../measure.ts';
import { rotated } from '../plan.ts';
import { median } from '../statistics.ts';
import type { System } from '../systems/system.ts';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import { type Context, figure } from './context.ts';

/** What one system did with a burst. */
export type Drain = {
  /** Fires per second, from the first due instant to the last arrival. */
  perSecond: number;
  /** How many had not arrived when waiting ended; then `perSecond` is over those that had. */
  missing: number;
  repeated: number;
  /** Processor time of the system's own processes for each fire, µs, where it can be told. */
  processorMicroseconds?: number;
  /** What PostgreSQL did for each fire, where it is the store. */
  database?: DatabaseWork;
};

export type BurstRow = {
  system: string;
  title: string;
  median: number;
  toRaw: number;
  processorMicroseconds: number | null;
  rounds: Drain[];
};

export type BurstResult = {
  count: number;
  seconds: number;
  /** POSTs per second of the same client against the same sink with no scheduler. */
  raw: { median: number; rounds: number[] };
  rows: BurstRow[];
};

/** So that connections are open and code is compiled, as in a daemon that has run for a while. */
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

/** Drains one burst with so many processes of a system. */
export async function drainBurst(
  bench: Workbench,
  system: System,
  {
    count,
    seconds,
    replicas = 1,
    patienceMs = PATIENCE_MS,
    onStart,
  }: {
    count: number;
    seconds: number;
    replicas?: number;
    patienceMs?: number;
    onStart: (endsAt: number) => void;
  },
): Promise<Drain> {
  const options = { phases: burstPhases(count, seconds), replicas, patienceMs, onStart };
  return runOnce(bench, system, options, async ({ series, arrivals, processorMicroseconds, databaseWork }) => {
    const burst = series[1]!;
    const { lateness, lastArrival } = await arrivals(burst);
    const arrived = lateness.expected - lateness.missing;
    const perSecond = arrived === 0 ? 0 : (1000 * arrived) / (lastArrival - burst.firstDue);
    const { missing, repeated } = lateness;
    return {
      perSecond,
      missing,
      repeated,
      ...(processorMicroseconds === undefined || missing > 0 ? {} : { processorMicroseconds }),
      ...(databaseWork === undefined || missing > 0 ? {} : { database: databaseWork }),
    };
  });
}

export async function measureBurst({
  bench,
  plan,
  progress,
  reveille,
  peers,
  peersByDefault,
}: Context): Promise<BurstResult> {
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
    const times = rounds.flatMap(({ processorMicroseconds }) => processorMicroseconds ?? []);
    return {
      system: name,
      title,
      median: middle,
      toRaw: middle / rawMedian,
      processorMicroseconds: median(times),
      rounds,
    };
  });
  return { count, seconds, raw: { median: rawMedian, rounds: raw }, rows };
}

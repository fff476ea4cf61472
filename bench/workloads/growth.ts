/** Effect of the number of pending alarms: lateness and claim time with few and with millions of them. */
import { join } from 'node:path';
import { residentMegabytes } from '../processes.ts';
import { endOf, type Series } from '../series.ts';
import { type Lateness, medianLateness } from '../statistics.ts';
import type { ReveilleInstallation, ReveilleSystem } from '../systems/system.ts';
import { BENCH_FOLDER } from '../workbench.ts';
import { type Context, figure } from './context.ts';

/** Milliseconds for one claim of 16 due alarms, through the store port of its own process. */
export type ClaimTime = { p50: number; p99: number };

export type GrowthRow = {
  system: string;
  title: string;
  pending: number;
  /** Fires per second in each window. */
  rate: number;
  median: Lateness;
  windows: Lateness[];
  claim: ClaimTime;
  /** Resident memory of chronosd after the windows, in MB. */
  residentMegabytes: number;
  /** Size of the store on disk with this number of pending alarms. */
  storeBytes: number;
};

const START_MS = 4_000;
const WARMUP_MS = 3_000;
const PAUSE_MS = 500;
const PATIENCE_MS = 10_000;
/** Due alarms for the claim timing. */
const CLAIMABLE = 3_200;

/** A warm-up and one window per round, in sequence; each uses new numbers. */
function windowsFrom(firstNumber: number, { plan }: Context, loadMs: number): Series[] {
  const { rate, seconds } = plan.growth;
  const spanMs = seconds * 1000;
  const begin = Math.ceil(Date.now() + loadMs + START_MS);
  const warmup = { number: firstNumber, count: (rate * WARMUP_MS) / 1000, firstDue: begin, spanMs: WARMUP_MS };
  const windows = Array.from({ length: plan.rounds }, (_, round) => ({
    number: firstNumber + 1 + round,
    count: rate * seconds,
    firstDue: begin + WARMUP_MS + round * (spanMs + PAUSE_MS),
    spanMs,
  }));
  return [warmup, ...windows];
}

/** Loads the windows and fires them; repeats with more time if loading takes longer than planned. */
async function fireWindows(
  context: Context,
  installation: ReveilleInstallation,
  firstNumber: number,
  onStart: (endsAt: number) => void,
): Promise<{ windows: Lateness[]; residentMegabytes: number }> {
  const { sink } = context.bench;
  // Loading also settles the database, which takes longer for larger tables.
  const loadedAt = performance.now();
  await installation.load([]);
  const loadMs = 2 * (performance.now() - loadedAt) + 2_000;
  const series = windowsFrom(firstNumber, context, loadMs);
  await sink.reset();
  await installation.load(series);
  const chronosd = await installation.start();
  if (Date.now() > series[0]!.firstDue) throw new Error('loading took longer than allowed; nothing was measured');
  const end = endOf(series.at(-1)!);
  onStart(end);
  await new Promise((resolve) => setTimeout(resolve, end - Date.now()));
  await sink.drained(
    series.reduce((sum, { count }) => sum + count, 0),
    end + PATIENCE_MS,
  );
  const windows: Lateness[] = [];
  for (const { firstDue, spanMs, count } of series.slice(1)) {
    windows.push((await sink.arrivals({ from: firstDue, until: firstDue + spanMs, expected: count })).lateness);
  }
  const resident = residentMegabytes(chronosd.pid);
  await chronosd.stop();
  return { windows, residentMegabytes: resident };
}

async function timeClaims({ bench }: Context, installation: ReveilleInstallation, number: number): Promise<ClaimTime> {
  await installation.load([{ number, count: CLAIMABLE, firstDue: Date.now() - 60_000, spanMs: 1_000 }]);
  const probe = bench.start('the claim probe', [
    join(BENCH_FOLDER, 'claim-probe.ts'),
    JSON.stringify(installation.location),
  ]);
  const times = await probe.says<ClaimTime>();
  await probe.ended();
  return times;
}

async function growOne(context: Context, system: ReveilleSystem): Promise<GrowthRow[]> {
  const { plan, progress } = context;
  const rows: GrowthRow[] = [];
  const installation = await system.install();
  try {
    let pending = 0;
    let number = 0;
    for (const size of plan.growth.pending) {
      const loading = `growth to ${figure(size)} pending: ${system.title}, loading`;
      progress.step(loading);
      await installation.addPending(pending, size, (added) => progress.detail(`${figure(pending + added)} loaded`));
      pending = size;
      const storeBytes = await installation.bytes();
      const firing = `growth at ${figure(size)} pending: ${system.title}, ${plan.growth.rate} fires/s`;
      progress.step(firing);
      const fired = await fireWindows(context, installation, number, (endsAt) => progress.step(firing, endsAt));
      number += 1 + plan.rounds;
      progress.step(`growth at ${figure(size)} pending: ${system.title}, claims`);
      const claim = await timeClaims(context, installation, number++);
      rows.push({
        system: system.name,
        title: system.title,
        pending: size,
        rate: plan.growth.rate,
        median: medianLateness(fired.windows),
        windows: fired.windows,
        claim,
        residentMegabytes: fired.residentMegabytes,
        storeBytes,
      });
    }
  } finally {
    await installation.remove();
  }
  return rows;
}

export async function measureGrowth(context: Context): Promise<GrowthRow[]> {
  const rows: GrowthRow[] = [];
  for (const system of context.reveille) rows.push(...(await growOne(context, system)));
  return rows;
}

/** Lateness of fires at a steady rate: arrival at the sink minus the due time, on one clock. */
import { runOnce } from '../measure.ts';
import { rotated } from '../plan.ts';
import { type Lateness, medianLateness } from '../statistics.ts';
import type { System } from '../systems/system.ts';
import { type Context, figure } from './context.ts';

export type LatenessRow = {
  system: string;
  title: string;
  /** Fires per second. */
  rate: number;
  seconds: number;
  /** Medians over the rounds. */
  median: Lateness;
  rounds: Lateness[];
  bodyBytes: number;
};

/** Waiting time for missing fires after the window. A system that keeps up needs none of it. */
const PATIENCE_MS = 10_000;

type Window = { rate: number; seconds: number; round: string };

async function measure(
  { bench, plan, progress }: Context,
  system: System,
  { rate, seconds, round }: Window,
): Promise<{ lateness: Lateness; bodyBytes: number }> {
  const warmupMs = plan.lateness.warmupSeconds * 1000;
  const label = `lateness at ${figure(rate)}/s: ${system.title}, ${round}`;
  progress.step(label);
  const options = {
    phases: [
      { afterMs: 0, spanMs: warmupMs, count: (rate * warmupMs) / 1000 },
      { afterMs: warmupMs, spanMs: seconds * 1000, count: rate * seconds },
    ],
    patienceMs: PATIENCE_MS,
    onStart: (endsAt: number) => progress.step(label, endsAt),
  };
  return runOnce(bench, system, options, async ({ series, arrivals }) => arrivals(series[1]!));
}

export async function measureLateness(context: Context): Promise<LatenessRow[]> {
  const { plan, reveille, peers, peersByDefault } = context;
  const rows = new Map<string, LatenessRow>();

  const add = async (system: System, window: Window) => {
    const { lateness, bodyBytes } = await measure(context, system, window);
    const { rate, seconds } = window;
    const { name, title } = system;
    const rounds = [...(rows.get(`${name} ${rate}`)?.rounds ?? []), lateness];
    const median = medianLateness(rounds);
    rows.set(`${name} ${rate}`, { system: name, title, rate, seconds, median, rounds, bodyBytes });
  };

  for (const rate of plan.lateness.rates) {
    for (let round = 0; round < plan.rounds; round++) {
      const window = { rate, seconds: plan.lateness.seconds, round: `round ${round + 1} of ${plan.rounds}` };
      for (const system of rotated([...reveille, ...peers], round)) await add(system, window);
    }
  }
  const { defaults } = plan.lateness;
  for (const rate of defaults.rates) {
    for (const system of peersByDefault) await add(system, { rate, seconds: defaults.seconds, round: 'one round' });
  }
  return [...rows.values()];
}

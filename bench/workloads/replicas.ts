/** Several chronosd processes on one PostgreSQL: the effect of a second and a fourth, on this number of cores. */
import { rotated } from '../plan.ts';
import { median } from '../statistics.ts';
import { type Drain, drainBurst } from './burst.ts';
import { type Context, figure } from './context.ts';

export type ReplicasRow = { replicas: number; median: number; rounds: Drain[] };

export async function measureReplicas({ bench, plan, progress, reveille }: Context): Promise<ReplicasRow[]> {
  const { count, seconds } = plan.burst;
  const system = reveille.find(({ store }) => store === 'postgres');
  if (!system) return [];
  const found = new Map<number, Drain[]>(plan.replicas.counts.map((replicas) => [replicas, []]));
  for (let round = 0; round < plan.rounds; round++) {
    for (const replicas of rotated(plan.replicas.counts, round)) {
      const label = `burst of ${figure(count)}: ${replicas} replicas, round ${round + 1} of ${plan.rounds}`;
      progress.step(label);
      const onStart = (endsAt: number) => progress.step(label, endsAt);
      found.get(replicas)!.push(await drainBurst(bench, system, { count, seconds, replicas, onStart }));
    }
  }
  return [...found].map(([replicas, rounds]) => ({
    replicas,
    median: median(rounds.map(({ perSecond }) => perSecond))!,
    rounds,
  }));
}

/** Duration until an agent's tools are ready: Neo's tool surface compared with the MCP library alone. */
import { join } from 'node:path';
import type { BootAnswer, BootOrder, BootWay } from '../hands/boot-probe.ts';
import { declareServers } from '../hands/servers.ts';
import { rotated } from '../plan.ts';
import { median } from '../statistics.ts';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import { type Context, figure } from './context.ts';

/** Milliseconds from loading the code to the last list of tools. */
export type BootRow = { way: BootWay; title: string; servers: number; milliseconds: number; rounds: number[] };

const PROBE = join(BENCH_FOLDER, 'hands', 'boot-probe.ts');

const WAYS: readonly { way: BootWay; title: string }[] = [
  { way: 'surface', title: 'Neo’s tool surface' },
  { way: 'sdk-side-by-side', title: 'bare SDK clients, in parallel' },
  { way: 'sdk-in-turn', title: 'bare SDK clients, one after the other' },
];

async function timeBoot(bench: Workbench, way: BootWay, count: number): Promise<number> {
  const order: BootOrder = { way, servers: declareServers(bench.makeFolder('boot'), count) };
  // As `reveille` itself does: it keeps the compile cache.
  const child = bench.start(`boot ${way}`, [PROBE, JSON.stringify(order)], {
    NODE_COMPILE_CACHE: join(bench.folder, 'compile-cache'),
  });
  const { milliseconds } = await child.says<BootAnswer>();
  await child.ended();
  return milliseconds;
}

export async function measureBoot({ bench, plan, progress }: Context): Promise<BootRow[]> {
  const rows: BootRow[] = [];
  for (const count of plan.boot.servers) {
    progress.step(`boot: ${figure(count)} MCP server${count === 1 ? '' : 's'}`);
    const found = WAYS.map((each) => ({ ...each, servers: count, rounds: [] as number[] }));
    // The very first start fills the compile cache.
    for (const { way } of found) await timeBoot(bench, way, count);
    for (let round = 0; round < plan.boot.starts; round++) {
      for (const { way, rounds } of rotated(found, round)) rounds.push(await timeBoot(bench, way, count));
    }
    rows.push(...found.map((each) => ({ ...each, milliseconds: median(each.rounds)! })));
  }
  return rows;
}

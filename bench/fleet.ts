/**
 * `npm run bench:fleet -- [--rounds N] [--users N]`: the cost of many buckets on one server, and the throughput of
 * Citus with one and two workers. Prints the figures; bench/findings.md records them.
 */
import { parseArgs } from 'node:util';
import { reshard } from '../src/chronos/store/sharding/reshard.ts';
import { systemClock } from '../src/kit/clock/clock.ts';
import { silentLogger } from '../src/kit/log/log.ts';
import { CitusCluster, noCitus } from '../test/support/postgres/citus.ts';
import { runOnce } from './measure.ts';
import { OWNERS } from './series.ts';
import { median } from './statistics.ts';
import { reveilleOnCitus, reveilleOnPostgres } from './systems/reveille-postgres.ts';
import type { System } from './systems/system.ts';
import { Workbench } from './workbench.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, users: { type: 'string', default: String(OWNERS) } },
});
/** Number of users over all buckets: with few users no bucket has enough occurrences for a full claim. */
const [ROUNDS, USERS] = [Number(values.rounds), Number(values.users)];
for (const [name, value, most] of [
  ['rounds', ROUNDS, 100],
  ['users', USERS, 100_000],
] as const)
  if (!Number.isInteger(value) || value < 1 || value > most) {
    console.error(`--${name} must be a whole number from 1 to ${most}`);
    process.exit(2);
  }
const BUCKETS = 64;
/** All jobs due within a short time, and an even stream. */
const LOADS = {
  burst: { afterMs: 4_000, spanMs: 2_000, count: 20_000 },
  steady: { afterMs: 4_000, spanMs: 10_000, count: 10_000 },
} as const;
const WARMUP = { afterMs: 0, spanMs: 2_000, count: 1_000 };

type Figures = {
  perSecond: number;
  p50: number;
  p99: number;
  server: number;
  wal: number;
  records: number;
  own: number;
};

/** Both compared systems get the loading time that the slower one needs. */
const LOAD_RATE = 2_000;

async function run(bench: Workbench, quick: System, load: keyof typeof LOADS): Promise<Figures> {
  const system = { ...quick, loadRate: LOAD_RATE };
  const phases = [WARMUP, LOADS[load]].map((phase) => ({ ...phase, owners: USERS }));
  return runOnce(bench, system, { phases, patienceMs: 120_000 }, async ({ series, arrivals, own, databaseWork }) => {
    const { lateness, lastArrival } = await arrivals(series[1]!);
    if (lateness.missing > 0) throw new Error(`${lateness.missing} did not arrive`);
    return {
      perSecond: (1000 * lateness.expected) / (lastArrival - series[1]!.firstDue),
      p50: lateness.p50 ?? Number.NaN,
      p99: lateness.p99 ?? Number.NaN,
      server: databaseWork?.serverMicroseconds ?? Number.NaN,
      wal: databaseWork?.walBytes ?? Number.NaN,
      records: databaseWork?.walRecords ?? Number.NaN,
      own: own?.processorMicroseconds ?? Number.NaN,
    };
  });
}

async function compare(bench: Workbench, systems: Record<string, System>, load: keyof typeof LOADS): Promise<void> {
  const found = new Map<string, Figures[]>();
  for (let round = 0; round < ROUNDS; round++)
    for (const [title, system] of Object.entries(systems))
      found.set(title, [...(found.get(title) ?? []), await run(bench, system, load)]);
  // Medians. Run it again to see the spread between rounds.
  for (const [title, rounds] of found) {
    const of = (name: keyof Figures, digits = 0) =>
      (median(rounds.map((each) => each[name])) ?? Number.NaN).toFixed(digits);
    console.log(
      `${load}, ${USERS} users, ${title}: ${of('perSecond')} fires/s, late p50 ${of('p50', 1)} ms, p99 ${of('p99', 1)} ms; per fire ` +
        `${of('own')} µs of chronosd, ${of('server')} µs of PostgreSQL, ${of('wal')} B of log in ${of('records', 1)} records`,
    );
  }
}

const bench = await Workbench.open({ servers: true });
try {
  const systems = { '1 bucket': reveilleOnPostgres(bench), [`${BUCKETS} buckets`]: reveilleOnPostgres(bench, BUCKETS) };
  await compare(bench, systems, 'burst');
  await compare(bench, systems, 'steady');
  const missing = noCitus();
  if (missing !== undefined) console.log(`Citus: ${missing}`);
  for (const workers of missing === undefined ? [1, 2] : []) {
    const cluster = await CitusCluster.start(workers);
    try {
      await reshard({ uri: cluster.uri, buckets: 16, citus: true, clock: systemClock, log: silentLogger });
      const title = `Citus, ${workers} worker${workers === 1 ? '' : 's'}`;
      await compare(bench, { [title]: reveilleOnCitus(bench, cluster) }, 'burst');
    } finally {
      await cluster.close();
    }
  }
} finally {
  await bench.close();
}

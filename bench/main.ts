/** `npm run bench`: measures, prints, writes the pages. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { VERSION } from '../src/wire/version.ts';
import { withClient } from './databases.ts';
import { describeMachine } from './machine.ts';
import { type Options, type Output, readOptions, USAGE, WrongOption } from './options.ts';
import { needsServers, type Plan, planOf, type WorkloadName } from './plan.ts';
import { Progress } from './progress.ts';
import { renderBenchmarks } from './report/benchmarks-page.ts';
import { renderResults } from './report/results-page.ts';
import { renderText } from './report/table.ts';
import { tablesOf, verdictsTable } from './report/tables.ts';
import type { Report, Results } from './results.ts';
import { peersIn } from './systems/peers.ts';
import { reveilleOnPostgres } from './systems/reveille-postgres.ts';
import { reveilleOnSqlite } from './systems/reveille-sqlite.ts';
import { type System, Unavailable } from './systems/system.ts';
import { verdictsOf } from './verdicts.ts';
import { BENCH_FOLDER, Workbench } from './workbench.ts';
import { measureBoot } from './workloads/boot.ts';
import { measureBurst } from './workloads/burst.ts';
import { measureChronometric } from './workloads/chronometric.ts';
import { measureConditions } from './workloads/conditions.ts';
import { measureConsoles } from './workloads/consoles.ts';
import type { Context } from './workloads/context.ts';
import { measureCreates } from './workloads/creates.ts';
import { measureEndurance, measureResident } from './workloads/endurance.ts';
import { measureFootprint } from './workloads/footprint.ts';
import { measureGrowth } from './workloads/growth.ts';
import { measureLateness } from './workloads/lateness.ts';
import { measureMemory } from './workloads/memory.ts';
import { measureProxy } from './workloads/proxy.ts';
import { measureQueue } from './workloads/queue.ts';
import { measureReceipts } from './workloads/receipts.ts';
import { measureReplicas } from './workloads/replicas.ts';
import { measureTools } from './workloads/tools.ts';

const PEERS_FOLDER = join(BENCH_FOLDER, 'peers');

/** Settings that affect durability and speed. */
const POSTGRES_SETTINGS = [
  'shared_buffers',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_sync_method',
  'max_wal_size',
  'max_connections',
];

function installPeers(progress: Progress): void {
  if (['pg-boss', 'bullmq'].every((name) => existsSync(join(PEERS_FOLDER, 'node_modules', name)))) return;
  progress.step('installing the peers (once)');
  execFileSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error', '--prefix', PEERS_FOLDER], {
    cwd: PEERS_FOLDER,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** Whether a system of another project is selected. */
function wantsPeers({ systems }: Options): boolean {
  return systems?.every((name) => name.startsWith('reveille-')) !== true;
}

function installedVersion(folder: string, name: string): string {
  const path = join(folder, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

function ownVersions(): Record<string, string> {
  const own = join(BENCH_FOLDER, '..');
  return {
    Reveille: VERSION,
    Node: process.versions.node,
    SQLite: process.versions.sqlite ?? 'unknown',
    'MCP SDK': installedVersion(own, '@modelcontextprotocol/client'),
    'MCP files server': installedVersion(own, '@modelcontextprotocol/server-filesystem'),
  };
}

async function serverVersions(bench: Workbench, withPeers: boolean): Promise<Record<string, string>> {
  const { rows } = await withClient(bench.postgres.uri(), (client) => client.query('SHOW server_version'));
  if (!withPeers) return { PostgreSQL: String(rows[0].server_version) };
  return {
    PostgreSQL: String(rows[0].server_version),
    'graphile-worker': installedVersion(PEERS_FOLDER, 'graphile-worker'),
    'pg-boss': installedVersion(PEERS_FOLDER, 'pg-boss'),
    BullMQ: installedVersion(PEERS_FOLDER, 'bullmq'),
  };
}

async function settingsOf(bench: Workbench): Promise<Record<string, string>> {
  return withClient(bench.postgres.uri(), async (client) => {
    const settings: Record<string, string> = {};
    for (const name of POSTGRES_SETTINGS) {
      const { rows } = await client.query(`SHOW ${name}`);
      settings[name] = String(rows[0][name]);
    }
    return settings;
  });
}

/** The selected systems that can be installed here, and why the others cannot. */
async function selectAvailable<Kind extends System>(systems: readonly Kind[]) {
  const available: Kind[] = [];
  const unavailable: Report['unavailable'] = [];
  for (const system of systems) {
    try {
      await (await system.install()).remove();
      available.push(system);
    } catch (thrown) {
      if (!(thrown instanceof Unavailable)) throw thrown;
      unavailable.push({ title: system.title, reason: thrown.message.split('\n').at(-1) ?? '' });
    }
  }
  return { available, unavailable };
}

const MEASURE: { [Name in WorkloadName]: (context: Context) => Promise<NonNullable<Results[Name]>> } = {
  lateness: measureLateness,
  burst: measureBurst,
  creates: measureCreates,
  growth: measureGrowth,
  replicas: measureReplicas,
  queue: measureQueue,
  endurance: measureEndurance,
  resident: measureResident,
  footprint: measureFootprint,
  tools: measureTools,
  boot: measureBoot,
  memory: measureMemory,
  receipts: measureReceipts,
  proxy: measureProxy,
  consoles: measureConsoles,
  conditions: measureConditions,
  chronometric: measureChronometric,
};

async function measureInto<Name extends WorkloadName>(
  report: Report,
  name: Name,
  context: Context,
  commit: string,
): Promise<void> {
  const result: Results[Name] = await MEASURE[name](context);
  report.results[name] = result;
  report.measured[name] = { at: new Date().toISOString(), commit, cpu: report.machine.cpu };
}

/** Files of this folder that change no result. */
const NOT_MEASURED = ['findings.md', 'results.md', 'results.json'].map((name) => `:!${name}`);

/** Identifies the measured code: the systems start from the same files. */
function commitOf(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: BENCH_FOLDER, encoding: 'utf8' }).trim();
    const isChanged = git('status', '--porcelain', '--', '../src', '.', ...NOT_MEASURED) !== '';
    return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`;
  } catch {
    return 'unknown';
  }
}

/** Results of an earlier run in the same file, without the workloads that this run measures. */
function earlierReport({ out, only }: Options): Report | undefined {
  if (out === undefined || !existsSync(out.data)) return undefined;
  const report = JSON.parse(readFileSync(out.data, 'utf8')) as Report;
  for (const name of only) {
    delete report.results[name];
    delete report.measured[name];
  }
  return report;
}

function write(report: Report, out: Output): void {
  for (const path of Object.values(out)) mkdirSync(dirname(path), { recursive: true });
  const whole = { ...report, targets: verdictsOf(report.results) };
  writeFileSync(out.data, `${JSON.stringify(whole, null, 2)}\n`);
  writeFileSync(out.results, renderResults(report));
  writeFileSync(out.benchmarks, renderBenchmarks(report));
}

function print(results: Results): void {
  const tables = tablesOf(results);
  const verdicts = verdictsOf(results);
  const all = verdicts.length === 0 ? tables : [...tables, verdictsTable(verdicts)];
  process.stdout.write(`${all.flatMap(renderText).join('\n')}\n`);
}

type Schedulers = Pick<Context, 'reveille' | 'peers' | 'peersByDefault'> &
  Pick<Report, 'versions' | 'postgres' | 'systems' | 'unavailable'>;

/** The systems that store alarms or jobs, with their properties. */
async function readSchedulers(bench: Workbench, options: Options): Promise<Schedulers> {
  const wanted = ({ name }: { name: string }) => options.systems?.some((each) => each === name) ?? true;
  const own = await selectAvailable([reveilleOnSqlite(bench), reveilleOnPostgres(bench)].filter(wanted));
  const others = await selectAvailable(peersIn(bench, 'best').filter(wanted));
  const { available: reveille } = own;
  const { available: peers } = others;
  const unavailable = [...own.unavailable, ...others.unavailable];
  const peersByDefault = peersIn(bench, 'default')
    .filter(wanted)
    .filter(({ title }) => !others.unavailable.some((missing) => title.startsWith(missing.title)));
  const systems = [...reveille, ...peers, ...peersByDefault];
  return {
    ...{ reveille, peers, peersByDefault, unavailable },
    versions: await serverVersions(bench, wantsPeers(options)),
    postgres: await settingsOf(bench),
    systems: systems.map(({ name, title, settings }) => ({ name, title, settings })),
  };
}

/**
 * If this run cannot measure a system that the earlier run measured, the system would vanish from the page. The next
 * best peer would then count as the best.
 *
 * @throws WrongOption
 */
function refuseLoss(earlier: Report, { unavailable }: Schedulers, { systems, out }: Options): void {
  const lost = unavailable.find(({ title }) => earlier.systems.some((known) => known.title === title));
  if (!lost || systems || out === undefined) return;
  throw new WrongOption(
    `${lost.title} is in ${out.data} and cannot be measured here: ${lost.reason}. Install it, select the systems with --systems, or write to another folder with --out`,
  );
}

const NO_SCHEDULERS = { reveille: [], peers: [], peersByDefault: [] };

async function measureAll(bench: Workbench, options: Options, plan: Plan, progress: Progress): Promise<void> {
  progress.step("reading the machine's properties");
  const commit = commitOf();
  const earlier = earlierReport(options);
  const schedulers = needsServers(options.only) ? await readSchedulers(bench, options) : undefined;
  if (earlier && schedulers) refuseLoss(earlier, schedulers, options);
  // Results that this run does not measure stay as in the earlier run.
  const { postgres = {}, systems = [], unavailable = [] } = schedulers ?? earlier ?? {};
  const report: Report = {
    schema: 1,
    machine: describeMachine(bench.folder),
    versions: { ...earlier?.versions, ...ownVersions(), ...schedulers?.versions },
    ...{ postgres, systems, unavailable, plan },
    results: earlier?.results ?? {},
    measured: earlier?.measured ?? {},
  };
  const { reveille, peers, peersByDefault } = schedulers ?? NO_SCHEDULERS;
  const context: Context = { bench, plan, progress, reveille, peers, peersByDefault };
  for (const name of options.only) {
    await measureInto(report, name, context, commit);
    progress.clear();
    print({ [name]: report.results[name] });
    // Saved after each workload, so that an interrupted run keeps its results.
    if (options.out !== undefined) write(report, options.out);
  }
  for (const { title, reason } of schedulers?.unavailable ?? [])
    process.stdout.write(`\n${title} could not be measured: ${reason}\n`);
  if (options.out !== undefined) process.stdout.write(`\nWritten to ${Object.values(options.out).join(', ')}\n`);
}

async function run(options: Options): Promise<void> {
  const progress = new Progress(process.stderr);
  const servers = needsServers(options.only);
  if (servers) {
    if (wantsPeers(options)) installPeers(progress);
    progress.step('starting PostgreSQL and the sink');
  }
  const bench = await Workbench.open({ servers, profiles: options.profile });
  const interrupted = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
  try {
    // On a signal, running work fails because its processes are ended. Those errors are not reported.
    const signal = await Promise.race([interrupted, measureAll(bench, options, planOf(options), progress)]);
    if (signal) process.exitCode = signal === 'SIGINT' ? 130 : 143;
  } finally {
    progress.step('cleaning up');
    await bench.close();
    progress.clear();
  }
  process.exit();
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) process.stdout.write(`${USAGE}\n`);
  else await run(options);
} catch (thrown) {
  if (!(thrown instanceof WrongOption)) throw thrown;
  process.stderr.write(`${thrown.message}\n\n${USAGE}\n`);
  process.exitCode = 2;
}

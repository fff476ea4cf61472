/** `npm run bench`: measures, prints, writes the page. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../src/wire/version.ts';
import { withClient } from './databases.ts';
import { describeMachine } from './machine.ts';
import { type Options, readOptions, USAGE, WrongOption } from './options.ts';
import { type Plan, planOf, type WorkloadName } from './plan.ts';
import { Progress } from './progress.ts';
import { renderPage } from './report/page.ts';
import { renderText } from './report/table.ts';
import { tablesOf, verdictsTable } from './report/tables.ts';
import type { Report, Results } from './results.ts';
import { peersIn } from './systems/peers.ts';
import { reveilleOnPostgres } from './systems/reveille-postgres.ts';
import { reveilleOnSqlite } from './systems/reveille-sqlite.ts';
import { type ReveilleSystem, Unavailable } from './systems/system.ts';
import { verdictsOf } from './verdicts.ts';
import { BENCH_FOLDER, Workbench } from './workbench.ts';
import { measureBurst } from './workloads/burst.ts';
import type { Context } from './workloads/context.ts';
import { measureCreates } from './workloads/creates.ts';
import { measureFootprint } from './workloads/footprint.ts';
import { measureGrowth } from './workloads/growth.ts';
import { measureLateness } from './workloads/lateness.ts';
import { measureReplicas } from './workloads/replicas.ts';

const PEERS_FOLDER = join(BENCH_FOLDER, 'peers');
const FINDINGS = join(BENCH_FOLDER, 'report', 'findings.md');

/** What bears on durability and speed. */
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
  if (existsSync(join(PEERS_FOLDER, 'node_modules', 'pg-boss'))) return;
  progress.step('installing the peers (once)');
  execFileSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error', '--prefix', PEERS_FOLDER], {
    cwd: PEERS_FOLDER,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

function peerVersion(name: string): string {
  const path = join(PEERS_FOLDER, 'node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

async function versionsOf(bench: Workbench): Promise<Record<string, string>> {
  const { rows } = await withClient(bench.postgres.uri(), (client) => client.query('SHOW server_version'));
  return {
    Reveille: VERSION,
    Node: process.versions.node,
    SQLite: process.versions.sqlite ?? 'unknown',
    PostgreSQL: String(rows[0].server_version),
    'graphile-worker': peerVersion('graphile-worker'),
    'pg-boss': peerVersion('pg-boss'),
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

/** Those of Reveille's systems that can be installed here, and why the others cannot. */
async function tryOut(systems: readonly ReveilleSystem[]) {
  const available: ReveilleSystem[] = [];
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
  footprint: measureFootprint,
};

async function measureInto<Name extends WorkloadName>(report: Report, name: Name, context: Context): Promise<void> {
  const result: Results[Name] = await MEASURE[name](context);
  report.results[name] = result;
  report.measuredAt[name] = new Date().toISOString();
}

/** What an earlier run left in the folder, of the workloads that this one does not measure. */
function earlierResults(options: Options): Pick<Report, 'results' | 'measuredAt'> {
  const path = options.out === undefined ? undefined : join(options.out, 'benchmarks.json');
  if (path === undefined || !existsSync(path)) return { results: {}, measuredAt: {} };
  const { results, measuredAt } = JSON.parse(readFileSync(path, 'utf8')) as Report;
  for (const name of options.only) {
    delete results[name];
    delete measuredAt[name];
  }
  return { results, measuredAt };
}

function write(report: Report, out: string): void {
  mkdirSync(out, { recursive: true });
  const whole = { ...report, targets: verdictsOf(report.results) };
  writeFileSync(join(out, 'benchmarks.json'), `${JSON.stringify(whole, null, 2)}\n`);
  const findings = existsSync(FINDINGS) ? readFileSync(FINDINGS, 'utf8') : '';
  writeFileSync(join(out, 'benchmarks.md'), renderPage(report, findings));
}

function print(results: Results): void {
  const tables = tablesOf(results);
  const verdicts = verdictsOf(results);
  const all = verdicts.length === 0 ? tables : [...tables, verdictsTable(verdicts)];
  process.stdout.write(`${all.flatMap(renderText).join('\n')}\n`);
}

async function measureAll(bench: Workbench, options: Options, plan: Plan, progress: Progress): Promise<void> {
  progress.step('looking at the machine');
  const { available, unavailable } = await tryOut([reveilleOnSqlite(bench), reveilleOnPostgres(bench)]);
  const wanted = ({ name }: { name: string }) => options.systems?.includes(name) ?? true;
  const context: Context = {
    bench,
    plan,
    progress,
    reveille: available.filter(wanted),
    peers: peersIn(bench, 'best').filter(wanted),
    peersByDefault: peersIn(bench, 'default').filter(wanted),
  };
  const report: Report = {
    schema: 1,
    machine: describeMachine(bench.folder),
    versions: await versionsOf(bench),
    postgres: await settingsOf(bench),
    systems: [...context.reveille, ...context.peers, ...context.peersByDefault].map(({ name, title, settings }) => ({
      name,
      title,
      settings,
    })),
    unavailable,
    plan,
    ...earlierResults(options),
  };
  for (const name of options.only) {
    await measureInto(report, name, context);
    progress.clear();
    print({ [name]: report.results[name] });
    // After each workload: a run that is cut short leaves what it has found.
    if (options.out !== undefined) write(report, options.out);
  }
  for (const { title, reason } of unavailable) process.stdout.write(`\n${title} could not be measured: ${reason}\n`);
  if (options.out !== undefined) process.stdout.write(`\nWritten to ${join(options.out, 'benchmarks.md')}\n`);
}

async function run(options: Options): Promise<void> {
  const progress = new Progress(process.stderr);
  installPeers(progress);
  progress.step('starting PostgreSQL and the sink');
  const bench = await Workbench.open({ profiles: options.profile });
  const interrupted = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
  try {
    // What is under way when a signal comes fails as everything is taken away from it; that is not news.
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

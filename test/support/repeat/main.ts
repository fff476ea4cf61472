/**
 * `npm run test:repeat -- [--times N] [--busy N] [--jobs N] [--product | --release] [--all] [FILE…]`: runs test
 * processes repeatedly, as `npm test` starts them, beside busy cores. It prints how often each failed. Without names
 * it takes all suites that start processes or listen, which it detects by running each once. A suite that fails one
 * time in thirty has a defect, which this program finds.
 *
 * Exit 0: none failed. 1: some did, their output is in the named folder. 2: usage.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { NODE_ARGS, processesOf, suitesOf, type TestProcess } from '../suites.ts';

const MARK = new URL('./mark.ts', import.meta.url).href;
/** Maximum time of one run of one process. */
const RUN_MS = 10 * 60_000;

const options = {
  times: { type: 'string', default: '30' },
  busy: { type: 'string', default: '1' },
  jobs: { type: 'string', default: '2' },
  /** One half of the suites, as `npm run test:product` and `test:release` take them. */
  product: { type: 'boolean', default: false },
  release: { type: 'boolean', default: false },
  /** Repeats every process, also without child processes and listeners. */
  all: { type: 'boolean', default: false },
} as const;

function usage(problem: string): never {
  console.error(
    `${problem}\nusage: npm run test:repeat -- [--times N] [--busy N] [--jobs N] [--product | --release] [--all] [FILE…]`,
  );
  process.exit(2);
}

function readArguments() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error));
  }
}

const { values, positionals } = readArguments();
function count(name: 'times' | 'busy' | 'jobs', least: number): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= least) return number;
  return usage(`--${name} must be a whole number of at least ${least} (got ${JSON.stringify(values[name])})`);
}
const [times, busy, jobs] = [count('times', 1), count('busy', 0), count('jobs', 1)];

const half = (['product', 'release'] as const).filter((name) => values[name]).map((name) => `--${name}`);
const processes = processesOf(suitesOf([...positionals, ...half]));
const folder = mkdtempSync(join(tmpdir(), 'reveille-repeat-'));

/** The results of one process. */
type Tally = TestProcess & { runs: number; failures: string[]; milliseconds: number[]; marked: boolean };

const running = new Set<ChildProcess>();

function runOnce(tally: Tally, mark: string | undefined): Promise<void> {
  const { name, file } = tally;
  const number = ++tally.runs;
  const started = performance.now();
  const args = [...NODE_ARGS, ...(mark === undefined ? [] : ['--import', MARK]), file];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUN_MS,
    env: { ...process.env, ...(mark === undefined ? {} : { REVEILLE_REPEAT_MARK: mark }) },
  });
  running.add(child);
  let output = '';
  const collect = (text: string) => {
    output += text;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  return new Promise((resolve) =>
    child.once('close', (code, signal) => {
      running.delete(child);
      tally.milliseconds.push(performance.now() - started);
      if (code !== 0) {
        const log = join(folder, `${name.replaceAll('/', '_')}.${number}.log`);
        writeFileSync(log, `${output}\nended with ${code ?? signal}\n`);
        tally.failures.push(log);
        console.log(`FAILED  ${name} in run ${number}: ${log}`);
      }
      resolve();
    }),
  );
}

/** Processes one list of work in parallel; prints the progress every 30 s. */
async function inParallel(work: readonly (() => Promise<void>)[], what: string): Promise<void> {
  let next = 0;
  const report = setInterval(() => console.log(`  ${what}: ${next} of ${work.length} runs`), 30_000);
  const worker = async () => {
    for (let mine = next++; mine < work.length; mine = next++) await work[mine]!();
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  clearInterval(report);
}

const loops = Array.from({ length: busy }, () =>
  spawn(
    process.execPath,
    [
      '-e',
      'process.on("disconnect", () => process.exit()); const spin = () => { const end = Date.now() + 50; while (Date.now() < end); setImmediate(spin); }; spin();',
    ],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    },
  ),
);
process.once('exit', () => {
  for (const child of [...loops, ...running]) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const tallies = processes.map((one): Tally => ({ ...one, runs: 0, failures: [], milliseconds: [], marked: true }));
console.log(`${processes.length} processes, ${times} runs each, ${jobs} at a time, beside ${busy} busy cores`);
if (positionals.length === 0 && !values.all) {
  await inParallel(
    tallies.map((tally) => async () => {
      const mark = join(folder, `${tally.name.replaceAll('/', '_')}.mark`);
      writeFileSync(mark, '');
      await runOnce(tally, mark);
      tally.marked = readFileSync(mark, 'utf8') !== '';
    }),
    'finding suites that start processes or listen',
  );
}
const chosen = tallies.filter(({ marked }) => marked);
console.log(`${chosen.length} of ${processes.length} processes are repeated`);
// Round by round, so that runs of one process meet different neighbours.
const rounds = Array.from({ length: times }, (_, round) =>
  chosen.filter(({ runs }) => runs <= round).map((tally) => () => runOnce(tally, undefined)),
);
await inParallel(rounds.flat(), 'repeating');
for (const loop of loops) loop.kill('SIGKILL');

const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(1)} s`.padStart(8);
console.log('\n    runs  failed    median       max  process');
for (const { name, runs, failures, milliseconds } of chosen) {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  const median = seconds(sorted[Math.floor(sorted.length / 2)]!);
  console.log(
    `${String(runs).padStart(8)}${String(failures.length).padStart(8)}  ${median}  ${seconds(sorted.at(-1)!)}  ${name}`,
  );
}
const failed = tallies.filter(({ failures }) => failures.length > 0);
const all = tallies.reduce((sum, { runs }) => sum + runs, 0);
console.log(
  `\n${all} runs of ${tallies.length} processes, ${failed.reduce((sum, { failures }) => sum + failures.length, 0)} failed`,
);
if (failed.length > 0) console.log(`what they printed: ${folder}`);
process.exit(failed.length > 0 ? 1 : 0);

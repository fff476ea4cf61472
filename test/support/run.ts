/**
 * Runs suites with Node's own runner: `npm run test:all` all of them, or those that its patterns name;
 * `npm run test:product` what a change is tried with, `npm run test:release` the rest, which a release needs besides.
 *
 * Two things differ from `node --test`, which starts files in the order of their names, each in a process of its own.
 * Suites that mostly wait begin first, so that the cores have work until the end. And suites beside sources that only
 * compute share one process per system: most of what each costs alone is the start of Node and the loading of modules.
 */
import { availableParallelism } from 'node:os';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { NODE_WORDS, processesOf, suitesOf } from './suites.ts';

/** Longest that one suite, or one test, may take. */
const TIMEOUT_MS = 300_000;
/**
 * Files at a time for each core: most wait for processes half of their time. Three are up to a tenth faster on two cores,
 * and twice as many processes stand in line for them, which fails a test now and then.
 */
const FILES_PER_CORE = 2;

const suites = suitesOf(process.argv.slice(2));
const processes = processesOf(suites);
console.log(`${suites.length} suites in ${processes.length} processes`);

run({
  files: processes.map(({ file }) => file),
  concurrency: FILES_PER_CORE * availableParallelism(),
  timeout: TIMEOUT_MS,
  execArgv: [...NODE_WORDS],
})
  .on('test:summary', ({ success }) => {
    if (!success) process.exitCode = 1;
  })
  .compose(spec)
  .pipe(process.stdout);

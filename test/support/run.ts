/**
 * Runs suites with Node's own runner: `npm run test:all` all of them, or those of its patterns; `npm run test:product`
 * the half for every change, `npm run test:release` the other half, for a release. `--needs-tools` runs only the suites
 * that start optional tools, `--check` adds the checks (check.ts).
 *
 * Two things differ from `node --test`, which starts files in the order of their names, each in its own process.
 * The longest begin first, then suites that mostly wait, so that the cores have work until the end. Suites beside sources that only
 * compute share one process per system, because starting Node and loading modules are most of their cost.
 *
 * Before Node's summary, one line for each missing tool says how many tests it skipped and which command installs it.
 */
import { Readable } from 'node:stream';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { missingTools } from './missing-tools.ts';
import { runProcesses } from './run-processes.ts';
import { processesOf, suitesOf } from './suites.ts';

const CHECK = { name: 'check', file: fileURLToPath(import.meta.resolve('./check.ts')) };

const suites = suitesOf(process.argv.slice(2));
const processes = [...(process.argv.includes('--check') ? [CHECK] : []), ...processesOf(suites)];
console.log(`${suites.length} suites in ${processes.length} processes`);

const events = runProcesses(processes).on('test:summary', ({ success }) => {
  if (!success) process.exitCode = 1;
});
Readable.from(missingTools(events)).compose(spec).pipe(process.stdout);

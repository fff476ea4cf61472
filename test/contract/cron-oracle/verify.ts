/**
 * `npm run verify:cron -- [--seed N] [--cases N]`: checks the schedule engine against the oracle; exits with 1 and a
 * reproduction when they differ.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { run } from './comparison.ts';

const { values } = parseArgs({ options: { seed: { type: 'string' }, cases: { type: 'string', default: '100000' } } });
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
const cases = Number(values.cases);
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(cases) || cases < 1) {
  console.error('--seed must be a whole number, --cases a whole number of at least 1');
  process.exit(2);
}

console.log(`cron against the oracle: ${cases} cases, --seed ${seed}`);
const started = performance.now();
const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
let nextReport = started + 5_000;
const { tally, mismatch } = run(seed, cases, (soFar) => {
  if (performance.now() < nextReport) return;
  nextReport += 5_000;
  console.log(`  ${soFar.cases} cases, ${soFar.zones} zones, ${seconds()} s`);
});

if (mismatch) {
  const { expression, timezone, question, expected, actual } = mismatch;
  console.error(`\nmismatch after ${tally.cases} cases; the smallest form of it:`);
  console.error(`  compileSchedule(${JSON.stringify(expression)}, ${JSON.stringify(timezone)}, 0).${question}`);
  console.error(`  the oracle says  ${expected}`);
  console.error(`  the engine says  ${actual}`);
  process.exit(1);
}
console.log(
  `0 mismatches in ${tally.cases} cases (${tally.zones} zones, ${tally.comparisons} comparisons, ${tally.occurrences} occurrences; ` +
    `${tally.sparse} more than a year away, ${tally.impossible} expressions that never match, all refused) in ${seconds()} s`,
);

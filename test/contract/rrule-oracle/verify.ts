/**
 * `npm run verify:rrule -- [--seed N] [--rules N]`: checks the recurrence engine against rrule-temporal and, where
 * Python has it, python-dateutil; measures how long a next occurrence takes. Exits with 1 when they differ without a
 * known reason.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { run, type Tally } from './comparison.ts';
import { measure } from './speed.ts';

const { values } = parseArgs({ options: { seed: { type: 'string' }, rules: { type: 'string', default: '20000' } } });
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
const rules = Number(values.rules);
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(rules) || rules < 1) {
  console.error('--seed must be a whole number, --rules a whole number of at least 1');
  process.exit(2);
}

console.log(`recurrence rules against the libraries: ${rules} rules, --seed ${seed}`);
const started = performance.now();
const seconds = () => ((performance.now() - started) / 1000).toFixed(0);
const { tally, mismatches } = run(seed, rules, {
  report: ({ rules: done, zoned }) => console.log(`  ${done} rules, ${zoned} in zones, ${seconds()} s`),
});

function summary(of: Tally): string[] {
  const explained = [...of.explained].map(([reason, count]) => `  ${count} × ${reason}`);
  return [
    `${of.rules} rules without a zone: ${of.agreedByAll} agree with every library that answers (${of.occurrences} occurrences),`,
    `  ${of.never} never fire, of ${of.unanswered} no library answers in time`,
    ...explained,
    `${of.zoned} unions in zones agree (${of.zonedOccurrences} occurrences, ${of.movedOrRepeated} within 3 hours of a clock change; ${of.realTime} follow real time), ${of.skipped} are skipped`,
  ];
}

for (const { text, timezone, after, expected, actual } of mismatches) {
  console.error(`\nmismatch in ${timezone} after ${new Date(after).toISOString()}:`);
  console.error(`  ${text.replaceAll('\n', '\n  ')}\n  expected\n    ${expected}\n  the engine says\n    ${actual}`);
}
for (const line of summary(tally)) console.log(line);
const { count, p50, p99, slowest } = measure(seed, rules);
console.log(
  `next occurrence ten years after the start, ${count} rules: p50 ${p50.toFixed(1)} µs, p99 ${p99.toFixed(1)} µs, slowest ${slowest.toFixed(0)} µs`,
);
console.log(`${mismatches.length} unexplained mismatches in ${seconds()} s`);
process.exit(mismatches.length > 0 || p99 > 50 ? 1 : 0);

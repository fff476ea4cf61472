/** `npm run chaos`: the crash test at length. `--rounds N`, `--seed N`. */
import { parseArgs } from 'node:util';
import { runCrashTest, summarize } from './crash.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  console.error('usage: npm run chaos -- [--rounds N] [--seed N], whole numbers');
  process.exit(2);
}

console.log(`seed ${seed}; repeat this run with: npm run chaos -- --rounds ${rounds} --seed ${seed}`);
const report = await runCrashTest({
  rounds,
  users: 3,
  alarmsPerRound: 8,
  seed,
  onRound: (round, victim) => {
    if (process.stdout.isTTY) process.stdout.write(`\r\u001b[2Kround ${round + 1} of ${rounds}: killed ${victim}`);
    else if ((round + 1) % 20 === 0) console.log(`round ${round + 1} of ${rounds}`);
  },
});
if (process.stdout.isTTY) process.stdout.write('\r\u001b[2K');
console.log(summarize(report));
for (const violation of report.violations) console.log(`violation: ${violation}`);
process.exitCode = report.violations.length > 0 ? 1 : 0;

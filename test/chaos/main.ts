/** `npm run chaos`: the crash test at length, on both stores. `--rounds N`, `--seed N`, `--store sqlite|postgres`. */
import { parseArgs } from 'node:util';
import { runCrashTest, summarize } from './crash.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    store: { type: 'string', default: 'both' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);
const stores = (['sqlite', 'postgres'] as const).filter((store) => values.store === 'both' || values.store === store);
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed) || stores.length === 0) {
  console.error('usage: npm run chaos -- [--rounds N] [--seed N] [--store sqlite|postgres]');
  process.exit(2);
}

console.log(`seed ${seed}; repeat this run with: npm run chaos -- --rounds ${rounds} --seed ${seed}`);
for (const store of stores) {
  const report = await runCrashTest({
    store,
    replicas: store === 'postgres' ? 3 : 1,
    rounds,
    users: 3,
    alarmsPerRound: 8,
    seed,
    onRound: (round, victim) => {
      const done = `${store}: round ${round + 1} of ${rounds}`;
      if (process.stdout.isTTY) process.stdout.write(`\r\u001b[2K${done}, ended ${victim}`);
      else if ((round + 1) % 20 === 0) console.log(done);
    },
  });
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[2K');
  console.log(`${store}: ${summarize(report)}`);
  for (const violation of report.violations) console.log(`violation: ${violation}`);
  if (report.violations.length > 0) process.exitCode = 1;
}

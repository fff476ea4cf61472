/**
 * `npm run chaos`: injects all faults into real processes, on both stores, and judges their logs and data. Exit 0:
 * every promise was kept; 1: a promise was broken, or a campaign failed; 2: the requested run is impossible.
 */
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { runApart } from './campaign-child.ts';
import { FAULTS } from './faults/all.ts';
import { type Job, Misuse, type Options, parseOptions, USAGE } from './options.ts';
import type { CampaignOutcome } from './report.ts';
import { CAMPAIGN_STORES } from './stores.ts';
import { complaints, headline, standstills, table } from './summary.ts';

/** Time before the deadline, so that running campaigns can still end, be read and judged. */
const CLOSING_MS = 30_000;

function deadline(limitMs: number): AbortSignal {
  const deadline = new AbortController();
  setTimeout(() => deadline.abort(), Math.max(0, limitMs - CLOSING_MS)).unref();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      console.error('ending the campaigns; interrupt again to end at once');
      deadline.abort();
      process.once(signal, () => process.exit(1));
    });
  return deadline.signal;
}

async function runAll({ jobs, seed, lanes, deadlineMs, keep }: Options): Promise<CampaignOutcome[]> {
  const signal = deadline(deadlineMs);
  const outcomes = new Map<Job, CampaignOutcome>();
  const waiting = [...jobs];
  const worker = async () => {
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      const { fault, store } = job;
      const outcome: CampaignOutcome = signal.aborted
        ? { fault: fault.name, title: fault.title, store, seed, broke: 'the time was up before it began' }
        : await runApart(job, { seed, keep, signal });
      outcomes.set(job, outcome);
      console.log(headline(outcome));
    }
  };
  await Promise.all(Array.from({ length: lanes }, worker));
  const position = ({ fault, store }: Job) =>
    FAULTS.indexOf(fault) * CAMPAIGN_STORES.length + CAMPAIGN_STORES.indexOf(store);
  return [...jobs].sort((one, other) => position(one) - position(other)).map((job) => outcomes.get(job)!);
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') {
    console.log(USAGE);
    return 0;
  }
  console.log(`seed ${options.seed} · ${options.jobs.length} campaigns, ${options.lanes} at a time`);
  const began = performance.now();
  const outcomes = await runAll(options);
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(`\n${table(outcomes)}`);
  const standstillText = standstills(outcomes);
  if (standstillText.length > 0) console.log(`\n${standstillText.join('\n')}`);
  const found = complaints(outcomes);
  if (found.length > 0) console.log(`\n${found.join('\n')}`);
  if (options.json !== undefined) {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model, node: process.version };
    writeFileSync(options.json, `${JSON.stringify({ seed: options.seed, seconds, machine, outcomes }, null, 2)}\n`);
  }
  const skipped = outcomes.filter((outcome) => 'skipped' in outcome);
  if (options.requireAll && skipped.length > 0)
    console.log(`\n${skipped.length} campaigns were skipped (--require-all)`);
  return found.length > 0 || (options.requireAll && skipped.length > 0) ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (thrown) {
  const isMisuse =
    thrown instanceof Misuse ||
    (thrown instanceof Error && 'code' in thrown && /^ERR_PARSE_ARGS/.test(`${thrown.code}`));
  if (!isMisuse) throw thrown;
  console.error(`${thrown.message}\n\n${USAGE}`);
  process.exitCode = 2;
}

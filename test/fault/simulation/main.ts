/**
 * `npm run simulate`: chronos in thousands of simulated worlds. `--seeds N --from S --workers K --minutes M`;
 * `--seed N [--trace]` replays one; `--mutant name` adds a known defect.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runCampaign } from './campaign.ts';
import { add, noFigures, summarize } from './figures.ts';
import { MUTANTS } from './mutants.ts';
import { type Outcome, simulate } from './simulate.ts';

const USAGE = `usage: npm run simulate -- [--seeds N] [--from SEED] [--workers K] [--minutes M] [--mutant NAME]
       npm run simulate -- --seed SEED [--trace] [--mutant NAME]
mutants: ${Object.keys(MUTANTS).join(' ')}`;

const SHOWN_VIOLATIONS = 5;
/** After this number of seeds with violations a campaign stops. */
const ENOUGH_BROKEN = 20;
const QUIET_MS = 2_000;

function refuse(): never {
  console.error(USAGE);
  process.exit(2);
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: 'string' },
        trace: { type: 'boolean', default: false },
        seeds: { type: 'string', default: '2000' },
        from: { type: 'string', default: String(Math.floor(Date.now() / 1000) % 1_000_000_000) },
        workers: { type: 'string', default: String(availableParallelism()) },
        minutes: { type: 'string', default: '600' },
        mutant: { type: 'string' },
      },
    });
    return values;
  } catch {
    return refuse();
  }
}

/** A number from the command line, whole by default. */
function numberOf(text: string, least: number, isFit: (number: number) => boolean = Number.isSafeInteger): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  return isFit(number) && number >= least ? number : refuse();
}

const values = readArguments();
if (values.mutant !== undefined && !Object.hasOwn(MUTANTS, values.mutant)) refuse();
const mutant = values.mutant;

function show(outcome: Outcome): void {
  const { seed, violations } = outcome;
  const { mode, engine, replicas } = outcome.scenario;
  console.log(`\nseed ${seed} (${mode}, ${engine}, ${replicas.length} replicas): ${violations.length} violations`);
  for (const violation of violations.slice(0, SHOWN_VIOLATIONS)) console.log(`  ${violation}`);
  if (violations.length > SHOWN_VIOLATIONS) console.log(`  and ${violations.length - SHOWN_VIOLATIONS} more`);
  console.log(`  replay: npm run simulate -- --seed ${seed} --trace${mutant ? ` --mutant ${mutant}` : ''}`);
}

async function replay(seed: number): Promise<void> {
  const onLine = values.trace ? (line: string) => console.log(line) : undefined;
  const outcome = await simulate({
    seed,
    mutant: mutant === undefined ? undefined : MUTANTS[mutant],
    ...(onLine ? { onLine } : {}),
  });
  console.log(
    `${outcome.events} events in ${(outcome.simulatedMs / 60_000).toFixed(1)} simulated minutes, digest ${outcome.digest}`,
  );
  console.log(`${outcome.alarms} alarms, ${outcome.deliveries} deliveries begun, ${outcome.turns} turns`);
  if (outcome.violations.length > 0) {
    show(outcome);
    process.exitCode = 1;
  } else console.log('no violations');
}

async function campaign(): Promise<void> {
  const from = numberOf(values.from, 0);
  const seeds = numberOf(values.seeds, 1);
  const figures = noFigures();
  const began = performance.now();
  const stopping = new AbortController();
  // Running worlds run to their end, so that none of their files remain on disk.
  process.once('SIGINT', () => stopping.abort());
  const isScreen = process.stdout.isTTY;
  const clear = () => isScreen && process.stdout.write('\r\u001b[2K');
  console.log(`seeds ${from} to ${from + seeds - 1}; repeat with: npm run simulate -- --from ${from} --seeds ${seeds}`);
  await runCampaign({
    from,
    seeds,
    workers: numberOf(values.workers, 1),
    limitMs: numberOf(values.minutes, 0, Number.isFinite) * 60_000,
    stop: stopping.signal,
    mutant,
    onOutcome(outcome) {
      add(figures, outcome);
      const elapsedMs = performance.now() - began;
      if (outcome.violations.length > 0 && figures.broken <= ENOUGH_BROKEN) {
        clear();
        show(outcome);
      }
      if (isScreen && elapsedMs > QUIET_MS)
        process.stdout.write(
          `\r\u001b[2K${figures.seeds} of ${seeds} seeds, ${figures.violations} violations, ${Math.round((figures.seeds * 3_600_000) / elapsedMs).toLocaleString('en-US')} per hour`,
        );
      else if (!isScreen && figures.seeds % 500 === 0)
        console.log(`${figures.seeds} seeds, ${figures.violations} violations`);
    },
    onFailure(seed, error) {
      clear();
      console.log(`\nseed ${seed} failed: ${error}\n  replay: npm run simulate -- --seed ${seed} --trace`);
      process.exitCode = 1;
    },
  });
  clear();
  console.log(`\n${summarize(figures, performance.now() - began)}`);
  if (figures.violations > 0) process.exitCode = 1;
}

if (values.seed === undefined) await campaign();
else await replay(numberOf(values.seed, 0));

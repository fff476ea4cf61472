/** The options of `npm run chaos`. */
import { parseArgs } from 'node:util';
import type { Extent, Fault } from './fault.ts';
import { FAULTS } from './faults/all.ts';
import { CAMPAIGN_STORES, type CampaignStore, USUAL_STORES } from './stores.ts';

export const USAGE = `usage: npm run chaos -- [--short] [--store sqlite|postgres|both|patroni|citus] [--faults NAME,…] [--rounds N] [--minutes M]
                        [--seed N] [--lanes N] [--json FILE] [--keep] [--require-all]

  --short        every fault a few times, within five minutes on two cores
  --faults       some of: ${FAULTS.map(({ name }) => name).join(', ')}
  --rounds N     strikes in each campaign (40)
  --minutes M    how long all of it may take (120); campaigns that are at work then are judged as they are
  --seed N       decides what is struck and when; the machine decides the interleaving
  --lanes N      campaigns at a time (2; 4 with --short)
  --json FILE    the figures for machines
  --keep         keeps logs and data even where nothing is wrong
  --require-all  a fault that cannot be produced on this machine is an error`;

export type Job = { fault: Fault; store: CampaignStore; extent: Extent };

export type Options = {
  jobs: readonly Job[];
  seed: number;
  lanes: number;
  deadlineMs: number;
  json: string | undefined;
  keep: boolean;
  requireAll: boolean;
};

/** The requested run is impossible; the message says why. */
export class Misuse extends Error {}

const MINUTE_MS = 60_000;
const LONG = { rounds: 40, minutes: 120, lanes: 2, recoveringMs: 30_000, drainMs: 3 * MINUTE_MS };
const SHORT = { minutes: 5, lanes: 4 };

function numberOption(name: string, text: string | undefined, absent: number): number {
  if (text === undefined) return absent;
  if (!/^\d{1,9}$/.test(text) || (Number(text) === 0 && name !== 'seed'))
    throw new Misuse(`--${name} must be a whole number of at least 1 (got ${text})`);
  return Number(text);
}

function choose<T extends string>(name: string, text: string | undefined, from: readonly T[]): T[] {
  if (text === undefined) return [...from];
  return text.split(',').map((word) => {
    const found = from.find((each) => each === word);
    if (found === undefined) throw new Misuse(`--${name} must be of ${from.join(', ')} (got ${word})`);
    return found;
  });
}

function storesOf(text = 'both'): readonly CampaignStore[] {
  return text === 'both' ? USUAL_STORES : choose('store', text, CAMPAIGN_STORES);
}

/** The longest campaigns start first, so that all of them end at about the same time. */
function jobsOf(faults: readonly Fault[], stores: readonly CampaignStore[], extentOf: (fault: Fault) => Extent): Job[] {
  return faults
    .flatMap((fault) =>
      fault.stores
        .filter((store) => stores.includes(store))
        .map((store) => ({ fault, store, extent: extentOf(fault) })),
    )
    .sort((one, other) => lengthOf(other) - lengthOf(one));
}

const lengthOf = ({ extent }: Job) => extent.strikingMs + extent.drainMs;

/** @throws Misuse, or an error of `parseArgs` */
export function parseOptions(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      short: { type: 'boolean', default: false },
      store: { type: 'string' },
      faults: { type: 'string' },
      rounds: { type: 'string' },
      minutes: { type: 'string' },
      seed: { type: 'string' },
      lanes: { type: 'string' },
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
      'require-all': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const names = choose(
    'faults',
    values.faults,
    FAULTS.map(({ name }) => name),
  );
  const faults = FAULTS.filter(({ name }) => names.includes(name));
  const defaults = values.short ? SHORT : LONG;
  const minutes = numberOption('minutes', values.minutes, defaults.minutes);
  const rounds = numberOption('rounds', values.rounds, LONG.rounds);
  const { recoveringMs, drainMs } = LONG;
  const long: Extent = { strikes: rounds, strikingMs: minutes * MINUTE_MS, recoveringMs, drainMs };
  const jobs = jobsOf(faults, storesOf(values.store), (fault) => (values.short ? fault.short : long));
  if (jobs.length === 0) throw new Misuse('none of these faults exists for that store');
  return {
    jobs,
    seed: numberOption('seed', values.seed, Date.now() % 2 ** 31),
    lanes: numberOption('lanes', values.lanes, defaults.lanes),
    deadlineMs: minutes * MINUTE_MS,
    json: values.json,
    keep: values.keep,
    requireAll: values['require-all'],
  };
}

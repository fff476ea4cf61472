/** The command line of `npm run bench`. Pure. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ON_REQUEST, SYSTEMS, type SystemName, WORKLOADS, type WorkloadName } from './plan.ts';

export const USAGE = `npm run bench -- [options]

  --only <names>       some of: ${WORKLOADS.join(', ')}
  --minutes <n>        length of the endurance workload; it and resident run only when --only names them
  --quick              fewer rounds, shorter windows: about five minutes
  --rounds <n>         rounds whose medians are shown
  --seconds <n>        length of a window of the lateness workload
  --growth-max <n>     most pending alarms of the growth workload
  --systems <names>    some of: ${SYSTEMS.join(', ')}
  --out <folder>       write benchmarks.md, results.md and results.json there;
                       without it docs/benchmarks.md, bench/results.md and bench/results.json, with --quick nothing
  --profile <folder>   let every chronosd leave a CPU profile there
  --help

With --only, results.json keeps the results of the other workloads.`;

/** The files that a run writes. */
export type Output = {
  /** The page for users. */
  benchmarks: string;
  /** All tables. */
  results: string;
  data: string;
};

const COMMITTED: Output = {
  benchmarks: 'docs/benchmarks.md',
  results: 'bench/results.md',
  data: 'bench/results.json',
};

export type Options = {
  only: readonly WorkloadName[];
  quick: boolean;
  rounds: number | undefined;
  seconds: number | undefined;
  growthMax: number | undefined;
  minutes: number | undefined;
  systems: readonly SystemName[] | undefined;
  /** `undefined`: the results are only printed. */
  out: Output | undefined;
  profile: string | undefined;
  help: boolean;
};

/** An invalid argument; the message names the valid values. */
export class WrongOption extends Error {}

function positive(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new WrongOption(`--${name} must be a whole number from 1 (got ${text})`);
  return value;
}

/**
 * The known names in a list with commas, in the order of `known`.
 *
 * @throws WrongOption for an unknown name or an empty list
 */
function namesIn<Name extends string>(option: string, text: string, known: readonly Name[]): Name[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !known.some((each) => each === name));
  if (unknown !== undefined)
    throw new WrongOption(`--${option} knows ${known.join(', ')} (got ${unknown === '' ? 'an empty name' : unknown})`);
  return known.filter((name) => names.includes(name));
}

function outputOf(folder: string | undefined, quick: boolean): Output | undefined {
  if (folder === undefined) return quick ? undefined : COMMITTED;
  const at = (name: string) => join(folder, name);
  return { benchmarks: at('benchmarks.md'), results: at('results.md'), data: at('results.json') };
}

/**
 * @param args the arguments after the program's name
 * @throws WrongOption
 */
export function readOptions(args: readonly string[]): Options {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  let values: ReturnType<typeof parse>;
  const parse = () =>
    parseArgs({
      args: [...args],
      options: {
        only: text,
        quick: flag,
        rounds: text,
        seconds: text,
        'growth-max': text,
        minutes: text,
        systems: text,
        out: text,
        profile: text,
        help: flag,
      },
    }).values;
  try {
    values = parse();
  } catch (thrown) {
    throw new WrongOption(thrown instanceof Error ? thrown.message : String(thrown));
  }
  return {
    only:
      values.only === undefined
        ? WORKLOADS.filter((name) => !ON_REQUEST.has(name))
        : namesIn('only', values.only, WORKLOADS),
    quick: values.quick,
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    growthMax: positive('growth-max', values['growth-max']),
    minutes: positive('minutes', values.minutes),
    systems: values.systems === undefined ? undefined : namesIn('systems', values.systems, SYSTEMS),
    out: outputOf(values.out, values.quick),
    profile: values.profile,
    help: values.help,
  };
}

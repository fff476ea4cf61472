/** The command line of `npm run bench`. Pure. */
import { parseArgs } from 'node:util';
import { ON_REQUEST, WORKLOADS, type WorkloadName } from './plan.ts';

export const USAGE = `npm run bench -- [options]

  --only <names>       some of: ${WORKLOADS.join(', ')}
  --minutes <n>        length of the endurance workload; it and resident run only when --only names them
  --quick              fewer rounds, shorter windows: about five minutes
  --rounds <n>         rounds whose medians are shown
  --seconds <n>        length of a window of the lateness workload
  --growth-max <n>     most pending alarms of the growth workload
  --systems <names>    only these systems, by their names in the JSON
  --out <folder>       write benchmarks.md and benchmarks.json there; docs/internals unless --quick, nowhere otherwise
  --profile <folder>   let every chronosd leave a CPU profile there
  --help

With --only, what the JSON in the folder holds of the other workloads is kept.`;

export type Options = {
  only: readonly WorkloadName[];
  quick: boolean;
  rounds: number | undefined;
  seconds: number | undefined;
  growthMax: number | undefined;
  minutes: number | undefined;
  systems: readonly string[] | undefined;
  out: string | undefined;
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

function namesIn(text: string | undefined): string[] | undefined {
  return text
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

function workloads(text: string | undefined): readonly WorkloadName[] {
  const names = namesIn(text);
  if (!names) return WORKLOADS.filter((name) => !ON_REQUEST.has(name));
  const unknown = names.find((name) => !WORKLOADS.some((known) => known === name));
  if (unknown !== undefined) throw new WrongOption(`--only knows ${WORKLOADS.join(', ')} (got ${unknown})`);
  return WORKLOADS.filter((name) => names.includes(name));
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
    only: workloads(values.only),
    quick: values.quick,
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    growthMax: positive('growth-max', values['growth-max']),
    minutes: positive('minutes', values.minutes),
    systems: namesIn(values.systems),
    out: values.out ?? (values.quick ? undefined : 'docs/internals'),
    profile: values.profile,
    help: values.help,
  };
}

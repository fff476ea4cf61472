/** `machine put`: the budget in a command line. */
import type { Budget, QuietHours } from '../../wire/budget.ts';
import { showValue } from '../../wire/validate.ts';
import { durationFlag, wholeNumberFlag } from './flags.ts';
import { UsageError } from './usage-error.ts';

export type BudgetFlags = {
  maxPerHour?: string;
  maxPerDay?: string;
  minGap?: string;
  quiet?: string;
  zone?: string;
  quietDays?: string;
  breaker?: string;
  breakerPause?: string;
  unlimited?: boolean;
};

const BUDGET_FLAGS = [
  'maxPerHour',
  'maxPerDay',
  'minGap',
  'quiet',
  'zone',
  'quietDays',
  'breaker',
  'breakerPause',
] as const satisfies (keyof BudgetFlags)[];

/** The names of the flags as the parser returns them. */
export const BUDGET_FLAG_NAMES: readonly (keyof BudgetFlags)[] = [...BUDGET_FLAGS, 'unlimited'];

/** Whole seconds: the machine's schema takes no fractions. */
function secondsFlag(name: string, given: string | undefined): number | undefined {
  const seconds = durationFlag(name, given, 1);
  return seconds === undefined ? undefined : Math.ceil(seconds);
}

/** @throws UsageError for invalid hours, or flags that need hours */
export function quietOf({ quiet, zone, quietDays }: BudgetFlags): QuietHours | undefined {
  if (quiet === undefined) {
    const foreign = zone !== undefined ? '--zone' : quietDays !== undefined ? '--quiet-days' : undefined;
    if (foreign) throw new UsageError(`${foreign} needs --quiet; give the hours, such as --quiet 22:00-07:00`);
    return undefined;
  }
  const match = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(quiet);
  if (!match) throw new UsageError(`--quiet must look like 22:00-07:00 (got ${showValue(quiet)})`);
  if (zone === undefined) throw new UsageError('--quiet needs --zone, such as --zone Europe/Berlin');
  // The machine's schema checks whether times, zone and days exist.
  const days = quietDays?.split(',') as QuietHours['days'];
  return { from: match[1]!, to: match[2]!, timezone: zone, ...(days && { days }) };
}

function breakerOf({ breaker, breakerPause }: BudgetFlags): Budget['breaker'] {
  const failures = wholeNumberFlag('--breaker', breaker, 1, 100);
  const pause = secondsFlag('--breaker-pause', breakerPause);
  if (failures === undefined) {
    if (pause !== undefined)
      throw new UsageError('--breaker-pause needs --breaker; give the failures, such as --breaker 5');
    return undefined;
  }
  return { failures, ...(pause === undefined ? {} : { pause_seconds: pause }) };
}

/**
 * The budget in a command line; `undefined` without budget flags.
 *
 * @throws UsageError naming the wrong or incomplete flag
 */
export function budgetOf(flags: BudgetFlags): Budget | undefined {
  const given = BUDGET_FLAGS.filter((name) => flags[name] !== undefined);
  if (flags.unlimited) {
    if (given.length > 0) throw new UsageError('--unlimited excludes limits; omit it or them');
    return {};
  }
  if (given.length === 0) return undefined;
  const budget = {
    wakes_per_hour: wholeNumberFlag('--max-per-hour', flags.maxPerHour, 1, 1000),
    wakes_per_day: wholeNumberFlag('--max-per-day', flags.maxPerDay, 1, 10_000),
    min_gap_seconds: secondsFlag('--min-gap', flags.minGap),
    quiet: quietOf(flags),
    breaker: breakerOf(flags),
  };
  return Object.fromEntries(Object.entries(budget).filter(([, member]) => member !== undefined)) as Budget;
}

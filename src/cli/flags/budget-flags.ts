/** `machine put`: the budget in a command line. */
import { type Budget, type QuietHours, TOKENS_MAX, USD_MAX } from '../../wire/budget.ts';
import { showValue } from '../../wire/validate.ts';
import { durationFlag, wholeNumberFlag } from './flags.ts';
import { UsageError } from './usage-error.ts';

export type BudgetFlags = {
  maxPerHour?: string;
  maxPerDay?: string;
  maxTokensPerTurn?: string;
  maxTokensPerDay?: string;
  maxTokensPerAlarm?: string;
  maxUsdPerDay?: string;
  maxUsdPerAlarm?: string;
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
  'maxTokensPerTurn',
  'maxTokensPerDay',
  'maxTokensPerAlarm',
  'maxUsdPerDay',
  'maxUsdPerAlarm',
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

/** US dollars, such as 2 or 0.50. */
function usdFlag(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const usd = /^\d{1,7}(\.\d{1,6})?$/.test(given) ? Number(given) : Number.NaN;
  if (usd > 0 && usd <= USD_MAX) return usd;
  throw new UsageError(
    `${name} must be an amount in US dollars up to ${USD_MAX}, such as 2.50 (got ${showValue(given)})`,
  );
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
    tokens_per_turn: wholeNumberFlag('--max-tokens-per-turn', flags.maxTokensPerTurn, 1, TOKENS_MAX),
    tokens_per_day: wholeNumberFlag('--max-tokens-per-day', flags.maxTokensPerDay, 1, TOKENS_MAX),
    usd_per_day: usdFlag('--max-usd-per-day', flags.maxUsdPerDay),
    tokens_per_alarm_per_day: wholeNumberFlag('--max-tokens-per-alarm', flags.maxTokensPerAlarm, 1, TOKENS_MAX),
    usd_per_alarm_per_day: usdFlag('--max-usd-per-alarm', flags.maxUsdPerAlarm),
    quiet: quietOf(flags),
    breaker: breakerOf(flags),
  };
  return Object.fromEntries(Object.entries(budget).filter(([, member]) => member !== undefined)) as Budget;
}

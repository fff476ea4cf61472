/**
 * `@every <Go duration>`: a series of instants at a fixed distance, independent of the wall clock (docs/reference/api.md
 * §2).
 */
import { DELAY_MAX_SECONDS } from '../../wire/alarm-fields.ts';
import { showValue } from '../../wire/validate.ts';
import { cronError } from './cron.ts';

const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // U+00B5, micro sign
  μs: 1_000n, // U+03BC, Greek mu: Go reads both
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

const LONGEST_NANOSECONDS = BigInt(DELAY_MAX_SECONDS) * NANOSECONDS.s!;

/** Whether an expression is an `@every`, well-formed or not. */
export function isEvery(cronExpr: string): boolean {
  return /^[ \t]*@every(?![a-z])/i.test(cronExpr);
}

/**
 * Parses the interval of an `@every` expression: a duration in the syntax of Go's `time.ParseDuration` (`90s`, `1h30m`,
 * `1.5h`). It is more than zero, a whole number of milliseconds, and at most ten years.
 *
 * @returns the interval in milliseconds
 * @throws ReveilleError `invalid_request` that names the problem and the remedy
 */
export function parseEvery(cronExpr: string): number {
  const duration = /^[ \t]*@every[ \t]+(\S+)[ \t]*$/i.exec(cronExpr)?.[1];
  if (duration === undefined) {
    throw cronError(cronExpr, '@every takes one duration without spaces inside, such as @every 90s or @every 1h30m');
  }
  const [, sign = '', amount = ''] = /^([+-]?)(.*)$/s.exec(duration)!;
  const nanoseconds = amount === '0' ? 0n : sumOfParts(amount);
  if (nanoseconds === undefined) {
    throw cronError(
      cronExpr,
      `${showValue(duration)} is not a duration; write numbers with h, m, s or ms, such as 90s or 1h30m`,
    );
  }
  if (sign === '-' || nanoseconds === 0n) throw cronError(cronExpr, 'the duration after @every must be more than zero');
  if (nanoseconds % NANOSECONDS.ms! !== 0n) {
    throw cronError(cronExpr, 'the duration after @every must be a whole number of milliseconds');
  }
  if (nanoseconds > LONGEST_NANOSECONDS) {
    throw cronError(cronExpr, `the duration after @every must be at most ${DELAY_MAX_SECONDS / 3600}h, ten years`);
  }
  return Number(nanoseconds / NANOSECONDS.ms!);
}

/** The exact nanoseconds of a duration such as `1h30m`; `undefined` when it is not a duration. */
function sumOfParts(amount: string): bigint | undefined {
  if (!/^((\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(amount)) return undefined;
  let sum = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of amount.matchAll(/(\d*)(?:\.(\d*))?([a-zµμ]+)/gy)) {
    const scale = 10n ** BigInt(fraction.length);
    const scaled = BigInt(whole + fraction) * NANOSECONDS[unit]!;
    // A fraction of a nanosecond is rounded up, so that it does not count as a whole number of milliseconds.
    sum += (scaled + scale - 1n) / scale;
  }
  return sum;
}

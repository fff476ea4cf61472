/** A user's budget: how often and when the agent may be woken (docs/guides/budgets.md). */
import { z } from 'zod';
import { usdText } from './usage.ts';

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const timeOfDay = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day from 00:00 to 23:59, such as 22:00');

/**
 * ICU accepts zones outside the IANA database with unexpected meanings (`BST` is Dhaka), so an area and a place are
 * required.
 */
function isZone(timezone: string): boolean {
  if (timezone !== 'UTC' && !/^[A-Za-z_]+\/[A-Za-z0-9_+/-]+$/.test(timezone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Quiet while the zone's wall clock is in [`from`, `to`); the interval spans midnight if `from` is later than `to`. */
export const quietHoursSchema = z
  .strictObject({
    from: timeOfDay,
    to: timeOfDay,
    timezone: z.string().min(1).max(64).refine(isZone, 'must be an IANA time zone such as Europe/Berlin, or UTC'),
    /** Days on which quiet hours begin. Default: every day. */
    days: z
      .array(z.enum(WEEKDAYS))
      .min(1)
      .refine((days) => new Set(days).size === days.length, 'must name each day once')
      .optional(),
  })
  .superRefine(({ from, to }, context) => {
    if (from === to)
      context.addIssue({
        code: 'custom',
        path: ['to'],
        message: 'must differ from from, or quiet hours never end',
      });
  });
export type QuietHours = z.output<typeof quietHoursSchema>;

/** First pause of the circuit breaker if the rule sets none, and the longest pause. */
export const BREAKER_PAUSE_SECONDS = 300;
export const BREAKER_LONGEST_PAUSE_SECONDS = 3600;

export const breakerSchema = z.strictObject({
  /** Consecutive failed starts that open the breaker. */
  failures: z.int().min(1).max(100),
  /** Length of the first pause. Each further failure doubles it, up to an hour. */
  pause_seconds: z.int().min(1).max(BREAKER_LONGEST_PAUSE_SECONDS).optional(),
});
export type BreakerRule = z.output<typeof breakerSchema>;

export const TOKENS_MAX = 1_000_000_000_000;
export const USD_MAX = 1_000_000;

const tokens = z.int().min(1).max(TOKENS_MAX);
const usd = z.number().gt(0).max(USD_MAX);

/** Each member limits wakes by itself; an empty budget sets no limit. */
export const budgetSchema = z.strictObject({
  /** Maximum of wakes in any 3600 seconds. */
  wakes_per_hour: z.int().min(1).max(1000).optional(),
  /** Maximum of wakes in any 24 hours. */
  wakes_per_day: z.int().min(1).max(10_000).optional(),
  /** Minimum time between two wakes. */
  min_gap_seconds: z.int().min(1).max(86_400).optional(),
  /** Tokens of one turn, input and output together. Neo ends its turn there; other agents are not stopped. */
  tokens_per_turn: tokens.optional(),
  /** Maximum of tokens in any 24 hours, over the turns of all alarms. The last turn may exceed it. */
  tokens_per_day: tokens.optional(),
  /** Maximum of US dollars in any 24 hours, as far as the cost of turns is known. */
  usd_per_day: usd.optional(),
  /** As `tokens_per_day`, for each alarm by itself. */
  tokens_per_alarm_per_day: tokens.optional(),
  /** As `usd_per_day`, for each alarm by itself. */
  usd_per_alarm_per_day: usd.optional(),
  quiet: quietHoursSchema.optional(),
  breaker: breakerSchema.optional(),
});
export type Budget = z.output<typeof budgetSchema>;

/** The limits in tokens and in money as phrases: `at most 1000 tokens a day`. Empty without any. */
export function spendingLimits(budget: Budget): string[] {
  const { tokens_per_turn, tokens_per_day, usd_per_day, tokens_per_alarm_per_day, usd_per_alarm_per_day } = budget;
  const tokensText = (count: number) => `${count} token${count === 1 ? '' : 's'}`;
  return [
    tokens_per_turn && `${tokensText(tokens_per_turn)} a turn`,
    tokens_per_day && `${tokensText(tokens_per_day)} a day`,
    usd_per_day && `${usdText(usd_per_day)} a day`,
    tokens_per_alarm_per_day && `${tokensText(tokens_per_alarm_per_day)} a day for each alarm`,
    usd_per_alarm_per_day && `${usdText(usd_per_alarm_per_day)} a day for each alarm`,
  ].filter((limit) => typeof limit === 'string');
}

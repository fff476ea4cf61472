/** A user's budget: how often, and when, their agent may be woken (docs/budgets.md). */
import { z } from 'zod';

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const timeOfDay = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day from 00:00 to 23:59, such as 22:00');

/** What ICU takes for a zone beyond the IANA database has surprises (BST is Dhaka there), so a place is asked for. */
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

/**
 * Whenever the wall clock of the zone shows a time from `from` on and before `to`; past midnight where `from` is the
 * later one.
 */
export const quietHoursSchema = z
  .strictObject({
    from: timeOfDay,
    to: timeOfDay,
    timezone: z.string().min(1).max(64).refine(isZone, 'must be an IANA time zone such as Europe/Berlin, or UTC'),
    /** On which days quiet hours begin; every day without it. */
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
        message: 'must differ from from, or it would be quiet for ever',
      });
  });
export type QuietHours = z.output<typeof quietHoursSchema>;

/** How long the breaker pauses at first, where nothing else is said, and at most. */
export const BREAKER_PAUSE_SECONDS = 300;
export const BREAKER_LONGEST_PAUSE_SECONDS = 3600;

export const breakerSchema = z.strictObject({
  /** Starts in a row that failed. */
  failures: z.int().min(1).max(100),
  /** How long nothing is tried then; twice as long after each further failure, up to an hour. */
  pause_seconds: z.int().min(1).max(BREAKER_LONGEST_PAUSE_SECONDS).optional(),
});
export type BreakerRule = z.output<typeof breakerSchema>;

/** Every member bounds wakes by itself; an empty budget bounds nothing. */
export const budgetSchema = z.strictObject({
  /** Most wakes in any 3600 seconds. */
  wakes_per_hour: z.int().min(1).max(1000).optional(),
  /** Most wakes in any 24 hours. */
  wakes_per_day: z.int().min(1).max(10_000).optional(),
  /** From one wake to the next. */
  min_gap_seconds: z.int().min(1).max(86_400).optional(),
  quiet: quietHoursSchema.optional(),
  breaker: breakerSchema.optional(),
});
export type Budget = z.output<typeof budgetSchema>;

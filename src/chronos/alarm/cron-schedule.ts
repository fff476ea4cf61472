/** Queries that a cron series answers. Instants are epoch milliseconds. */

/** A compiled cron series. It is immutable, and equal calls give equal results in every process. */
export type CronSchedule = {
  /**
   * The first occurrence strictly after `after`; `undefined` when there is none within 48 years or before the year
   * 10000.
   */
  next(after: number): number | undefined;
  /**
   * The latest occurrence in `(after, now]` and the exact number of occurrences in it, computed without iterating over
   * them; `undefined` when there was none.
   */
  latest(after: number, now: number): { at: number; count: number } | undefined;
  /**
   * The shortest time between two consecutive occurrences, in milliseconds of the wall clock (a clock change can bring
   * two closer together). At least 60 000 for a cron expression.
   */
  readonly shortestIntervalMs: number;
};

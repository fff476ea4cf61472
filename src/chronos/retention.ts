/** Deletes old attempts, turn reports, known events and final alarms, each after its own retention period, in small batches. */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { REPEATABLE_MS } from './store/event-rows.ts';
import type { AlarmStore } from './store/store.ts';

const DAY_MS = 24 * 3600 * 1000;
/** Longest interval between two rounds. */
const ROUND_EVERY_MS = 10 * 60 * 1000;
/** Short retention periods have more frequent rounds: data stays at most this share of the period longer. */
const EXTRA_SHARE = 0.1;
const SHORTEST_ROUND_MS = 1000;
/** Keeps one step within a few milliseconds: on SQLite the thread that delivers runs it. */
const ROWS_AT_ONCE = 200;
/** An alarm has rows in six tables. */
const ALARMS_AT_ONCE = 25;
/** Pause between two steps, so that deliveries always come first. */
const PAUSE_MS = 10;

/** In days, fractions allowed; 0 keeps the data for ever. */
export type Retention = {
  /** For finished attempts, turn reports, and the ids of events that are over. */
  ledgerDays: number;
  /** For alarms that were fired, cancelled or failed. */
  alarmDays: number;
};

/**
 * Prunes periodically until it is stopped.
 *
 * @returns stops it; resolves when the running step has ended
 */
export function startRetention(
  store: AlarmStore,
  { ledgerDays, alarmDays, clock, log }: Retention & { clock: Clock; log: Logger },
): () => Promise<void> {
  const shortestDays = Math.min(...[ledgerDays, alarmDays].filter((days) => days > 0));
  const roundEveryMs = Math.max(SHORTEST_ROUND_MS, Math.min(ROUND_EVERY_MS, shortestDays * DAY_MS * EXTRA_SHARE));
  const stopping = new AbortController();
  const { signal } = stopping;

  const prune = async (
    step: (request: { before: number; limit: number }) => Promise<number>,
    { days, limit }: { days: number; limit: number },
  ) => {
    if (days === 0) return;
    let deleted = limit;
    while (deleted === limit && !signal.aborted) {
      deleted = await step({ before: store.now() - days * DAY_MS, limit });
      await wait(clock, PAUSE_MS, signal);
    }
  };
  const round = async () => {
    await prune((request) => store.pruneAttempts(request), { days: ledgerDays, limit: ROWS_AT_ONCE });
    await prune((request) => store.pruneTurnReports(request), { days: ledgerDays, limit: ROWS_AT_ONCE });
    // A signature that is valid must not fire an alarm twice, however short the retention is.
    const eventDays = Math.max(ledgerDays, REPEATABLE_MS / DAY_MS);
    await prune((request) => store.pruneEvents(request), {
      days: ledgerDays === 0 ? 0 : eventDays,
      limit: ROWS_AT_ONCE,
    });
    await prune((request) => store.pruneAlarms(request), { days: alarmDays, limit: ALARMS_AT_ONCE });
  };
  const run = async () => {
    while (!signal.aborted) {
      await round().catch((error: unknown) =>
        log.warn({ err: error }, 'old data could not be deleted; retrying later'),
      );
      await wait(clock, roundEveryMs, signal);
    }
  };
  const done = run();
  return () => {
    stopping.abort();
    return done;
  };
}

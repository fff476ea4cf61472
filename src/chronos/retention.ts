/**
 * Forgetting what is over: attempts and receipts, and alarms that came to their end, each after its own retention and a
 * few at a time.
 */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { AlarmStore } from './store/store.ts';

const DAY_MS = 24 * 3600 * 1000;
/** Longest from one round to the next. */
const ROUND_EVERY_MS = 10 * 60 * 1000;
/** What is kept for a short while is looked at more often: it stays for this share longer at the most. */
const OVERSTAY = 0.1;
const SHORTEST_ROUND_MS = 1000;
/** Whoever has to wait for one step waits a few milliseconds: on SQLite it is made by the thread that delivers. */
const ROWS_AT_ONCE = 200;
/** An alarm takes its rows in five tables along. */
const ALARMS_AT_ONCE = 25;
/** Between two steps, so that deliveries always come first. */
const BREATH_MS = 10;

/** In days, also in parts of one; 0 keeps them for ever. */
export type Retention = {
  /** Attempts that finished, and receipts that came, so long ago are forgotten. */
  ledgerDays: number;
  /** Alarms that were fired, cancelled or failed so long ago are. */
  alarmDays: number;
};

/**
 * Prunes now and then, until it is stopped.
 *
 * @returns stops it; resolves when a step under way is done
 */
export function forgetOldThings(
  store: AlarmStore,
  { ledgerDays, alarmDays, clock, log }: Retention & { clock: Clock; log: Logger },
): () => Promise<void> {
  const shortestDays = Math.min(...[ledgerDays, alarmDays].filter((days) => days > 0));
  const roundEveryMs = Math.max(SHORTEST_ROUND_MS, Math.min(ROUND_EVERY_MS, shortestDays * DAY_MS * OVERSTAY));
  const stopping = new AbortController();
  const { signal } = stopping;

  const prune = async (
    what: 'pruneAttempts' | 'pruneReceipts' | 'pruneAlarms',
    { days, limit }: { days: number; limit: number },
  ) => {
    if (days === 0) return;
    let forgotten = limit;
    while (forgotten === limit && !signal.aborted) {
      forgotten = await store[what]({ before: store.now() - days * DAY_MS, limit });
      await wait(clock, BREATH_MS, signal);
    }
  };
  const round = async () => {
    await prune('pruneAttempts', { days: ledgerDays, limit: ROWS_AT_ONCE });
    await prune('pruneReceipts', { days: ledgerDays, limit: ROWS_AT_ONCE });
    await prune('pruneAlarms', { days: alarmDays, limit: ALARMS_AT_ONCE });
  };
  const run = async () => {
    while (!signal.aborted) {
      await round().catch((error: unknown) =>
        log.warn({ err: error }, 'what is over could not be forgotten; trying again later'),
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

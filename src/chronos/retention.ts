/** Keeping the fire ledger short: attempts and receipts older than the retention are forgotten, a few at a time. */
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import type { AlarmStore } from './store/store.ts';

const DAY_MS = 24 * 3600 * 1000;
const ROUND_EVERY_MS = 10 * 60 * 1000;
const BATCH = 500;
/** Between two batches, so that deliveries always come first. */
const BREATH_MS = 50;

/**
 * Prunes the ledger now and then, until it is stopped.
 *
 * @param days attempts that finished, and receipts that came, earlier than this are forgotten; 0 keeps everything
 * @returns stops it; resolves when a batch under way is done
 */
export function keepLedgerShort(
  store: AlarmStore,
  { days, clock, log }: { days: number; clock: Clock; log: Logger },
): () => Promise<void> {
  if (days === 0) return async () => {};
  const stopping = new AbortController();
  const { signal } = stopping;

  const prune = async (what: 'pruneAttempts' | 'pruneReceipts') => {
    let forgotten = BATCH;
    while (forgotten === BATCH && !signal.aborted) {
      forgotten = await store[what]({ before: store.now() - days * DAY_MS, limit: BATCH });
      await wait(clock, BREATH_MS, signal);
    }
  };
  const round = async () => {
    await prune('pruneAttempts');
    await prune('pruneReceipts');
  };
  const run = async () => {
    while (!signal.aborted) {
      await round().catch((error: unknown) =>
        log.warn({ err: error }, 'the ledger could not be pruned; trying again later'),
      );
      await wait(clock, ROUND_EVERY_MS, signal);
    }
  };
  const done = run();
  return () => {
    stopping.abort();
    return done;
  };
}

/** Ending leases that ran out. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import { interruptedState } from '../difference.ts';
import type { LeaseKey } from '../store.ts';
import type { Buckets } from './buckets.ts';
import { type Settlement, settleAll } from './complete.ts';
import type { Outlook } from './outlook.ts';
import type { PrimaryPool } from './pool.ts';
import { type Call, type Row, statement } from './statement.ts';

/** How many leases are ended in one transaction. */
const SWEEP = 256;
/** So often a bucket is searched for leases that ran out, unless somebody has seen one before. */
const SWEEP_EVERY_MS = 1000;
/** Where a search steps over a long backlog, it may take up at most one part in so many of the time, */
const SWEEP_SHARE = 50;
/** but another one comes after so long: a machine that is slow for a moment looks like a long backlog. */
const SWEEP_AFTER_MS = 10_000;

/** Leases that ran out; the first column stands in every row and says when the next one does. */
const EXPIRED = statement(
  'expired',
  `
  SELECT (SELECT min(lease_until) FROM occurrences WHERE bucket = $1 AND look_at <= $2 AND lease_until > $2),
    o.owner, o.alarm_id, o.fire_id, o.fence
  FROM (SELECT 1) AS always LEFT JOIN (
    SELECT owner, alarm_id, fire_id, fence FROM occurrences
    WHERE bucket = $1 AND look_at <= $2 AND lease_until <= $2 LIMIT ${SWEEP}
  ) AS o ON true`,
);

export type Sweeping = { pool: PrimaryPool; buckets: Buckets; outlook: Outlook; clock: Clock; log: Logger };

export function prepareSweep({ pool, buckets, outlook, clock, log }: Sweeping) {
  /** When each bucket is to be searched for leases that ran out, and up to when it has been. */
  const sweeps = buckets.all().map(() => ({ dueAt: Number.NEGATIVE_INFINITY, last: Number.NEGATIVE_INFINITY }));

  async function end(rows: readonly Row[], now: number): Promise<void> {
    const settlements = rows.map(([, owner, alarmId, fireId, fence]): Settlement => {
      const key = { owner, alarmId, fireId, fence } as LeaseKey;
      return {
        key,
        // Renewed since: not to be ended.
        attempt: (held) => (held.leaseUntil! <= now ? interruptedAttempt(held) : undefined),
        settle: (state) => interruptedState(state, key.fireId, now, log),
      };
    });
    await settleAll(pool, buckets, clock, settlements);
  }

  /** Searches buckets once and ends what it finds; gives those that may have more, and why others could not be searched. */
  async function search(which: readonly number[], now: number, nextEnds: Map<number, number>) {
    const calls = which.map((bucket): Call => ({ statement: EXPIRED, values: [bucket, now] }));
    const failures: unknown[] = [];
    const more: number[] = [];
    for (const [index, answer] of (await buckets.ask(pool, calls)).entries()) {
      const bucket = which[index]!;
      if (answer.status === 'rejected') {
        failures.push(answer.reason);
        continue;
      }
      nextEnds.set(bucket, (answer.value[0]![0] as number | null) ?? Infinity);
      const rows = answer.value.filter(([, owner]) => owner !== null);
      if (rows.length === 0) continue;
      outlook.forget(bucket);
      try {
        await end(rows, now);
      } catch (error) {
        nextEnds.delete(bucket);
        failures.push(error);
        continue;
      }
      if (rows.length === SWEEP) more.push(bucket);
    }
    return { more, failures };
  }

  return {
    /** Somebody's lease in a bucket ends then: the first claim after that searches for it. */
    leaseEnds(bucket: number, until: number): void {
      const state = sweeps[bucket]!;
      state.dueAt = Math.min(state.dueAt, until);
    },

    /**
     * Ends every lease that ran out, whoever its owner is, in all buckets or in those whose turn it is. Two replicas may do so
     * together: each lease is ended by one.
     *
     * @returns why some buckets could not be searched
     */
    async sweep(now: number, which: 'all' | 'due'): Promise<unknown[]> {
      const isDue = ({ dueAt, last }: (typeof sweeps)[number]) => now >= dueAt || now < last;
      let open = buckets.all().filter((bucket) => which === 'all' || isDue(sweeps[bucket]!));
      if (open.length === 0) return [];
      const began = clock.monotonic();
      const nextEnds = new Map<number, number>();
      const failures: unknown[] = [];
      while (open.length > 0) {
        const found = await search(open, now, nextEnds);
        failures.push(...found.failures);
        open = found.more;
      }
      const took = clock.monotonic() - began;
      const pause = Math.min(Math.max(SWEEP_EVERY_MS, took * SWEEP_SHARE), Math.max(SWEEP_AFTER_MS, took));
      for (const [bucket, nextEnd] of nextEnds) sweeps[bucket] = { dueAt: Math.min(now + pause, nextEnd), last: now };
      return failures;
    },
  };
}

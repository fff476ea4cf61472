/** Extends leases, and ends expired ones. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { fireIdOf, partsOfFireId } from '../../../wire/fire-id.ts';
import { interruptedAttempt } from '../../alarm/settlement.ts';
import { interruptedState } from '../difference.ts';
import type { LeaseKey } from '../store.ts';
import type { Buckets } from './buckets.ts';
import { type Settlement, settleAll } from './complete.ts';
import type { DueIndex } from './due-index.ts';
import type { PrimaryPool } from './pool.ts';
import { type Call, type Row, statement } from './statement.ts';

/** How many leases are ended in one transaction. */
const SWEEP = 256;
/** Interval between searches of a bucket for expired leases, unless an earlier expiry is known. */
const SWEEP_EVERY_MS = 1000;
/** Where a search must skip a long backlog, it may take at most one part in this many of the time, */
const SWEEP_SHARE = 50;
/** but the next search starts after this time at the latest: a slow moment can look like a long backlog. */
const SWEEP_AFTER_MS = 10_000;

/** Expired leases; the first column repeats in every row and has the time of the next expiry. */
const EXPIRED = statement(
  'expired',
  `
  SELECT (SELECT min(lease_until) FROM progress WHERE bucket = $1 AND look_at <= $2 AND lease_until > $2),
    o.owner, o.alarm_id, o.scheduled_for, o.fence
  FROM (SELECT 1) AS always LEFT JOIN (
    SELECT owner, alarm_id, scheduled_for, fence FROM progress
    WHERE bucket = $1 AND look_at <= $2 AND lease_until <= $2 LIMIT ${SWEEP}
  ) AS o ON true`,
);

export type Sweeping = { pool: PrimaryPool; buckets: Buckets; dueIndex: DueIndex; clock: Clock; log: Logger };

export function prepareSweep({ pool, buckets, dueIndex, clock, log }: Sweeping) {
  /** When each bucket is searched next for expired leases, and the time of its last search. */
  const sweeps = buckets.all().map(() => ({ dueAt: Number.NEGATIVE_INFINITY, last: Number.NEGATIVE_INFINITY }));

  async function end(rows: readonly Row[], now: number): Promise<void> {
    const settlements = rows.map(([, owner, alarmId, scheduledFor, fence]): Settlement => {
      const fireId = fireIdOf(alarmId as string, scheduledFor as number);
      const key = { owner, alarmId, fireId, fence } as LeaseKey;
      return {
        key,
        // A renewed lease is not ended.
        attempt: (leased) => (leased.leaseUntil! <= now ? interruptedAttempt(leased) : undefined),
        settle: (state) => interruptedState(state, key.fireId, now, log),
      };
    });
    await settleAll(pool, buckets, clock, settlements);
  }

  /**
   * Searches buckets once and ends expired leases. Returns the buckets that may have more, and why others could not be
   * searched.
   */
  async function search(which: readonly number[], now: number, nextEnds: Map<number, number>) {
    const calls = which.map((bucket): Call => ({ statement: EXPIRED, values: [bucket, now] }));
    const failures: unknown[] = [];
    const more: number[] = [];
    for (const [index, answer] of (await buckets.query(pool, calls)).entries()) {
      const bucket = which[index]!;
      if (answer.status === 'rejected') {
        failures.push(answer.reason);
        continue;
      }
      nextEnds.set(bucket, (answer.value[0]![0] as number | null) ?? Infinity);
      const rows = answer.value.filter(([, owner]) => owner !== null);
      if (rows.length === 0) continue;
      dueIndex.invalidate(bucket);
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
    /** A lease in a bucket expires then: the first claim after that searches for it. */
    leaseEnds(bucket: number, until: number): void {
      const state = sweeps[bucket]!;
      state.dueAt = Math.min(state.dueAt, until);
    },

    /**
     * Ends all expired leases, in all buckets or in the ones whose search is due. Two replicas may run it concurrently:
     * each lease is ended by one of them.
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

/** Locks in the same order as every batch, so that two of them cannot deadlock. */
const RENEW = statement(
  'renew',
  `
  WITH held AS (
    SELECT p.owner, p.alarm_id, p.trigger_at
    FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[]) AS k (owner, alarm_id, scheduled_for, fence)
    JOIN progress AS p ON p.bucket = $1 AND p.owner = k.owner AND p.alarm_id = k.alarm_id
      AND p.scheduled_for = k.scheduled_for AND p.fence = k.fence AND p.lease_until IS NOT NULL
    ORDER BY p.owner, p.alarm_id, p.trigger_at
    FOR UPDATE OF p
  )
  UPDATE progress AS p SET lease_until = $2, revision = p.revision + 1 FROM held
  WHERE p.bucket = $1 AND p.owner = held.owner AND p.alarm_id = held.alarm_id AND p.trigger_at = held.trigger_at
  RETURNING p.alarm_id, p.scheduled_for`,
);

/** Extends leases; returns the fire ids of extended ones. */
export async function renew(
  pool: PrimaryPool,
  buckets: Buckets,
  keys: readonly LeaseKey[],
  leaseUntil: number,
): Promise<Set<string>> {
  const calls = buckets
    .group(keys, ({ owner }) => owner)
    .map(([bucket, those]): Call => {
      const scheduledFor = those.map(({ fireId }) => partsOfFireId(fireId).dueEpochMs);
      const columns = [those.map(({ owner }) => owner), those.map(({ alarmId }) => alarmId), scheduledFor];
      return { statement: RENEW, values: [bucket, leaseUntil, ...columns, those.map(({ fence }) => fence)] };
    });
  const rows = await buckets.queryAll(pool, calls);
  return new Set(rows.map(([alarmId, scheduledFor]) => fireIdOf(alarmId as string, scheduledFor as number)));
}

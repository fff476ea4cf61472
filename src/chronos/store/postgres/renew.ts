/** Extends leases. */
import type { LeaseKey } from '../store.ts';
import type { Buckets } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { OCCURRENCE } from './rows.ts';
import type { ClaimedStates } from './state.ts';
import { type Call, statement } from './statement.ts';

const KEY = ['owner', 'alarmId', 'fireId', 'fence'] as const;

/** Locks in the same order as every batch, so that two of them cannot deadlock. */
const RENEW = statement(
  'renew',
  `
  WITH held AS (
    SELECT o.owner, o.alarm_id, o.fire_id
    FROM unnest(${OCCURRENCE.arrays(3, KEY)}) AS k (owner, alarm_id, fire_id, fence)
    JOIN occurrences AS o ON o.bucket = $1 AND o.owner = k.owner AND o.alarm_id = k.alarm_id AND o.fire_id = k.fire_id
      AND o.fence = k.fence AND o.lease_until IS NOT NULL
    ORDER BY o.owner, o.alarm_id, o.fire_id
    FOR UPDATE OF o
  )
  UPDATE occurrences AS o SET lease_until = $2 FROM held
  WHERE o.bucket = $1 AND o.owner = held.owner AND o.alarm_id = held.alarm_id AND o.fire_id = held.fire_id
  RETURNING o.fire_id`,
);

export async function renew(
  pool: PrimaryPool,
  buckets: Buckets,
  claimed: ClaimedStates,
  keys: readonly LeaseKey[],
  leaseUntil: number,
): Promise<Set<string>> {
  const calls = buckets
    .group(keys, ({ owner }) => owner)
    .map(([bucket, ofBucket]): Call => {
      const columns = KEY.map((member) => ofBucket.map((key) => key[member]));
      return { statement: RENEW, values: [bucket, leaseUntil, ...columns] };
    });
  const rows = await buckets.queryAll(pool, calls);
  const renewed = new Set(rows.map(([fireId]) => fireId as string));
  for (const fireId of renewed) claimed.renewed(fireId, leaseUntil);
  return renewed;
}

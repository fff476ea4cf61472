/** When there will be something to claim or a lease to end, and how much there is to claim. */
import type { DatabaseSync } from 'node:sqlite';
import { prepareQuery } from './statements.ts';
import type { Tables } from './tables.ts';

export function prepareNextDue(db: DatabaseSync, { owners }: Tables) {
  const leases = db.prepare(`
    SELECT owner, lease_until FROM occurrences INDEXED BY occurrences_leased
    WHERE lease_until IS NOT NULL ORDER BY lease_until`);
  leases.setReturnArrays(true);

  function firstLeaseEnd(saturated: ReadonlySet<string>): number | undefined {
    for (const row of leases.iterate()) {
      const [owner, leaseUntil] = row as unknown as [string, number];
      if (!saturated.has(owner)) return leaseUntil;
    }
    return undefined;
  }

  return (saturated: ReadonlySet<string>): number | undefined => {
    const free = owners
      .queue(Number.MAX_SAFE_INTEGER, saturated.size + 1)
      .find(({ owner }) => !saturated.has(owner))?.nextDue;
    const earliest = Math.min(free ?? Number.POSITIVE_INFINITY, firstLeaseEnd(saturated) ?? Number.POSITIVE_INFINITY);
    return earliest === Number.POSITIVE_INFINITY ? undefined : earliest;
  };
}

export function prepareCountDue(db: DatabaseSync) {
  const count = prepareQuery(
    db,
    `SELECT count(*) FROM (
       SELECT 1 FROM owners AS w INDEXED BY owners_queue CROSS JOIN occurrences AS o INDEXED BY occurrences_free
       WHERE w.next_due <= ?1 AND o.owner = w.owner AND o.due_at <= ?1 AND o.lease_until IS NULL LIMIT ?2 + 0)`,
    ([found]) => found as number,
  );
  return ({ now, atMost }: { now: number; atMost: number }): number => count.get(now, atMost)!;
}

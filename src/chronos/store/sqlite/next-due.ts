/** When there will be something to claim, or a lease to end. */
import type { DatabaseSync } from 'node:sqlite';
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

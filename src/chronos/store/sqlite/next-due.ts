/** When there will be something to claim. */
import type { DatabaseSync } from 'node:sqlite';
import type { Tables } from './tables.ts';

export function prepareNextDue(db: DatabaseSync, { owners }: Tables) {
  const leases = db.prepare(`
    SELECT owner, lease_until, max(due_at, lease_until) FROM occurrences INDEXED BY occurrences_leased
    WHERE lease_until IS NOT NULL AND due_at IS NOT NULL ORDER BY lease_until`);
  leases.setReturnArrays(true);

  return (saturated: ReadonlySet<string>): number | undefined => {
    const free = owners
      .queue(Number.MAX_SAFE_INTEGER, saturated.size + 1)
      .find(({ owner }) => !saturated.has(owner))?.nextDue;
    let earliest = free ?? Number.POSITIVE_INFINITY;
    for (const row of leases.iterate()) {
      const [owner, leaseUntil, claimableAt] = row as unknown as [string, number, number];
      // No lease further down ends before this one.
      if (leaseUntil >= earliest) break;
      if (!saturated.has(owner)) earliest = Math.min(earliest, claimableAt);
    }
    return earliest === Number.POSITIVE_INFINITY ? undefined : earliest;
  };
}

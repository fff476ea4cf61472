/** Extending leases. */
import type { LeaseKey } from '../store.ts';
import type { Tables } from './tables.ts';

export function prepareRenew({ occurrences }: Tables) {
  return (keys: readonly LeaseKey[], leaseUntil: number): Set<string> =>
    new Set(keys.filter((key) => occurrences.renew(key, leaseUntil)).map(({ fireId }) => fireId));
}

/** What the contract needs to know of a store to put it to the test. */
import type { TestContext } from 'node:test';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';

export type StoreUnderTest = {
  /** A new store without any rows. */
  store: AlarmStore;
  /** Closes the store and opens the same data again; the former instance is done with. */
  reopen(): Promise<AlarmStore>;
  /** Another instance on the same data, open at the same time; only where several processes may share them. */
  openSecond?(): Promise<AlarmStore>;
  /** Names, of owners or nonces, that are in one bucket with another; any will do where there is one bucket. */
  inBucketOf?(name: string, count: number): string[];
  /** Closes every instance and removes the data. */
  close(): Promise<void>;
};

export type OpenStore = () => Promise<StoreUnderTest>;

/** Opens a store that is closed when the test is over. */
export async function openFor(context: TestContext, open: OpenStore): Promise<StoreUnderTest> {
  const underTest = await open();
  context.after(() => underTest.close());
  return underTest;
}

/** The order of what is due, and what one call takes along, hold over the owners of a bucket: names of such. */
export function together({ inBucketOf }: StoreUnderTest, count: number, name = 'owner-0'): string[] {
  return inBucketOf ? inBucketOf(name, count) : Array.from({ length: count }, (_, n) => `owner-${n}`);
}

/**
 * Opens as many instances on the same data as the store allows, two at most: what must hold for calls that run at the
 * same time must hold whichever instance they arrive at. `pick(n)` spreads calls over them.
 */
export async function openTeam(context: TestContext, open: OpenStore) {
  const underTest = await openFor(context, open);
  const second = await underTest.openSecond?.();
  const instances = second ? [underTest.store, second] : [underTest.store];
  return { store: underTest.store, pick: (n: number) => instances[n % instances.length]! };
}

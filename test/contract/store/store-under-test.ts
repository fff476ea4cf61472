/** The parts of a store that the contract needs for its tests. */
import type { TestContext } from 'node:test';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';

export type StoreUnderTest = {
  /** A new store without any rows. */
  store: AlarmStore;
  /** Closes the store and opens the same data again; the former instance is unused from then on. */
  reopen(): Promise<AlarmStore>;
  /**
   * Every instance dies without cleanup, and is known to be dead; opens another. Where several processes may share the
   * data, {@link StoreUnderTest.store} goes on like a process that was only stopped.
   */
  die(): Promise<AlarmStore>;
  /** Another instance on the same data, open at the same time; only where several processes may share them. */
  openSecond?(): Promise<AlarmStore>;
  /** Names of owners or nonces in the same bucket as another; with one bucket any name is valid. */
  inBucketOf?(name: string, count: number): string[];
  /** Closes every instance and removes the data. */
  close(): Promise<void>;
};

export type OpenStore = () => Promise<StoreUnderTest>;

/** Opens a store that is closed when the test has ended. */
export async function openFor(context: TestContext, open: OpenStore): Promise<StoreUnderTest> {
  const underTest = await open();
  context.after(() => underTest.close());
  return underTest;
}

/** The due order, and the batch of one call, apply to the owners of a bucket: this gives such names. */
export function together({ inBucketOf }: StoreUnderTest, count: number, name = 'owner-0'): string[] {
  return inBucketOf ? inBucketOf(name, count) : Array.from({ length: count }, (_, n) => `owner-${n}`);
}

/**
 * Opens as many instances on the same data as the store allows, at most two: a rule for simultaneous calls must hold on
 * any instance. `pick(n)` distributes calls over them.
 */
export async function openInstances(context: TestContext, open: OpenStore) {
  const underTest = await openFor(context, open);
  const second = await underTest.openSecond?.();
  const instances = second ? [underTest.store, second] : [underTest.store];
  return { store: underTest.store, pick: (n: number) => instances[n % instances.length]! };
}

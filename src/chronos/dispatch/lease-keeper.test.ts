import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import type { AlarmStore, LeaseKey } from '../store/store.ts';
import { LeaseKeeper } from './lease-keeper.ts';

const LEASE_MS = 15_000;

const keyOf = (fireId: string): LeaseKey => ({ owner: 'ada', alarmId: fireId, fireId, fence: 1 });

test('a new lease waits for the next renewal, and no lease comes close to its end', async () => {
  const clock = new ManualClock();
  /** The end of each lease in the store, and how often it was renewed. */
  const until = new Map<string, number>();
  const renewals: string[][] = [];
  const store = {
    async renew(keys: readonly LeaseKey[], leaseUntil: number) {
      renewals.push(keys.map(({ fireId }) => fireId));
      for (const { fireId } of keys) until.set(fireId, leaseUntil);
      return new Set(keys.map(({ fireId }) => fireId));
    },
  } as Pick<AlarmStore, 'renew'> as AlarmStore;
  const keeper = new LeaseKeeper(store, clock, silentLogger, LEASE_MS);
  const hold = (fireId: string) => {
    until.set(fireId, clock.now() + LEASE_MS);
    keeper.add(keyOf(fireId), clock.now() + LEASE_MS);
  };

  hold('old');
  await clock.advance(4_900);
  hold('young');
  await clock.advance(100);
  assert.deepEqual(renewals, [['old']]);

  for (let step = 0; step < 600; step++) {
    if (step % 7 === 0) hold(`another ${step}`);
    await clock.advance(100);
    const left = Math.min(...until.values()) - clock.now();
    assert.ok(left >= LEASE_MS / 2, `only ${left} ms are left: too little for one failed renewal and another one`);
  }
  assert.ok(renewals[1]!.includes('young'));
  keeper.stop();
});

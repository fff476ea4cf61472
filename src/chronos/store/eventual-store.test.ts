import assert from 'node:assert/strict';

import { test } from 'node:test';
import { ManualClock, settle } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { openEventually } from './eventual-store.ts';
import type { AlarmStore } from './store.ts';

const away = () => new ReveilleError('unavailable', 'the database is unavailable');

/** A medium that is available or not, and the stores that were opened on it. */
class Medium {
  isThere = true;
  readonly open: string[] = [];
  #outdate: () => void = () => {};
  #count = 0;

  readonly opening = async (onOutdated: () => void): Promise<AlarmStore> => {
    if (!this.isThere) throw away();
    const name = `store ${++this.#count}`;
    this.open.push(name);
    this.#outdate = onOutdated;
    const close = async () => void this.open.splice(this.open.indexOf(name), 1);
    return { now: () => this.#count, close } as Partial<AlarmStore> as AlarmStore;
  };

  outdate(): void {
    this.#outdate();
  }
}

test('an outdated store is closed when its replacement is open', async () => {
  const medium = new Medium();
  const { store } = await openEventually(medium.opening, { clock: new ManualClock(), log: silentLogger });
  medium.outdate();
  await settle();
  assert.deepEqual(medium.open, ['store 2']);
  assert.equal(store.now(), 2);
  await store.close();
  assert.deepEqual(medium.open, []);
});

test('closing while no replacement can be opened leaves nothing open', async () => {
  const medium = new Medium();
  const clock = new ManualClock();
  const { store } = await openEventually(medium.opening, { clock, log: silentLogger });
  medium.isThere = false;
  medium.outdate();
  await settle();
  await assert.rejects(store.get('owner', 'alarm'), { code: 'unavailable' });
  assert.deepEqual(medium.open, ['store 1']);
  await store.close();
  assert.deepEqual(medium.open, []);
  assert.equal(clock.timers, 0);
});

test('closing while a replacement is being opened leaves nothing open', async () => {
  const medium = new Medium();
  const { store } = await openEventually(medium.opening, { clock: new ManualClock(), log: silentLogger });
  medium.outdate();
  await store.close();
  assert.deepEqual(medium.open, []);
});

test('a store whose medium was never available can be closed', async () => {
  const medium = new Medium();
  medium.isThere = false;
  const clock = new ManualClock();
  const { store } = await openEventually(medium.opening, { clock, log: silentLogger });
  await store.close();
  await settle();
  assert.equal(clock.timers, 0);
});

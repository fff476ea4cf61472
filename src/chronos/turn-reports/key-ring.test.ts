import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { KeyRing } from '../receipts/key-ring.ts';

const never = () => false;
const has = (key: string) => (keys: readonly string[]) => keys.includes(key);

function ringOver(keysOf: (userId: string) => readonly string[] | undefined) {
  const clock = new ManualClock();
  const requests: string[] = [];
  const ring = new KeyRing({
    clock,
    async ask(userId) {
      requests.push(userId);
      return keysOf(userId);
    },
  });
  return { ring, clock, asked: requests };
}

test('a key is requested once a minute, and once for all concurrent callers', async () => {
  const { ring, clock, asked: requests } = ringOver(() => ['a']);
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => ring.fits('ada', has('a')))), [true, true, true]);
  await clock.advance(59_000);
  assert.equal(await ring.fits('ada', has('a')), true);
  assert.equal(requests.length, 1);
  await clock.advance(2000);
  assert.equal(await ring.fits('ada', has('a')), true);
  assert.equal(requests.length, 2);
});

test('a signature that fits no key is checked with the router again, once in a few seconds', async () => {
  let keys = ['old'];
  const { ring, clock, asked: requests } = ringOver(() => keys);
  assert.equal(await ring.fits('ada', has('old')), true);
  keys = ['new', 'old'];
  assert.equal(await ring.fits('ada', has('new')), false);
  assert.equal(requests.length, 1);
  await clock.advance(3000);
  assert.equal(await ring.fits('ada', has('new')), true);
  for (let n = 0; n < 50; n++) assert.equal(await ring.fits('ada', never), false);
  assert.equal(requests.length, 2);
});

test('a user without a machine has no key, and is not requested again at once either', async () => {
  const { ring, asked: requests } = ringOver(() => undefined);
  assert.equal(await ring.fits('nobody', has('a')), false);
  assert.equal(await ring.fits('nobody', has('a')), false);
  assert.deepEqual(requests, ['nobody']);
});

test('an unreachable router is no answer, and the next call asks it again', async () => {
  let away = true;
  const { ring, asked: requests } = ringOver(() => {
    if (away) throw new ReveilleError('unavailable', 'away');
    return ['a'];
  });
  await assert.rejects(ring.fits('ada', has('a')), /away/);
  away = false;
  assert.equal(await ring.fits('ada', has('a')), true);
  assert.equal(requests.length, 2);
});

test('the cache keeps a limited number of recently used keys, and requests are limited', async () => {
  const { ring, asked: requests } = ringOver((userId) => [userId]);
  assert.equal(await ring.fits('ada', has('ada')), true);
  for (let n = 0; n < 10_000; n++) {
    assert.equal(await ring.fits(`user-${n}`, has(`user-${n}`)), true);
    if (n === 5000) assert.equal(await ring.fits('ada', has('ada')), true);
  }
  requests.length = 0;
  assert.equal(await ring.fits('ada', has('ada')), true);
  assert.deepEqual(requests, []);
  assert.equal(await ring.fits('user-0', has('user-0')), true);
  assert.deepEqual(requests, ['user-0']);

  const hanging = new KeyRing({ clock: new ManualClock(), ask: () => new Promise(() => {}) });
  for (let n = 0; n < 32; n++) void hanging.fits(`user-${n}`, never);
  await assert.rejects(hanging.fits('one-more', never), /too many turn reports wait for the router/);
});

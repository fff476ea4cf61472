/** The limits of users: locks after wrong credentials, and the share of each user. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';
import { Lockouts } from './lockout.ts';
import { Shares } from './shares.ts';

/** The retry time in seconds; 0 for an admitted attempt. */
function wait(attempt: () => unknown): number {
  try {
    attempt();
    return 0;
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError && thrown.code === 'rate_limited');
    return Math.ceil(thrown.retryAfterSeconds ?? 0);
  }
}

test('the tenth wrong credential locks for a second, and each further one twice as long, up to 15 minutes', () => {
  const clock = new ShiftingClock();
  const locks = new Lockouts(clock, () => true);
  const pauses: number[] = [];
  for (let wrong = 1; wrong <= 25; wrong++) {
    locks.failed('127.0.0.1', 'aaaa');
    const pause = wait(() => locks.check('127.0.0.1', 'aaaa'));
    pauses.push(pause);
    clock.advance(1000 * pause);
    assert.equal(
      wait(() => locks.check('127.0.0.1', 'aaaa')),
      0,
    );
  }
  const expected = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900, 900, 900];
  assert.deepEqual(pauses, expected);
  locks.succeeded('127.0.0.1', 'aaaa');
  locks.failed('127.0.0.1', 'aaaa');
  assert.equal(
    wait(() => locks.check('127.0.0.1', 'aaaa')),
    0,
  );
});

test('a shared address locks only the credential; any other address is locked too', () => {
  const clock = new ShiftingClock();
  const shared = new Lockouts(clock, () => true);
  const own = new Lockouts(clock, () => false);
  for (const locks of [shared, own]) for (let n = 0; n < 10; n++) locks.failed('192.0.2.1', 'aaaa');
  assert.equal(
    wait(() => shared.check('192.0.2.1', 'bbbb')),
    0,
  );
  assert.equal(
    wait(() => own.check('192.0.2.1', 'bbbb')),
    1,
  );
  assert.equal(
    wait(() => own.check('192.0.2.2', 'aaaa')),
    0,
  );
  for (let n = 0; n < 10; n++) shared.failed('127.0.0.1', undefined);
  assert.equal(
    wait(() => shared.check('127.0.0.1', undefined)),
    1,
  );
  assert.equal(
    wait(() => shared.check('127.0.0.1', 'aaaa')),
    0,
  );
});

test('old addresses are removed first, so that memory stays bounded', () => {
  const locks = new Lockouts(new ShiftingClock(), () => false);
  for (let n = 0; n < 10; n++) locks.failed('192.0.2.1', undefined);
  for (let n = 0; n < 5000; n++) locks.failed(`10.0.${n >> 8}.${n & 255}`, undefined);
  assert.equal(
    wait(() => locks.check('192.0.2.1', undefined)),
    0,
  );
});

test('a user gets a quarter of the requests per minute at once and the rest gradually; others are not affected', () => {
  const clock = new ShiftingClock();
  const shares = new Shares(clock, { requestsPerMinute: 40, streams: 2, requests: 3 });
  for (let n = 0; n < 10; n++) shares.enter('ada', 'requests')();
  assert.ok(wait(() => shares.enter('ada', 'requests')) <= 2);
  shares.enter('bob', 'requests')();
  clock.advance(1500);
  shares.enter('ada', 'requests')();
  assert.equal(shares.refused, 1);
});

test('streams and requests of a user have separate limits, and an ended one frees its place', () => {
  const shares = new Shares(new ShiftingClock(), { requestsPerMinute: 1000, streams: 2, requests: 1 });
  const [one] = [shares.enter('ada', 'streams'), shares.enter('ada', 'streams')];
  assert.equal(
    wait(() => shares.enter('ada', 'streams')),
    1,
  );
  const leave = shares.enter('ada', 'requests');
  assert.equal(
    wait(() => shares.enter('ada', 'requests')),
    1,
  );
  assert.equal(shares.streams, 2);
  for (const end of [one!, one!, leave]) end();
  assert.equal(shares.streams, 1);
  shares.enter('ada', 'streams');
  shares.enter('ada', 'requests');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type IdleProbe, type IdleReading, PROBE_MS } from './idle.ts';
import { readIdle } from './open-idle.ts';

const probe = (name: string, read: IdleProbe['read']): IdleProbe => ({ name, read });
const answers = (name: string, reading: IdleReading) => probe(name, async () => reading);
const never = (name: string, seen: AbortSignal[] = []) =>
  probe(name, (signal) => {
    seen.push(signal);
    return new Promise(() => undefined);
  });

test('the first answer counts, and later probes are not queried', async () => {
  const asked: string[] = [];
  const behind = probe('behind', async () => {
    asked.push('behind');
    return { idleMs: 1, source: 'behind' };
  });
  const probes = [answers('one', { unavailable: 'no bus' }), answers('two', { idleMs: 1234.9, source: 'two' }), behind];
  assert.deepEqual(await readIdle(probes, new ManualClock()), { idleMs: 1234, source: 'two' });
  assert.deepEqual(asked, []);
});

test('without an answer the reasons of all probes are returned, in order', async () => {
  const probes = [
    answers('one', { unavailable: 'no bus' }),
    probe('two', async () => {
      throw new ReveilleError('unavailable', 'not installed');
    }),
    probe('three', () => {
      throw new TypeError('idle for 98765 ms');
    }),
    probe('four', () => Promise.reject('98765')),
  ];
  assert.deepEqual(await readIdle(probes, new ManualClock()), {
    unavailable: 'one: no bus; two: not installed; three: it failed (TypeError); four: it failed (string)',
  });
  assert.deepEqual(await readIdle([], new ManualClock()), { unavailable: 'no probe supports this platform' });
});

test('a probe without an answer is aborted after two seconds, and the next probe has its own two seconds', async () => {
  const clock = new ManualClock();
  const seen: AbortSignal[] = [];
  const reading = readIdle([never('one', seen), never('two', seen)], clock);
  await clock.advance(PROBE_MS - 1);
  assert.deepEqual(
    seen.map((signal) => signal.aborted),
    [false],
  );
  await clock.advance(1);
  assert.deepEqual(
    seen.map((signal) => signal.aborted),
    [true, false],
  );
  await clock.advance(PROBE_MS);
  assert.deepEqual(await reading, { unavailable: 'one: no answer within 2 s; two: no answer within 2 s' });
  assert.equal(clock.timers, 0);
});

test('a server that stops aborts the running probe and queries no other', async () => {
  const clock = new ManualClock();
  const seen: AbortSignal[] = [];
  const server = new AbortController();
  const reading = readIdle([never('one', seen), never('two', seen)], clock, server.signal);
  await clock.advance(1);
  server.abort();
  assert.deepEqual(await reading, { unavailable: 'the server stops' });
  assert.equal(seen.length, 1);
  assert.equal(seen[0]!.aborted, true);
  assert.equal(clock.timers, 0);
});

test('an impossible number is unavailable and is not repeated', async () => {
  const reasonOf = async (idleMs: number) => {
    const reading = await readIdle([answers('one', { idleMs, source: 'one' })], new ManualClock());
    return 'unavailable' in reading ? reading.unavailable : reading.idleMs;
  };
  assert.equal(await reasonOf(-1), 'one: its answer is negative');
  assert.equal(await reasonOf(Number.NaN), 'one: its answer is not a number');
  assert.equal(await reasonOf(Number.POSITIVE_INFINITY), 'one: its answer is not a number');
  assert.equal(await reasonOf(2 ** 53), 'one: its answer is longer than a year');
  assert.equal(await reasonOf(0), 0);
  assert.equal(await reasonOf(90 * 86_400_000), 90 * 86_400_000);
});

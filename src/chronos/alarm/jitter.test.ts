import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jitterMs } from './series.ts';

const ALARM = '01890a5d-ac96-774b-bcce-b302099a8057';

test('the jitter of an occurrence is the same in every call and process', () => {
  assert.equal(jitterMs(ALARM, 1_781_512_200_000, 60), jitterMs(ALARM, 1_781_512_200_000, 60));
  // A fixed value: a change of the function would change the fire ids of stored occurrences.
  assert.equal(jitterMs(ALARM, 1_781_512_200_000, 60), 35026);
});

test('jitter is a whole number of milliseconds from zero to below its width', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat(), fc.double({ min: 0, max: 3_600, noNaN: true }), (alarmId, due, seconds) => {
      const jitter = jitterMs(alarmId, due, seconds);
      assert.ok(Number.isInteger(jitter));
      assert.ok(jitter >= 0 && (jitter < seconds * 1_000 || jitter === 0), `${jitter} ms of ${seconds} s`);
    }),
  );
});

test('no width means no jitter', () => {
  assert.equal(jitterMs(ALARM, 1_781_512_200_000, 0), 0);
});

test('alarms that are due together are spread evenly', () => {
  const tenths = Array.from({ length: 10 }, () => 0);
  for (let alarm = 0; alarm < 10_000; alarm++) {
    const tenth = Math.floor(jitterMs(`alarm-${alarm}`, 1_781_512_200_000, 100) / 10_000);
    tenths[tenth]!++;
  }
  // 1,000 each are expected with a standard deviation of 30. The draw is fixed, so the test is deterministic.
  assert.ok(Math.min(...tenths) > 850 && Math.max(...tenths) < 1_150, tenths.join(' '));
});

test('the occurrences of one alarm have different jitter', () => {
  const draws = new Set<number>();
  for (let day = 0; day < 100; day++) draws.add(jitterMs(ALARM, day * 86_400_000, 3_600));
  assert.ok(draws.size > 95);
});

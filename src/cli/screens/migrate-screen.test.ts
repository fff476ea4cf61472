import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Step } from '../../chronos/store/transfer/progress.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { progressLine, progressText } from './migrate-screen.ts';
import type { Output } from './output.ts';

test('the progress line shows the done part, the speed and the remaining time', () => {
  assert.equal(
    progressText('copying', 250_000, 0, 1_000_000, 10_000),
    '  copying     25 %  250,000 of 1,000,000 rows  25,000 rows/s  30 s left',
  );
  // The part that an earlier run copied does not make this one faster.
  assert.equal(
    progressText('comparing', 600_000, 500_000, 1_000_000, 10_000),
    '  comparing   60 %  600,000 of 1,000,000 rows  10,000 rows/s  40 s left',
  );
  assert.equal(progressText('copying', 0, 0, 0, 0), '  copying    100 %  0 of 0 rows  0 rows/s');
});

test('nothing is printed in the first two seconds, and at most four lines a second afterwards', () => {
  const shown: [at: number, text: string][] = [];
  let now = 0;
  const out = { progress: (text: string) => shown.push([now, text]) } as unknown as Output;
  const report = progressLine(out, { ...systemClock, monotonic: () => now });
  for (; now < 4000; now += 10) {
    const step: Step = { phase: now < 3000 ? 'copying' : 'comparing', rows: now % 3000, total: 3000 };
    report(step);
  }
  report({ phase: 'arrived' });
  assert.deepEqual(
    shown.map(([at]) => at),
    [2000, 2250, 2500, 2750, 3000, 3250, 3500, 3750],
  );
  assert.match(shown[0]![1], /^ {2}copying +66 % {2}2,000 of 3,000 rows {2}1,000 rows\/s {2}1 s left$/);
  assert.match(shown.at(-1)![1], /^ {2}comparing +25 % /);
});

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { WallClock } from './wall-clock.ts';

const HOUR_MS = 3_600_000;

test('a clock that jumped knows when it showed an instant, and when it first reached one', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-clock-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const machine = new ManualClock();
  const start = machine.now();
  const clock = new WallClock(folder, 0, () => machine.now());
  machine.jump(1000);
  clock.set(HOUR_MS);
  assert.equal(readFileSync(join(folder, 'wall-clock-0'), 'utf8'), '+3600\n');
  assert.equal(clock.now(), start + 1000 + HOUR_MS);
  machine.jump(1000);
  clock.set(0);
  machine.jump(1000);

  assert.equal(clock.whenShown(start + 500), start + 500);
  assert.equal(clock.whenShown(start + HOUR_MS + 1500), start + 1500);
  assert.equal(clock.whenShown(start + 2500), start + 2500);
  assert.equal(clock.whenReached(start + 500, start), start + 500);
  assert.equal(clock.whenReached(start + HOUR_MS / 2, start), start + 1000, 'in the hour that was skipped');
  assert.equal(clock.whenReached(start + HOUR_MS / 2, start + 2000), start + HOUR_MS / 2, 'in the skipped hour');
  assert.equal(clock.latestWithin(1500), start + HOUR_MS + 2000);
  assert.equal(clock.latestWithin(500), start + 3000);
});

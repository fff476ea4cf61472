import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { Absence } from './absence.ts';

/**
 * Clocks under a test's control: all of them with or without the timers, or the ones that continue in a sleep, or the
 * wall clock alone.
 */
function clocks() {
  const at = { now: Date.UTC(2026, 10, 23, 8), monotonic: 1000, sinceBoot: 500_000 };
  const timers = new Set<{ at: number; act: () => void }>();
  const clock = {
    now: () => at.now,
    monotonic: () => at.monotonic,
    sinceBoot: () => at.sinceBoot,
    after(ms: number, act: () => void) {
      const timer = { at: at.monotonic + ms, act };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  /** The process is stopped: all clocks continue, no timer fires. */
  const stall = (ms: number) => {
    at.now += ms;
    at.monotonic += ms;
    at.sinceBoot += ms;
  };
  const pass = (ms: number) => {
    const end = at.monotonic + ms;
    for (;;) {
      const next = [...timers].filter((timer) => timer.at <= end).sort((one, other) => one.at - other.at)[0];
      if (!next) break;
      timers.delete(next);
      stall(Math.max(0, next.at - at.monotonic));
      next.act();
    }
    stall(end - at.monotonic);
  };
  const sleep = (ms: number) => {
    at.now += ms;
    at.sinceBoot += ms;
  };
  return { at, clock, pass, sleep, stall };
}

test('an occurrence due during a sleep is late because the computer slept', (t) => {
  const { at, clock, pass, sleep } = clocks();
  const absence = new Absence(temporaryFolder(t), clock, silentLogger);
  pass(10_000);
  assert.equal(absence.because(at.now - 5000), undefined);
  const due = at.now + 60_000;
  sleep(720_000);
  assert.equal(absence.because(due), 'slept');
  pass(60_000);
  assert.equal(absence.because(due), 'slept');
  assert.equal(absence.because(at.now - 1000), undefined);
});

test('an occurrence due while the process was stopped is late because of that', (t) => {
  const { at, clock, pass, stall } = clocks();
  const absence = new Absence(temporaryFolder(t), clock, silentLogger);
  pass(10_000);
  const due = at.now + 20_000;
  stall(60_000);
  assert.equal(absence.because(due), 'stalled');
  pass(60_000);
  assert.equal(absence.because(due), 'stalled');
  assert.equal(absence.because(at.now - 1000), undefined);
});

test('a change of the wall clock is no sleep', (t) => {
  const { at, clock } = clocks();
  const absence = new Absence(temporaryFolder(t), clock, silentLogger);
  at.now += 3_600_000;
  assert.equal(absence.because(at.now - 1_800_000), undefined);
});

test('an occurrence due between two processes is late because none ran', (t) => {
  const { at, clock, pass } = clocks();
  const folder = temporaryFolder(t);
  const first = new Absence(folder, clock, silentLogger);
  pass(5000);
  first.close();
  const end = at.now;
  pass(720_000);
  const second = new Absence(folder, clock, silentLogger);
  assert.equal(second.because(end + 1000), 'not_running');
  assert.equal(second.because(end - 1000), undefined);
  pass(1000);
  assert.equal(second.because(at.now), undefined);
  assert.equal(new Absence(undefined, clock, silentLogger).because(end + 1000), undefined);
});

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { createLogger, silentLogger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { startHeartbeat } from './heartbeat.ts';
import { BEAT_MS, type ChronometricState } from './state.ts';
import { DAY_MS, stateBench } from './testing/state-bench.ts';

const MINUTE = 60_000;
const START = new ManualClock().now();

/** Spans in minutes since the start. */
const spansOf = (state: ChronometricState) =>
  state
    .spansBetween(START - DAY_MS, START + 10 * DAY_MS)
    .map(({ from, to }) => [(from - START) / MINUTE, (to - START) / MINUTE]);

/** A simulated user: the test sets the time of the last input, and the heartbeat reads it as idle time. */
function person(t: TestContext) {
  const bench = stateBench(t);
  const seat = { inputAt: bench.clock.now() };
  const idleMs = async () => bench.clock.now() - seat.inputAt;
  const heartbeat = () => {
    const { stop } = startHeartbeat({ state: bench.state, clock: bench.clock, log: silentLogger, idleMs });
    t.after(stop);
    return stop;
  };
  /** The user types for a number of minutes. */
  const typing = async (minutes: number) => {
    for (let second = 0; second < minutes * 60; second += 5) {
      seat.inputAt = bench.clock.now();
      await bench.clock.advance(5000);
    }
  };
  return { ...bench, seat, heartbeat, typing };
}

test('without consent every beat counts until the heartbeat is stopped', async (t) => {
  const { clock, state } = stateBench(t);
  const { stop } = startHeartbeat({ state, clock, log: silentLogger });
  await clock.advance(10 * MINUTE);
  assert.deepEqual(spansOf(state), [[0, 10]]);
  stop();
  await clock.advance(10 * MINUTE);
  assert.deepEqual(spansOf(state), [[0, 10]]);
  assert.equal(clock.timers, 0);
});

test('in a daemon a beat counts only while the user is presumed or known to be present', async (t) => {
  const { clock, state } = stateBench(t);
  const seat: { isPresumed: boolean; idle: number | undefined } = { isPresumed: false, idle: undefined };
  const idleMs = async () => seat.idle;
  const presumed = () => seat.isPresumed;
  t.after(startHeartbeat({ state, clock, log: silentLogger, idleMs, presumed }).stop);
  await clock.advance(10 * MINUTE);
  seat.isPresumed = true;
  await clock.advance(5 * MINUTE);
  seat.isPresumed = false;
  await clock.advance(10 * MINUTE);
  assert.deepEqual(spansOf(state), [[10.25, 15]]);
  seat.idle = 0;
  await clock.advance(5 * MINUTE);
  assert.deepEqual(spansOf(state), [
    [10.25, 15],
    [25.25, 30],
  ]);
});

test('sleep is a gap, although the process did not run meanwhile', async (t) => {
  const { clock, state } = stateBench(t);
  t.after(startHeartbeat({ state, clock, log: silentLogger }).stop);
  await clock.advance(10 * MINUTE);
  clock.jump(8 * 60 * MINUTE);
  await clock.advance(10 * MINUTE);
  assert.deepEqual(spansOf(state), [
    [0, 10],
    [490.25, 500],
  ]);
});

test('after a clock that stepped back, no time counts twice', async (t) => {
  const { clock, state } = stateBench(t);
  t.after(startHeartbeat({ state, clock, log: silentLogger }).stop);
  await clock.advance(60 * MINUTE);
  clock.jump(-30 * MINUTE);
  await clock.advance(60 * MINUTE);
  assert.deepEqual(spansOf(state), [[0, 90]]);
});

test('the union of several servers counts', async (t) => {
  const { clock, state, another } = stateBench(t);
  const first = startHeartbeat({ state, clock, log: silentLogger });
  await clock.advance(5 * MINUTE + 7000);
  const second = startHeartbeat({ state: another(), clock, log: silentLogger });
  await clock.advance(5 * MINUTE);
  first.stop();
  await clock.advance(5 * MINUTE);
  second.stop();
  await clock.advance(5 * MINUTE);
  t.after(startHeartbeat({ state: another(), clock, log: silentLogger }).stop);
  await clock.advance(MINUTE);
  const [one, other] = spansOf(state);
  assert.deepEqual(one, [0, 15 + 7 / 60]);
  assert.equal(other![0], 20 + 7 / 60);
});

test('a pause of less than five minutes counts once it has ended', async (t) => {
  const { clock, state, heartbeat, typing } = person(t);
  heartbeat();
  await typing(10);
  await clock.advance(4 * MINUTE + 50_000);
  assert.deepEqual(spansOf(state), [[0, 10]], 'not before');
  await typing(5);
  assert.deepEqual(spansOf(state), [[0, 19.75]]);
});

test('an absence of five minutes is a break and does not count', async (t) => {
  const { clock, state, heartbeat, typing } = person(t);
  heartbeat();
  state.start('write', clock.now(), 'auto_close');
  await typing(10);
  await clock.advance(5 * MINUTE);
  await typing(5);
  const { activeMs, activeSinceBreakMs } = state.open()!;
  assert.ok(Math.abs(activeMs - 15 * MINUTE) <= BEAT_MS, `${activeMs}`);
  assert.ok(Math.abs(activeSinceBreakMs - 5 * MINUTE) <= BEAT_MS, `${activeSinceBreakMs}`);
});

test('a user who returns after an hour is present from then on, and not before', async (t) => {
  const { clock, state, heartbeat, typing, seat } = person(t);
  seat.inputAt -= 60 * MINUTE;
  heartbeat();
  await clock.advance(3 * MINUTE);
  assert.deepEqual(spansOf(state), []);
  await typing(2);
  assert.deepEqual(spansOf(state), [[3.25, 5]]);
});

test('a short sleep in a short pause is not counted afterwards', async (t) => {
  const { clock, state, heartbeat, typing } = person(t);
  heartbeat();
  await typing(10);
  await clock.advance(MINUTE);
  clock.jump(2 * MINUTE);
  await typing(5);
  const [first, second] = spansOf(state);
  assert.deepEqual(first, [0, 10]);
  assert.ok(second![0]! >= 13, `${second}`);
});

test('an unknown, failed or invalid idle time counts as presence', async (t) => {
  const { clock, state } = stateBench(t);
  const answers = [undefined, Number.NaN, -1, new Error('idle for 98765 ms')];
  let asked = 0;
  const idleMs = async () => {
    const answer = answers[asked++ % answers.length];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  t.after(startHeartbeat({ state, clock, log: silentLogger, idleMs }).stop);
  await clock.advance(5 * MINUTE);
  assert.deepEqual(spansOf(state), [[0, 5]]);
});

test('no idle time is stored: instants on disk are those of beats', async (t) => {
  const { clock, state, heartbeat, typing, dataDir } = person(t);
  heartbeat();
  await typing(2);
  await clock.advance(3 * MINUTE + 3456);
  await typing(2);
  await clock.advance(6 * MINUTE + 4567);
  await typing(2);
  for (const [from, to] of spansOf(state)) {
    assert.equal((from! * 60) % 15, 0, `${from}`);
    assert.equal((to! * 60) % 15, 0, `${to}`);
  }
  assert.ok(readdirSync(dataDir).every((name) => name.startsWith('chronometric.db')));
});

test('failed beats are written later with their gaps, and the failure is logged once', async (t) => {
  const { clock, state } = stateBench(t);
  const disk = { full: false };
  const refusing: Pick<ChronometricState, 'beat'> = {
    beat(now, since) {
      if (disk.full) throw new ReveilleError('unavailable', 'nothing was stored: database or disk is full');
      state.beat(now, since);
    },
  };
  const lines: string[] = [];
  const log = createLogger('chronometric');
  t.mock.method(log, 'warn', (_: object, text: string) => lines.push(text));
  t.mock.method(log, 'info', (text: string) => lines.push(text));
  t.after(startHeartbeat({ state: refusing, clock, log }).stop);
  await clock.advance(5 * MINUTE);
  disk.full = true;
  await clock.advance(10 * MINUTE);
  clock.jump(60 * MINUTE);
  await clock.advance(10 * MINUTE);
  assert.deepEqual(spansOf(state), [[0, 5]]);
  disk.full = false;
  await clock.advance(MINUTE);
  assert.deepEqual(spansOf(state), [
    [0, 15],
    [75.25, 86],
  ]);
  assert.equal(lines.length, 2, lines.join());
});

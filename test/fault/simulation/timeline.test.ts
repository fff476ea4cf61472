import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Dice } from './dice.ts';
import { Machine, Process } from './process.ts';
import { Timeline } from './timeline.ts';

const START = Date.UTC(2026, 5, 15);

function machineOn(timeline: Timeline, drift = 0): Machine {
  return new Machine(timeline, { start: START, skewMs: 0, drift });
}

describe('simulated time', () => {
  test('events run in the order of their times, and in the order of scheduling at equal times', async () => {
    const timeline = new Timeline();
    const seen: string[] = [];
    for (const [at, name] of [
      [20, 'c'],
      [10, 'a'],
      [20, 'd'],
      [10, 'b'],
      [30, 'e'],
    ] as const)
      timeline.after(at, () => seen.push(`${name}@${timeline.now}`));
    await timeline.runUntil(25);
    assert.deepEqual(seen, ['a@10', 'b@10', 'c@20', 'd@20']);
    assert.equal(timeline.now, 25);
  });

  test('the consequences of an event end before time continues', async () => {
    const timeline = new Timeline();
    const seen: number[] = [];
    timeline.after(10, async () => {
      for (let n = 0; n < 50; n++) await undefined;
      // A database answers some turns of the event loop later.
      await timeline.during(new Promise<void>((resolve) => setImmediate(() => setImmediate(() => resolve()))));
      seen.push(timeline.now);
    });
    timeline.after(10.001, () => seen.push(timeline.now));
    await timeline.runUntil(11);
    assert.deepEqual(seen, [10, 10.001]);
  });

  test('a cancelled event does not happen', async () => {
    const timeline = new Timeline();
    const cancel = timeline.after(1, () => assert.fail('it was cancelled'));
    cancel();
    await timeline.runUntil(2);
    assert.equal(timeline.events, 0);
  });

  test('an endless loop in a world is stopped', async () => {
    const timeline = new Timeline();
    const again = () => void timeline.after(0, again);
    again();
    await assert.rejects(timeline.runUntil(1), /time stands still at 0 ms/);
  });
});

describe('a simulated process', () => {
  test('gets the events of its stopped time when it continues, timers included', async () => {
    const timeline = new Timeline();
    const process = new Process('p', machineOn(timeline), timeline, new Dice(1));
    const seen: number[] = [];
    process.clock.after(10, () => seen.push(Math.floor(timeline.now)));
    process.stop();
    process.deliver(() => seen.push(-1));
    await timeline.runUntil(100);
    assert.deepEqual(seen, []);
    process.resume();
    await timeline.runUntil(200);
    assert.deepEqual(seen, [-1, 100]);
  });

  test('does nothing once it is dead', async () => {
    const timeline = new Timeline();
    const process = new Process('p', machineOn(timeline), timeline, new Dice(1));
    process.clock.after(10, () => assert.fail('it is dead'));
    process.kill();
    process.deliver(() => assert.fail('it is dead'));
    await timeline.runUntil(100);
  });

  test('a machine with a fast crystal has fast clocks; a jump moves only the wall clock', async () => {
    const timeline = new Timeline();
    const machine = machineOn(timeline, 0.01);
    await timeline.runUntil(1000);
    assert.equal(machine.monotonic(), 1010);
    assert.equal(machine.wall(), START + 1010);
    machine.jump(-500);
    assert.equal(machine.monotonic(), 1010);
    assert.equal(machine.wall(), START + 510);
  });
});

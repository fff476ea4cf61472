/** The keeper on the alarm of a clock of the hardware, whose files are real and lie in a folder of the test. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { HOLD_LIMIT_SECONDS } from './awake.ts';
import { WakeKeeper } from './keeper.ts';
import { LEAD_MS, wakeFiles } from './wake-alarm.ts';
import { cannotWake, hardwareWake, udevRemedy } from './wake-linux.ts';

const MINUTE = 60_000;
/** What the clock of the hardware is ahead: it is set to local time. */
const AHEAD_SECONDS = 7200;
const LOOK = 2500;

/** The clock of the hardware is read between two looks. */
function near(actual: number | undefined, wanted: number, words?: string): void {
  assert.ok(
    Math.abs((actual ?? 0) - wanted) <= LOOK + 1500,
    `${words ?? 'it'}: ${((actual ?? 0) - wanted) / 1000} s off`,
  );
}

function house(t: TestContext) {
  const folder = temporaryFolder(t);
  const clock = new ManualClock(Date.UTC(2026, 10, 23, 8));
  const own = join(folder, 'service');
  const rtc = join(folder, 'rtc0');
  for (const one of [own, rtc]) mkdirSync(one);
  writeFileSync(join(rtc, 'wakealarm'), '');
  const files = wakeFiles({ own });
  writeFileSync(files.wanted, '');
  /** Instants at which something that asks for it is due. */
  const due = new Set<number>();
  const awake = {
    isHeld: false,
    loose: undefined as string | undefined,
    holds: 0,
    async hold() {
      this.isHeld = true;
      this.holds++;
    },
    async release() {
      this.isHeld = false;
    },
  };
  const tell = () => writeFileSync(join(rtc, 'since_epoch'), `${Math.floor(clock.now() / 1000) + AHEAD_SECONDS}\n`);
  tell();
  const begin = () => {
    const keeper = new WakeKeeper({
      ...{ clock, log: silentLogger, files, awake },
      alarm: hardwareWake(rtc, () => clock.now()),
      wakings: async (after) => {
        const sorted = [...due].sort((one, other) => one - other);
        const [first, later] = [sorted[0], sorted.find((at) => at > after)];
        return { ...(first !== undefined && { first }), ...(later !== undefined && { later }) };
      },
      isWanted: () => existsSync(files.wanted),
    });
    keeper.start();
    t.after(() => keeper.close());
    return keeper;
  };
  return {
    ...{ clock, due, awake, files, rtc, begin },
    /** When the hardware wakes the computer, by our clock; 0: never. */
    wakesAt: () => {
      const seconds = Number(readFileSync(join(rtc, 'wakealarm'), 'utf8'));
      return seconds === 0 ? 0 : (seconds - AHEAD_SECONDS) * 1000;
    },
    arm: (at: number) => writeFileSync(join(rtc, 'wakealarm'), `${Math.floor(at / 1000) + AHEAD_SECONDS}\n`),
    /** Time passes, for the clock of the hardware too. */
    async pass(ms: number) {
      for (let left = ms; left > 0; left -= LOOK) {
        await clock.advance(Math.min(LOOK, left));
        tell();
      }
      await clock.advance(0);
    },
  };
}

test('one wake is armed, a minute before the first of a hundred alarms; it goes when none is left', async (t) => {
  const { clock, due, wakesAt, begin, pass, files } = house(t);
  const start = clock.now();
  for (let n = 100; n > 0; n--) due.add(start + 10 * MINUTE + n * MINUTE);
  begin();
  await pass(LOOK);
  near(wakesAt(), start + 11 * MINUTE - LEAD_MS);
  near(files.read()?.armed?.at, wakesAt());
  due.delete(start + 11 * MINUTE);
  await pass(LOOK);
  near(wakesAt(), start + 12 * MINUTE - LEAD_MS, 'the first was cancelled');
  due.clear();
  await pass(LOOK);
  assert.equal(wakesAt(), 0);
  due.add(start + 20 * MINUTE);
  await pass(LOOK);
  near(wakesAt(), start + 20 * MINUTE - LEAD_MS);
  rmSync(files.wanted);
  await pass(LOOK);
  assert.equal(wakesAt(), 0, 'its person does not want it any more');
  assert.equal(files.read(), undefined);
});

test('two in one minute: it is held awake from a minute before until both turns have ended, and let go', async (t) => {
  const { clock, due, awake, wakesAt, begin, pass } = house(t);
  const [one, other] = [clock.now() + 5 * MINUTE, clock.now() + 5 * MINUTE + 20_000];
  due.add(one).add(other);
  const keeper = begin();
  await pass(3 * MINUTE);
  assert.equal(awake.isHeld, false);
  await pass(MINUTE + LOOK);
  assert.equal(awake.isHeld, true);
  await pass(MINUTE);
  keeper.turnBegan('one');
  due.delete(one);
  await pass(30_000);
  keeper.turnBegan('other');
  due.delete(other);
  keeper.turnEnded('one');
  await pass(5 * MINUTE);
  assert.equal(awake.isHeld, true, 'the second turn runs');
  keeper.turnEnded('other');
  await pass(15_000);
  assert.equal(awake.isHeld, false);
  assert.equal(awake.holds, 1);
  assert.ok(wakesAt() <= clock.now(), 'nothing is left armed');
});

test('a turn that never ends keeps the computer awake for half an hour, and a holder that is killed is replaced', async (t) => {
  const { awake, begin, pass } = house(t);
  const keeper = begin();
  keeper.turnBegan('endless');
  await pass(LOOK);
  awake.isHeld = false;
  await pass(LOOK);
  assert.equal(awake.isHeld, true);
  await pass(HOLD_LIMIT_SECONDS * 1000);
  assert.equal(awake.isHeld, false);
  await pass(10 * MINUTE);
  assert.equal(awake.isHeld, false);
  keeper.turnEnded('endless');
  await pass(MINUTE);
  keeper.turnBegan('next');
  await pass(LOOK);
  assert.equal(awake.isHeld, true);
});

test('what a killed process had armed is found by the next one, which moves it or takes it back', async (t) => {
  const { clock, due, wakesAt, begin, pass, files } = house(t);
  const at = clock.now() + 30 * MINUTE;
  due.add(at);
  begin();
  await pass(LOOK);
  // The first process stands for one that was killed: nothing of it runs on but what it wrote.
  const left = files.read()!;
  due.clear();
  due.add(at + MINUTE);
  files.write(left);
  begin();
  await pass(LOOK);
  near(wakesAt(), at + MINUTE - LEAD_MS);
  due.clear();
  await pass(LOOK);
  assert.equal(wakesAt(), 0);
});

test('a sooner wake of somebody else is left alone, and a later one is put back', async (t) => {
  const { clock, due, wakesAt, arm, begin, pass, files } = house(t);
  const start = clock.now();
  arm(start + 5 * MINUTE);
  due.add(start + 30 * MINUTE);
  begin();
  await pass(LOOK);
  near(wakesAt(), start + 5 * MINUTE);
  assert.equal(files.read()?.armed, undefined);
  near(files.read()?.behind, start + 5 * MINUTE);
  await pass(6 * MINUTE);
  near(wakesAt(), start + 29 * MINUTE, 'theirs is past');
  due.clear();
  arm(start + 60 * MINUTE);
  await pass(LOOK);
  near(wakesAt(), start + 60 * MINUTE, 'ours is gone, and what stands there is not ours');
  due.add(start + 40 * MINUTE);
  await pass(LOOK);
  near(wakesAt(), start + 39 * MINUTE);
  due.clear();
  due.add(start + 90 * MINUTE);
  await pass(LOOK);
  near(wakesAt(), start + 60 * MINUTE, 'theirs comes first now');
  due.clear();
  await pass(LOOK);
  near(wakesAt(), start + 60 * MINUTE);
});

test('a clock that is put forward or back moves the wake with it', async (t) => {
  const { clock, due, begin, pass, rtc } = house(t);
  const at = clock.now() + 60 * MINUTE;
  due.add(at);
  begin();
  await pass(LOOK);
  const mark = () => Number(readFileSync(join(rtc, 'wakealarm'), 'utf8'));
  const before = mark();
  // The clock of the hardware goes on as it was: only ours is set.
  clock.jump(10 * MINUTE);
  await clock.advance(LOOK);
  assert.ok(Math.abs(before - mark() - 600) <= 4, `${before - mark()} s earlier`);
  clock.jump(-20 * MINUTE);
  await clock.advance(LOOK);
  assert.ok(Math.abs(mark() - before - 600) <= 4, `${mark() - before} s later`);
});

test('what the hardware does not take is said, tried again, and leaves nothing half done', async (t) => {
  const { clock, due, begin, pass, rtc, files, wakesAt } = house(t);
  rmSync(join(rtc, 'wakealarm'));
  mkdirSync(join(rtc, 'wakealarm'));
  due.add(clock.now() + 60 * MINUTE);
  begin();
  await pass(LOOK);
  assert.equal(files.read()?.armed, undefined);
  rmSync(join(rtc, 'wakealarm'), { recursive: true });
  writeFileSync(join(rtc, 'wakealarm'), '');
  await pass(MINUTE);
  assert.equal(wakesAt() > 0, true);
  assert.equal(files.read()?.problem, undefined);
});

test('where nothing can wake a computer it is said why', (t) => {
  const root = temporaryFolder(t);
  assert.match(cannotWake(root)!.problem, /no clock for it/);
  mkdirSync(join(root, 'sys/class/rtc/rtc0'), { recursive: true });
  assert.match(cannotWake(root)!.problem, /has no alarm/);
  writeFileSync(join(root, 'sys/class/rtc/rtc0/wakealarm'), '');
  assert.equal(cannotWake(root), undefined);
  writeFileSync(join(root, '.dockerenv'), '');
  assert.equal(cannotWake(root), undefined, 'some virtual machines are made of images of containers');
  assert.match(udevRemedy('rtc0', 'ada'), /KERNEL=="rtc0", RUN\+="\/bin\/chown ada \/sys%p\/wakealarm"'/);
});

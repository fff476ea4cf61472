import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { viewFires } from '../../../src/chronos/alarm/fire-history.ts';
import { pauseAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { viewAlarm } from '../../../src/chronos/alarm/view.ts';
import type { WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import { recordReports } from '../../../src/chronos/http/turn-report-routes.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { entriesOf } from '../../../src/cli/log/entries.ts';
import { CATCH_UPS, type CatchUp, OVERLAPS, type Overlap } from '../../../src/wire/alarm-fields.ts';
import { firesOf } from '../../../src/wire/fire.ts';
import type { TurnReport } from '../../../src/wire/turn-report.ts';
import { type BenchOptions, createBench, DELIVERED } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const NO_REPORT = {
  outcome: null,
  error: null,
  retryAt: null,
  reply: null,
  usage: null,
  turnId: 't',
  conversationId: null,
};

type Turn = { fireId: string; from: number; to: number };

/** A bench whose target runs a turn for each accepted wake, one after another, and reports its start and its end. */
async function createTurnBench(
  t: TestContext,
  { turnMs, fails = () => false, ...options }: BenchOptions & { turnMs: number; fails?: (turn: number) => boolean },
) {
  const turns: Turn[] = [];
  const waiting: Promise<void>[] = [];
  const accept = ({ occurrence }: Claim): WakeResult => {
    waiting.push(run(occurrence));
    return DELIVERED;
  };
  const bench = await createBench(t, { ...options, respond: accept });
  const { clock, store } = bench;
  const report = async ({ owner, alarmId, fireId, scheduledFor }: Claim['occurrence'], given: Partial<TurnReport>) => {
    const service = { store, clock, onDue: (at: number) => bench.dispatcher.notifyDue(at) };
    const whole = { ...NO_REPORT, stage: 'turn_started', at: clock.now(), ...given } as TurnReport;
    assert.ok(await recordReports(service, { owner, alarmId, fireId, dueAt: scheduledFor }, [whole]));
  };
  async function run(occurrence: Claim['occurrence']): Promise<void> {
    // An agent runs one turn at a time.
    const from = Math.max(clock.now(), ...turns.map(({ to }) => to));
    const number = turns.push({ fireId: occurrence.fireId, from, to: from + turnMs });
    await new Promise<void>((resolve) => clock.after(from - clock.now() + SECOND, resolve));
    await report(occurrence, { stage: 'turn_started' });
    await new Promise<void>((resolve) => clock.after(turnMs - SECOND, resolve));
    const failed = fails(number);
    const outcome = failed ? 'failed' : 'ok';
    await report(occurrence, { stage: 'turn_finished', outcome, error: failed ? 'no such file' : null });
  }
  return { ...bench, turns };
}

type TurnBench = Awaited<ReturnType<typeof createTurnBench>>;

/** The ledger: minutes of the instants since the first one, with outcome and missed count. */
async function outcomes(bench: TurnBench, id: string, first: number): Promise<[number, string, number][]> {
  return (await bench.ledger(id)).map(({ scheduledFor, outcome, missedCount }) => [
    Math.round((scheduledFor - first) / MINUTE),
    outcome,
    missedCount,
  ]);
}

/** When the fire of each turn was due, in minutes since the first one. */
const turnMinutes = ({ turns }: TurnBench, first: number) =>
  turns.map(({ fireId }) => Math.round((Number(fireId.split('@')[1]) - first) / MINUTE));

function assertOneAtATime({ turns }: TurnBench): void {
  for (const [n, { from }] of turns.entries()) assert.ok(n === 0 || from >= turns[n - 1]!.to, `turn ${n} overlaps`);
}

/** The log and the states of the console say what the ledger says. */
async function assertScreensAgree({ store, state }: TurnBench, id: string, delivered: number): Promise<void> {
  const attempts = await store.attempts('ada', id, { limit: 500 });
  const fireIds = attempts.map(({ fireId }) => fireId);
  const fires = viewFires(attempts, await store.turnReportsOf('ada', id, fireIds));
  const logged = entriesOf(viewAlarm(await state(id)), fires).map(({ kind }) => kind);
  const states = firesOf(fires).map((fire) => fire.state);
  const of = (list: readonly string[], ...names: string[]) => list.filter((name) => names.includes(name)).length;
  assert.equal(of(logged, 'rang'), delivered);
  assert.equal(of(states, 'turn_done', 'turn_running', 'accepted'), delivered);
  for (const kept of ['missed', 'skipped'] as const) {
    assert.equal(of(logged, kept), of(states, kept));
    assert.equal(of(states, kept), attempts.filter(({ outcome }) => outcome === kept).length);
  }
}

/** An hourly alarm; the computer sleeps from 0:30 after its first fire for three days, and is open for some hours. */
async function closedForThreeDays(t: TestContext, fields: object, openMs = 3 * HOUR) {
  const bench = await createTurnBench(t, { turnMs: 10 * MINUTE, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '0 * * * *', ...fields });
  await bench.clock.advance(due + 30 * MINUTE - bench.clock.now());
  bench.clock.jump(3 * DAY);
  await bench.clock.advance(openMs);
  return { bench, id, due };
}

const LAST = 72 * 60;
/** The hours that the computer is open after it, all on time. */
const ON_TIME: [number, string, number][] = [LAST + 60, LAST + 120, LAST + 180].map((at) => [at, 'delivered', 0]);

/** What the ledger has after three days with a closed computer, by policy. */
const AFTER_THREE_DAYS: Record<CatchUp, (overlap: Overlap) => [number, string, number][]> = {
  latest: () => [[LAST, 'delivered', 71], ...ON_TIME],
  none: () => [[LAST, 'missed', 71], ...ON_TIME],
  all: (overlap) => {
    if (overlap === 'skip') return [[60, 'delivered', 0], [LAST, 'skipped', 70], ...ON_TIME];
    if (overlap === 'buffer_one') return [[60, 'delivered', 0], [LAST, 'delivered', 70], ...ON_TIME];
    const each = Array.from({ length: 72 }, (_, n): [number, string, number] => [(n + 1) * 60, 'delivered', 0]);
    return overlap === 'allow' ? [...each, ...ON_TIME] : each;
  },
};

for (const catchUp of CATCH_UPS) {
  for (const overlap of OVERLAPS) {
    test(`after three days with a closed computer: catch_up ${catchUp}, overlap ${overlap}`, async (t) => {
      const slow = catchUp === 'all' && overlap === 'buffer_all';
      const openMs = slow ? DAY : 3 * HOUR;
      const { bench, id, due } = await closedForThreeDays(t, { catch_up: catchUp, overlap }, openMs);
      const [first, ...after] = await outcomes(bench, id, due);
      assert.deepEqual(first, [0, 'delivered', 0]);
      const expected = AFTER_THREE_DAYS[catchUp](overlap);
      assert.deepEqual(after.slice(0, expected.length), expected);
      const delivered = [first, ...after].filter((one) => one?.[1] === 'delivered').map((one) => one![0]);
      assert.deepEqual(turnMinutes(bench, due), delivered, 'each delivered fire is one turn, in order');
      if (overlap !== 'allow') assertOneAtATime(bench);
      if (!slow) assert.equal(after.length, expected.length);
      // The backlog is worked off: 12 hours for 72 turns, and what fell due meanwhile.
      else assert.deepEqual(after.at(-1), [LAST + 24 * 60, 'delivered', 0]);
      const { alarm } = await bench.state(id);
      assert.equal(alarm.fireCount, delivered.length);
      await assertScreensAgree(bench, id, delivered.length);
      assert.equal(alarm.status, 'active');
    });
  }
}

test('a window limits what catch_up all and latest fire; the rest is one entry', async (t) => {
  const fields = { catch_up_window_seconds: 3 * 3600 };
  const all = await closedForThreeDays(t, { ...fields, catch_up: 'all' });
  assert.deepEqual((await outcomes(all.bench, all.id, all.due)).slice(1, 5), [
    [LAST - 180, 'missed', 68],
    [LAST - 120, 'delivered', 0],
    [LAST - 60, 'delivered', 0],
    [LAST, 'delivered', 0],
  ]);
  const short = await closedForThreeDays(t, { catch_up_window_seconds: 600 });
  assert.deepEqual((await outcomes(short.bench, short.id, short.due)).slice(1, 3), [
    [LAST, 'missed', 71],
    [LAST + 60, 'delivered', 0],
  ]);
});

/** A turn of 40 minutes every 15 minutes, for three hours. */
async function overlapping(t: TestContext, overlap: Overlap) {
  const bench = await createTurnBench(t, { turnMs: 40 * MINUTE, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/15 * * * *', overlap });
  await bench.clock.advance(due - bench.clock.now() + 3 * HOUR + MINUTE);
  return { bench, id, due };
}

test('overlap skip records an occurrence that falls due while a turn runs as skipped', async (t) => {
  const { bench, id, due } = await overlapping(t, 'skip');
  const found = await outcomes(bench, id, due);
  assert.deepEqual(
    found.map(([at, outcome]) => [at, outcome]),
    Array.from({ length: 13 }, (_, n) => [n * 15, n % 3 === 0 ? 'delivered' : 'skipped']),
  );
  assertOneAtATime(bench);
  const { alarm } = await bench.state(id);
  assert.deepEqual([alarm.lastError, alarm.failureCount], [null, 0]);
  const skipped = (await bench.ledger(id)).find(({ outcome }) => outcome === 'skipped');
  assert.match(skipped!.error!, /^the turn of the fire due \S+ still runs \(overlap: skip\)$/);
});

test('overlap buffer_one keeps the latest occurrence, and fires it when the turn ends', async (t) => {
  const { bench, id, due } = await overlapping(t, 'buffer_one');
  assert.deepEqual((await outcomes(bench, id, due)).slice(0, 4), [
    [0, 'delivered', 0],
    [30, 'delivered', 1],
    [75, 'delivered', 2],
    [120, 'delivered', 2],
  ]);
  assertOneAtATime(bench);
  assert.deepEqual(
    bench.turns.map(({ from }) => Math.round((from - due) / MINUTE)),
    [0, 40, 80, 120, 160],
  );
});

test('overlap buffer_all keeps every occurrence, and fires them in order', async (t) => {
  const { bench, id, due } = await overlapping(t, 'buffer_all');
  assert.deepEqual(
    await outcomes(bench, id, due),
    [0, 15, 30, 45, 60].map((at) => [at, 'delivered', 0]),
  );
  assertOneAtATime(bench);
  const [waiting] = (await bench.state(id)).occurrences;
  assert.match(waiting!.heldReason!, /still runs \(overlap: buffer_all\)$/);
});

test('a turn that is not reported again counts as over after an hour', async (t) => {
  const bench = await createTurnBench(t, { turnMs: 300 * MINUTE, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/20 * * * *', overlap: 'buffer_one' });
  await bench.clock.advance(due - bench.clock.now() + 62 * MINUTE);
  assert.deepEqual(await outcomes(bench, id, due), [
    [0, 'delivered', 0],
    [60, 'delivered', 2],
  ]);
});

test('a target that reports no turns does not hold its series', async (t) => {
  for (const overlap of OVERLAPS) {
    const bench = await createBench(t);
    const { id, due } = await bench.set({ kind: 'cron', cron_expr: '* * * * *', overlap });
    await bench.clock.advance(due - bench.clock.now() + 10 * MINUTE + SECOND);
    assert.deepEqual(
      (await bench.ledger(id)).map(({ startedAt, outcome }) => [(startedAt - due) / MINUTE, outcome]),
      Array.from({ length: 11 }, (_, n) => [n, 'delivered']),
    );
  }
});

test('a plain alarm reads nothing more', async (t) => {
  const bench = await createBench(t);
  await bench.set({ kind: 'cron', cron_expr: '* * * * *', catch_up: 'all' });
  await bench.clock.advance(10 * MINUTE);
  assert.deepEqual(
    [bench.faults.count('attempts'), bench.faults.count('turnReportsOf'), bench.faults.count('get')],
    [0, 0, 0],
  );
});

test('a failed read of the turns postpones the wake', async (t) => {
  const bench = await createTurnBench(t, { turnMs: MINUTE });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/5 * * * *', overlap: 'skip' });
  bench.faults.failing.add('attempts');
  await bench.clock.advance(due - bench.clock.now() + 3 * SECOND);
  bench.faults.failing.delete('attempts');
  assert.deepEqual(await bench.ledger(id), []);
  await bench.clock.advance(3 * SECOND);
  assert.deepEqual(
    (await bench.ledger(id)).map(({ attempt, outcome }) => [attempt, outcome]),
    [[1, 'delivered']],
  );
});

test('a series pauses when a turn fails, and resume continues it', async (t) => {
  const bench = await createTurnBench(t, { turnMs: MINUTE, fails: (turn) => turn === 2 });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/5 * * * *', pause_on_failure: true });
  await bench.clock.advance(due - bench.clock.now() + 30 * MINUTE);
  const { alarm, occurrences } = await bench.state(id);
  assert.equal(alarm.status, 'paused');
  assert.equal(alarm.lastError, 'paused on failure, continue with resume: the turn failed: no such file');
  assert.equal(alarm.updatedAt, due + 6 * MINUTE);
  assert.deepEqual(
    occurrences.map(({ dueAt }) => dueAt),
    [null],
  );
  assert.equal(bench.turns.length, 2);
  await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
  await bench.clock.advance(10 * MINUTE);
  assert.equal(bench.turns.length, 4);
  assert.equal((await bench.state(id)).alarm.lastError, null);
});

test('a series pauses when a fire is given up, but not when one is missed', async (t) => {
  const refused: WakeResult = { outcome: 'failed', httpStatus: 410, error: 'no such machine', final: true };
  const bench = await createBench(t, { respond: () => refused, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '0 * * * *', pause_on_failure: true });
  await bench.clock.advance(due - bench.clock.now() + 3 * HOUR);
  assert.equal((await bench.ledger(id)).length, 1);
  const { alarm } = await bench.state(id);
  assert.deepEqual(
    [alarm.status, alarm.lastError],
    ['paused', 'paused on failure, continue with resume: no such machine'],
  );
  const late = await bench.set(
    { kind: 'cron', cron_expr: '0 * * * *', pause_on_failure: true, catch_up: 'none' },
    'bob',
  );
  bench.clock.jump(2 * HOUR + 30 * MINUTE);
  await bench.clock.advance(MINUTE);
  assert.deepEqual(
    (await bench.ledger(late.id, 'bob')).map(({ outcome }) => outcome),
    ['missed'],
  );
  assert.equal((await bench.state(late.id, 'bob')).alarm.status, 'active');
});

test('an occurrence that waits for a turn keeps waiting over a pause', async (t) => {
  const bench = await createTurnBench(t, { turnMs: 40 * MINUTE, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/15 * * * *', overlap: 'buffer_one' });
  await bench.clock.advance(due - bench.clock.now() + 20 * MINUTE);
  await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
  await bench.clock.advance(30 * MINUTE);
  assert.equal(bench.turns.length, 1, 'a paused series does not fire when the turn ends');
  await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
  await bench.clock.advance(15 * MINUTE);
  assert.equal(bench.turns.length, 2);
});

test('10,000 overdue occurrences do not hold other alarms', async (t) => {
  const bench = await createBench(t);
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '* * * * *', catch_up: 'all' });
  await bench.clock.advance(due - bench.clock.now() - SECOND);
  bench.clock.jump(10_000 * MINUTE);
  await bench.clock.advance(SECOND);
  const others = await Promise.all(['ada', 'bob'].map((owner) => bench.set({ kind: 'once', delay_seconds: 2 }, owner)));
  await bench.clock.advance(3 * SECOND);
  const fired = (wanted: string) => bench.waker.wakes.filter(({ claim }) => claim.alarm.id === wanted);
  for (const other of others) assert.ok(fired(other.id)[0]!.at - other.due < 50);
  const before = fired(id).length;
  assert.ok(before > 100 && before < 10_000, `${before} fires in 4 seconds`);
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { waitsForTurn } from '../../../src/chronos/alarm/alarm.ts';
import { addBackfill, occurrencesBetween } from '../../../src/chronos/alarm/backfill.ts';
import { cancelAlarm, pauseAlarm, resumeAlarm, triggerAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { edit } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { nextFireAt, viewAlarm } from '../../../src/chronos/alarm/view.ts';
import type { WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import { recordReports } from '../../../src/chronos/http/turn-report-routes.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { CATCH_UPS, type CatchUp, OVERLAPS, type Overlap } from '../../../src/wire/alarm-fields.ts';
import type { TurnReport } from '../../../src/wire/turn-report.ts';
import { type BenchOptions, createBench, DELIVERED } from './dispatch-bench.ts';
import { type Screens, type ShownFire, screensOf } from './screens-of-store.ts';

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

type Turn = { fireId: string; accepted: number; from: number; to: number };

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
    const accepted = clock.now();
    const from = Math.max(accepted, ...turns.map(({ to }) => to));
    const number = turns.push({ fireId: occurrence.fireId, accepted, from, to: from + turnMs });
    await new Promise<void>((resolve) => clock.after(from - clock.now() + SECOND, resolve));
    await report(occurrence, { stage: 'turn_started' });
    await new Promise<void>((resolve) => clock.after(turnMs - SECOND, resolve));
    const failed = fails(number);
    const outcome = failed ? 'failed' : 'ok';
    await report(occurrence, { stage: 'turn_finished', outcome, error: failed ? 'no such file' : null });
  }
  return { ...bench, turns, report };
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
  for (const [n, { accepted }] of turns.entries())
    assert.ok(n === 0 || accepted >= turns[n - 1]!.to, `turn ${n} overlaps`);
}

const WORDS = { delivered: 'fired', missed: 'missed', skipped: 'skipped', failed: 'failed', unknown: 'unknown' };

/** How far the turn of a fire got, as the page of its alarm says. */
function shownTurn({ turns, clock }: TurnBench, fireId: string): string {
  const { from, to } = turns.find((turn) => turn.fireId === fireId)!;
  if (to <= clock.now()) return 'done';
  return from + SECOND <= clock.now() ? 'turn running' : 'accepted; no turn report yet';
}

/** `reveille log`, the pages of the console, the turns and the ledger say the same. */
async function assertScreensAgree(bench: TurnBench, screens: Screens, id: string): Promise<void> {
  const ledger = await bench.ledger(id);
  const lines = await screens.log();
  const fired = lines.filter(({ word }) => word !== 'reply');
  assert.deepEqual(
    fired.map(({ word }) => word),
    ledger.map(({ outcome }) => WORDS[outcome]),
  );
  assert.deepEqual(
    fired.map(({ text }) => Number(/(?:for|with) (\d+) (?:missed|before it)/.exec(text)?.[1] ?? 0)),
    ledger.map(({ missedCount }) => missedCount),
  );
  const skipped = fired.filter(({ word }) => word === 'skipped');
  assert.ok(skipped.every(({ text }) => /the turn of the fire due \S+ still runs \(overlap: skip\)/.test(text)));
  const ended = bench.turns.filter(({ to }) => to <= bench.clock.now());
  assert.equal(lines.length - fired.length, ended.length, 'a reply for each turn that has ended');
  const entries = (await screens.entries()).filter(({ kind }) => kind !== 'reply');
  assert.deepEqual(
    entries.map(({ fire_id }) => fire_id),
    ledger.map(({ fireId }) => fireId),
  );

  assert.deepEqual(
    (await screens.fires(id)).map(({ state, ...fire }) => ({
      ...fire,
      state: state.replace(/^skipped: .*/, 'skipped'),
    })),
    ledger.map(({ scheduledFor: dueAt, missedCount: missed, outcome, fireId }) => ({
      ...{ dueAt, missed },
      state: outcome === 'delivered' ? shownTurn(bench, fireId) : outcome,
    })),
  );
  const next = nextFireAt(await bench.state(id));
  assert.ok(next !== undefined && next > bench.clock.now());
  assert.equal(await screens.upcoming(id), next);
}

/** An hourly alarm; the computer sleeps from 0:30 after its first fire for three days, and is open for some hours. */
async function closedForThreeDays(t: TestContext, fields: object, openMs = 3 * HOUR) {
  const bench = await createTurnBench(t, { turnMs: 10 * MINUTE, config: { tickMs: MINUTE } });
  const screens = await screensOf(t, bench, 'ada');
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '0 * * * *', ...fields });
  await bench.clock.advance(due + 30 * MINUTE - bench.clock.now());
  bench.clock.jump(3 * DAY);
  await bench.clock.advance(openMs);
  return { bench, screens, id, due };
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
      const { bench, screens, id, due } = await closedForThreeDays(t, { catch_up: catchUp, overlap }, openMs);
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
      await assertScreensAgree(bench, screens, id);
      assert.equal(alarm.status, 'active');
    });
  }
}

const GUIDE = readFileSync(
  join(import.meta.dirname, '..', '..', '..', 'docs', 'guides', 'missed-and-overlapping.md'),
  'utf8',
);

/** What the guide says of a value, in the row of its table. */
const guideOn = (value: string) =>
  new RegExp(`^\\| \`${value}\`(?: \\(default\\))? \\| (.+) \\|$`, 'm').exec(GUIDE)?.[1];

/** `Monday`, in UTC. */
const weekdayOf = ({ dueAt }: ShownFire) =>
  new Intl.DateTimeFormat('en-GB', { weekday: 'long', timeZone: 'UTC' }).format(dueAt);

for (const catchUp of CATCH_UPS)
  test(`the guide says what the screens show after three days: catch_up ${catchUp}`, async (t) => {
    const bench = await createTurnBench(t, { turnMs: MINUTE });
    const screens = await screensOf(t, bench, 'ada');
    const { id, due } = await bench.set({ kind: 'cron', cron_expr: '0 9 * * *', catch_up: catchUp });
    bench.clock.jump(3 * DAY);
    await bench.clock.advance(10 * MINUTE);
    const fires = await screens.fires(id);
    const fired = fires.filter(({ state }) => state === 'done');
    const [one, ...others] = fired;
    const said = () => {
      if (!one) return 'no fire; the occurrences are recorded as missed';
      if (others.length === 0) return `one fire, for ${weekdayOf(one)}; \`missed_count\` is ${one.missed}`;
      return `three fires: ${fired.map(weekdayOf).join(', ')}`;
    };
    assert.equal(said(), guideOn(catchUp));
    if (!one) assert.deepEqual(fires, [{ dueAt: due + 2 * DAY, state: 'missed', missed: 2 }]);
    const lines = await screens.log();
    assert.equal(lines.filter(({ word }) => word === 'fired').length, fired.length);
    assert.equal(lines.filter(({ word }) => word === 'missed').length, one ? 0 : 1);
    assert.equal(await screens.upcoming(id), due + 3 * DAY, 'the next fire is on Thursday');
  });

for (const overlap of OVERLAPS)
  test(`the guide says what the screens show while an earlier turn runs: overlap ${overlap}`, async (t) => {
    const bench = await createTurnBench(t, { turnMs: 40 * MINUTE, config: { tickMs: MINUTE } });
    const screens = await screensOf(t, bench, 'ada');
    const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/15 * * * *', overlap });
    const firedMinutes = async () => {
      const fires = (await screens.fires(id)).filter(({ state }) => !state.startsWith('skipped'));
      const lines = await screens.log();
      assert.equal(lines.filter(({ word }) => word === 'fired').length, fires.length);
      return fires.map(({ dueAt }) => (dueAt - due) / MINUTE);
    };
    await bench.clock.advance(due - bench.clock.now() + 20 * MINUTE);
    const during = await firedMinutes();
    const waits = (await screens.alarm(id)).includes('an earlier turn still runs');
    const skipped = (await screens.log()).filter(({ word }) => word === 'skipped').length;
    await bench.clock.advance(62 * MINUTE);
    const after = await firedMinutes();
    const said = () => {
      if (during.length === 2) return 'fires';
      if (skipped === 1 && !waits) return 'is recorded as `skipped`';
      assert.deepEqual([during, waits, skipped], [[0], true, 0]);
      const isEach = after.every((minute, n) => minute === n * 15);
      return isEach ? 'waits; all fire in order' : 'waits for the end of the turn; a later one replaces it';
    };
    assert.equal(said(), guideOn(overlap));
    const expected = {
      allow: [0, 15, 30, 45, 60, 75],
      skip: [0, 45],
      buffer_one: [0, 30, 75],
      buffer_all: [0, 15, 30],
    };
    assert.deepEqual(after, expected[overlap]);
  });

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
  assert.ok(waitsForTurn(waiting!));
  assert.equal(viewAlarm(await bench.state(id)).held_back?.reason, 'an earlier turn still runs');
});

test('a turn is seen behind any number of skipped occurrences', async (t) => {
  const bench = await createTurnBench(t, { turnMs: 59 * MINUTE + 30 * SECOND, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '* * * * *', overlap: 'skip' });
  await bench.clock.advance(due - bench.clock.now() + 61 * MINUTE);
  const delivered = (await outcomes(bench, id, due)).filter(([, outcome]) => outcome === 'delivered');
  assert.deepEqual(
    delivered.map(([at]) => at),
    [0, 60],
  );
  assertOneAtATime(bench);
});

test('an occurrence regards a fire that is in delivery, also by another process', async (t) => {
  for (const overlap of ['skip', 'buffer_one'] as const) {
    const bench = await createBench(t, { respond: () => undefined });
    const { id, due } = await bench.set({ kind: 'cron', cron_expr: '0 * * * *', overlap });
    const other = bench.dispatch();
    await bench.clock.advance(due - bench.clock.now() - SECOND);
    await bench.change(id, (state) => triggerAlarm(state, bench.clock.now()).state);
    await bench.clock.advance(20 * SECOND);
    assert.equal(bench.waker.wakes.length, 1, 'the trigger');
    bench.waker.wakes[0]!.answer(DELIVERED);
    await bench.clock.advance(6 * SECOND);
    const found = (await bench.ledger(id)).map(({ outcome }) => outcome);
    if (overlap === 'skip') assert.deepEqual(found, ['delivered', 'skipped']);
    else assert.equal(bench.waker.wakes.length, 2, 'it waits no longer than for the delivery');
    assert.ok(other.inFlight <= 1);
  }
});

test('a backfill and the schedule do not run two turns at once', async (t) => {
  for (const overlap of ['skip', 'buffer_one', 'buffer_all'] as const) {
    const bench = await createTurnBench(t, { turnMs: 3 * MINUTE, config: { tickMs: MINUTE } });
    bench.dispatch();
    const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/2 * * * *', overlap });
    await bench.change(id, (state) => {
      const occurrences = [...occurrencesBetween(state.alarm, due - HOUR, due - 50 * MINUTE)];
      return addBackfill(state, { alarm: state.alarm, occurrences }, bench.clock.now())!.state;
    });
    await bench.clock.advance(HOUR);
    assertOneAtATime(bench);
    const backfilled = turnMinutes(bench, due).filter((at) => at < 0);
    assert.equal(new Set(backfilled).size, 5, overlap);
    assert.equal(backfilled.length, 5, overlap);
  }
});

test('a report whose effect was lost has it when it is repeated, and not after the owner resumed', async (t) => {
  const bench = await createTurnBench(t, { turnMs: 100 * DAY });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '*/5 * * * *', pause_on_failure: true });
  await bench.clock.advance(due - bench.clock.now() + MINUTE);
  const { occurrence } = bench.waker.wakes[0]!.claim;
  const end = { stage: 'turn_finished', outcome: 'failed', error: 'no such file' } as const;
  bench.faults.failing.add('update');
  await assert.rejects(bench.report(occurrence, end), /the disk is full/);
  bench.faults.failing.delete('update');
  assert.equal((await bench.state(id)).alarm.status, 'active');
  await bench.clock.advance(MINUTE);
  // The first report counts, whatever the repetition says.
  await bench.report(occurrence, { ...end, outcome: 'ok', error: null });
  const { alarm } = await bench.state(id);
  assert.match(`${alarm.status} ${alarm.lastError}`, /^paused .*no such file$/);
  await bench.clock.advance(MINUTE);
  await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
  await bench.report(occurrence, end);
  assert.equal((await bench.state(id)).alarm.status, 'active');
});

test('a wait for a turn ends with the alarm, and after a day whatever the target announces', async (t) => {
  const bench = await createTurnBench(t, { turnMs: 1000 * DAY, config: { tickMs: HOUR } });
  const set = (owner: string) =>
    bench.set({ kind: 'cron', cron_expr: '0 0 * * *', jitter_seconds: 0, overlap: 'buffer_all' }, owner);
  const { id, due } = await set('ada');
  const gone = await set('bob');
  await bench.clock.advance(due - bench.clock.now() + MINUTE);
  for (const { claim } of bench.waker.wakes)
    await bench.report(claim.occurrence, { stage: 'turn_waits', retryAt: Date.UTC(9999, 0) });
  await bench.clock.advance(DAY);
  assert.ok(waitsForTurn((await bench.state(id)).occurrences[0]!));
  await bench.change(gone.id, (state) => cancelAlarm(state, bench.clock.now()), 'bob');
  assert.deepEqual((await bench.state(gone.id, 'bob')).occurrences, []);
  await bench.clock.advance(2 * HOUR);
  assert.equal((await bench.ledger(id)).length, 2);
  assert.equal((await bench.ledger(gone.id, 'bob')).length, 1);
});

test('a clock that was set back by a year does not hold a series for a year', async (t) => {
  const bench = await createTurnBench(t, { turnMs: 1000 * DAY, config: { tickMs: MINUTE } });
  const { id, due } = await bench.set({ kind: 'cron', cron_expr: '0 * * * *', overlap: 'buffer_one' });
  await bench.clock.advance(due - bench.clock.now() + MINUTE);
  bench.clock.jump(-365 * DAY);
  await bench.change(id, (state) => edit(state, { cron_expr: '30 * * * *' }, bench.clock.now()));
  await bench.clock.advance(2 * HOUR);
  assert.equal((await bench.ledger(id)).length, 3);
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

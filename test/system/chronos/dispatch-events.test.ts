import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventStateOf, waitingEvents } from '../../../src/chronos/alarm/events.ts';
import { cancelAlarm, pauseAlarm, resumeAlarm, triggerAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import type { Body } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { follow } from '../../../src/chronos/dispatch/chains.ts';
import { wakeBody } from '../../../src/chronos/dispatch/http-waker.ts';
import { recordAlarmEvents } from '../../../src/chronos/dispatch/record-events.ts';
import type { WakeResult, Waker } from '../../../src/chronos/dispatch/waker.ts';
import { recordReports } from '../../../src/chronos/http/turn-report-routes.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock, wait } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { type AlarmEvent, BATCH_MAX_BYTES } from '../../../src/wire/conditions.ts';
import { parseJsonObject } from '../../../src/wire/json.ts';
import type { TurnReport } from '../../../src/wire/turn-report.ts';
import { RAW_WAKE_FIELDS, WAKE_BODY_MAX_BYTES, wakeRequestSchema } from '../../../src/wire/wake.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { BUSY, createBench, DELIVERED, LOST } from './dispatch-bench.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const EVERYTHING = { from: 1, to: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER };

type Bench = Awaited<ReturnType<typeof createBench>>;

const hook = (more: object = {}) => ({ kind: 'event', event: { source: 'webhook', repeat: 'always', ...more } });

/** Events come, and the dispatcher is notified. */
async function arrive({ store, clock, dispatcher }: Bench, alarmId: string, ids: readonly number[], data = '{}') {
  const events = ids.map((n): AlarmEvent => ({ id: `e${n}`, receivedAt: clock.now(), data }));
  const onDue = (dueAt: number) => dispatcher.notifyDue(dueAt);
  const fresh = await recordAlarmEvents({ store, clock, onDue }, 'ada', alarmId, events);
  await clock.advance(0);
  return fresh;
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const idsOf = (bench: Bench) => bench.waker.wakes.map(({ events }) => events?.map(({ id }) => id).join(' '));
const stored = (bench: Bench, id: string) => bench.store.eventsOf('ada', id, EVERYTHING);

test('each event has a wake of its own, in order, and is deleted when it was delivered', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set(hook());
  assert.equal(await arrive(bench, id, [1, 2, 3]), 3);
  assert.equal(await arrive(bench, id, [2, 4]), 1);
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1', 'e2', 'e3', 'e4']);
  assert.equal(new Set(bench.waker.wakes.map(({ claim }) => claim.occurrence.fireId)).size, 4);
  assert.deepEqual(await stored(bench, id), []);
  const { alarm } = await bench.state(id);
  assert.deepEqual([alarm.status, alarm.fireCount, waitingEvents(eventStateOf(alarm))], ['active', 4, 0]);
});

test('collected events come with one wake', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set(hook({ quiet_for: 'PT5S', batch_up_to: 4 }));
  await arrive(bench, id, [1]);
  await bench.clock.advance(4 * SECOND);
  await arrive(bench, id, [2, 3]);
  await bench.clock.advance(4 * SECOND);
  assert.deepEqual(idsOf(bench), []);
  await bench.clock.advance(2 * SECOND);
  assert.deepEqual(idsOf(bench), ['e1 e2 e3']);
  await arrive(bench, id, numbers(4, 9));
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1 e2 e3', 'e4 e5 e6 e7'], 'a full batch does not wait');
  await bench.clock.advance(10 * SECOND);
  assert.deepEqual(idsOf(bench), ['e1 e2 e3', 'e4 e5 e6 e7', 'e8 e9']);
});

test('a batch is cut where it would not fit into a wake, the same at every try', async (t) => {
  const answers: WakeResult[] = [BUSY, LOST];
  const bench = await createBench(t, { respond: () => answers.shift() ?? DELIVERED });
  const { id } = await bench.set(hook({ quiet_for: 'PT1S' }));
  await arrive(bench, id, numbers(1, 5), JSON.stringify('x'.repeat(BATCH_MAX_BYTES / 3)));
  await bench.clock.advance(2 * SECOND);
  await arrive(bench, id, [6]);
  await bench.clock.advance(60 * SECOND);
  await bench.clock.advance(60 * SECOND);
  await bench.clock.advance(10 * SECOND);
  assert.deepEqual(idsOf(bench).slice(0, 3), ['e1 e2', 'e1 e2', 'e1 e2']);
  assert.equal(new Set(bench.waker.wakes.slice(0, 3).map(({ claim }) => claim.occurrence.fireId)).size, 1);
  assert.deepEqual(idsOf(bench).slice(3).join(' '), 'e3 e4 e5 e6');
  assert.deepEqual(await stored(bench, id), []);
});

test('an event that is larger than a wake should be comes alone', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set(hook({ quiet_for: 'PT1S' }));
  await arrive(bench, id, [1, 2], JSON.stringify('x'.repeat(BATCH_MAX_BYTES)));
  await bench.clock.advance(5 * SECOND);
  assert.deepEqual(idsOf(bench), ['e1', 'e2']);
});

test('a deadline wakes without events, a trigger of the owner with none at all', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set(hook({ deadline: 'PT1H' }));
  await bench.clock.advance(HOUR / 2);
  await arrive(bench, id, [1]);
  await bench.clock.advance(HOUR);
  await bench.change(id, (state) => triggerAlarm(state, bench.clock.now()).state);
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1', '', undefined]);
});

test('the events of a wake that is given up are dropped, and the next ones come', async (t) => {
  const gone: WakeResult = { outcome: 'failed', httpStatus: 410, error: 'gone', final: true };
  const bench = await createBench(t, { respond: () => (bench.waker.wakes.length === 1 ? gone : DELIVERED) });
  const { id } = await bench.set(hook());
  await arrive(bench, id, [1, 2]);
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1', 'e2']);
  assert.deepEqual(await stored(bench, id), []);
});

test('the events of a wake that its check refuses are dropped, and the alarm goes on', async (t) => {
  const verdict = { verdict: 'skip', reason: 'nothing new', duration_ms: 3 } as const;
  const skip = { outcome: 'skipped', httpStatus: 200, verdict } as const;
  const bench = await createBench(t, { respond: () => (bench.waker.wakes.length < 3 ? skip : DELIVERED) });
  const { id } = await bench.set({ ...hook({ repeat: 'once' }), check: { path: { path: 'inbox/' } } });
  for (const n of [1, 2, 3]) await arrive(bench, id, [n]);
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1', 'e2', 'e3']);
  assert.deepEqual([await stored(bench, id), (await bench.state(id)).alarm.status], [[], 'fired']);
  assert.deepEqual(
    (await bench.ledger(id)).map(({ outcome }) => outcome),
    ['skipped', 'skipped', 'delivered'],
  );
});

test('a turn that runs keeps events waiting, and they come together after it', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set({ ...hook({ batch_up_to: 10 }), overlap: 'buffer_all' });
  await arrive(bench, id, [1]);
  await bench.clock.advance(SECOND);
  const { fireId, scheduledFor: dueAt } = bench.waker.wakes[0]!.claim.occurrence;
  const nothing = { error: null, retryAt: null, reply: null, turnId: null, conversationId: null };
  const sink = { ...bench, onDue: (at: number) => bench.dispatcher.notifyDue(at) };
  const report = (stage: 'turn_started' | 'turn_finished') =>
    recordReports(sink, { owner: 'ada', alarmId: id, fireId, dueAt }, [
      { stage, at: bench.clock.now(), outcome: stage === 'turn_finished' ? 'ok' : null, ...nothing },
    ]);
  await report('turn_started');
  for (const n of [2, 3]) await arrive(bench, id, [n]);
  await bench.clock.advance(60 * SECOND);
  await arrive(bench, id, [4]);
  assert.deepEqual(idsOf(bench), ['e1']);
  await report('turn_finished');
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1', 'e2 e3 e4']);
});

test('a process that dies during a wake leaves its events to the next, under the same fire id', async (t) => {
  const bench = await createBench(t, { respond: () => (bench.waker.wakes.length < 3 ? undefined : DELIVERED) });
  const { id } = await bench.set(hook({ quiet_for: 'PT1S' }));
  await arrive(bench, id, [1, 2]);
  await bench.clock.advance(2 * SECOND);
  for (let death = 0; death < 2; death++) {
    assert.equal(await bench.store.endOrphanedClaims(bench.clock.now()), 1);
    await arrive(bench, id, [3 + death]);
    await bench.clock.advance(SECOND);
  }
  await bench.clock.advance(2 * SECOND);
  assert.deepEqual(idsOf(bench), ['e1 e2', 'e1 e2', 'e1 e2', 'e3 e4']);
  const [one, two, three] = bench.waker.wakes.map(({ claim }) => claim.occurrence.fireId);
  assert.ok(one === two && two === three);
});

test('the outcome of a lost claim drops no event', async (t) => {
  const bench = await createBench(t, { respond: () => undefined });
  const { id } = await bench.set(hook());
  await arrive(bench, id, [1]);
  const [first] = bench.waker.wakes;
  await bench.store.endOrphanedClaims(bench.clock.now());
  first!.answer(DELIVERED);
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1', 'e1']);
  assert.equal((await stored(bench, id)).length, 1);
  bench.waker.wakes[1]!.answer(DELIVERED);
  await bench.clock.advance(SECOND);
  assert.deepEqual(await stored(bench, id), []);
});

test('a store that fails at any step loses no event and sends none twice', async (t) => {
  for (const step of [
    'claim',
    'eventsOf',
    'update',
    'complete',
    'dropEvents',
  ] as const satisfies (keyof AlarmStore)[]) {
    const bench = await createBench(t);
    const { id } = await bench.set(hook({ quiet_for: 'PT1S' }));
    bench.faults.failing.add(step);
    await arrive(bench, id, [1, 2, 3], JSON.stringify('x'.repeat(BATCH_MAX_BYTES / 3)));
    await bench.clock.advance(3 * SECOND);
    bench.faults.failing.clear();
    await arrive(bench, id, [4]);
    for (let round = 0; round < 3; round++) await bench.clock.advance(10 * SECOND);
    assert.equal(idsOf(bench).join(' '), 'e1 e2 e3 e4', step);
    assert.deepEqual(await stored(bench, id), [], step);
  }
});

test('a pause keeps events, a cancellation ends them', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set(hook({ quiet_for: 'PT1S' }));
  await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
  await arrive(bench, id, [1, 2]);
  await bench.clock.advance(HOUR);
  assert.deepEqual(idsOf(bench), []);
  await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
  await bench.clock.advance(SECOND);
  assert.deepEqual(idsOf(bench), ['e1 e2']);
  await arrive(bench, id, [3]);
  await bench.change(id, (state) => cancelAlarm(state, bench.clock.now()));
  await bench.clock.advance(HOUR);
  assert.equal(idsOf(bench).length, 1);
  await assert.rejects(arrive(bench, id, [4]), { code: 'conflict' });
});

test('the body has events digit for digit beside the payload, and the largest one fits', async (t) => {
  const bench = await createBench(t);
  const data = '{"n": 1.50, "big":12345678901234567890.10}';
  await bench.set({ kind: 'once', delay_seconds: 1, payload: '{"mine":1.0}' });
  await bench.clock.advance(2 * SECOND);
  const [{ claim }] = bench.waker.wakes as [Bench['waker']['wakes'][number]];
  const event: AlarmEvent = { id: 'a"b', receivedAt: Date.UTC(2026, 5, 15), data };
  const body = wakeBody(claim, undefined, [event, event]);
  const one = `{"id":"a\\"b","received_at":"2026-06-15T00:00:00.000Z","data":${data}}`;
  assert.ok(body.endsWith(`,"payload":{"events":[${one},${one}],"payload":{"mine":1.0}}}`), body);
  assert.ok(wakeBody(claim, undefined, []).endsWith(',"payload":{"events":[],"payload":{"mine":1.0}}}'));
  assert.ok(wakeBody(claim).endsWith(',"payload":{"mine":1.0}}'));
  assert.ok(wakeRequestSchema.safeParse(parseJsonObject(body, RAW_WAKE_FIELDS)).success);

  const alarm = { ...claim.alarm, wakeMessage: '\u0001'.repeat(32 * 1024), payload: `"${'p'.repeat(65_534)}"` };
  const largest: AlarmEvent = { ...event, id: '"'.repeat(1024), data: `"${'x'.repeat(BATCH_MAX_BYTES - 2)}"` };
  const bytes = Buffer.byteLength(wakeBody({ ...claim, alarm }, undefined, [largest]));
  assert.ok(bytes <= WAKE_BODY_MAX_BYTES, `${bytes} bytes`);
});

test('an event reaches its wake, and the end of a turn that of the next link, long before a tick', async (t) => {
  const real = systemClock;
  const store = openSqliteStore({ path: `${temporaryFolder(t)}/chronos.db`, clock: real, log: silentLogger });
  const bench = await createBench(t, { idle: true });
  const latencies: Record<string, number[]> = { event: [], link: [] };
  const onDue = (dueAt: number) => dispatcher.notifyDue(dueAt);
  const waker: Waker = {
    async wake({ alarm, occurrence }, _, events = []) {
      for (const { receivedAt } of events)
        latencies[alarm.id === first ? 'event' : 'link']!.push(real.now() - receivedAt);
      if (alarm.id !== first) return DELIVERED;
      const { fireId, scheduledFor: dueAt } = occurrence;
      const nothing = { error: null, retryAt: null, reply: 'done', turnId: null, conversationId: null };
      const report: TurnReport = { stage: 'turn_finished', at: real.now(), outcome: 'ok', ...nothing };
      // The turn ends after its wake was accepted.
      setImmediate(() => {
        void recordReports({ store, clock: real, onDue }, { owner: 'ada', alarmId: first, fireId, dueAt }, [report]);
      });
      return DELIVERED;
    },
    close: async () => {},
  };
  const dispatcher = bench.dispatch({ store, waker, clock: real });
  const create = async (body: Body) => {
    const { alarm, occurrences } = await bench.state((await bench.set(body)).id);
    await store.create({ alarm, occurrence: occurrences[0]! }, { maxActive: 10 });
    return alarm;
  };
  const { id: first } = await create(hook({ batch_up_to: 1 }));
  const follower = await create({ kind: 'event', after: { alarm: first } });
  await follow({ store, clock: real }, follower);
  for (let n = 0; n < 200; n++) {
    const event: AlarmEvent = { id: `e${n}`, receivedAt: real.now(), data: '{}' };
    await recordAlarmEvents({ store, clock: real, onDue }, 'ada', first, [event]);
    await wait(real, 10);
  }
  for (let round = 0; round < 100 && latencies.link!.length < 200; round++) await wait(real, 20);
  await dispatcher.drain(1000);
  await store.close();
  for (const [name, measured] of Object.entries(latencies)) {
    assert.equal(measured.length, 200, name);
    measured.sort((one, other) => one - other);
    const [median, p99] = [measured[99]!, measured[197]!];
    t.diagnostic(`${name}: median ${median} ms, p99 ${p99} ms`);
    // On an idle computer the p99 is below 20 ms. Other tests run beside this one, so the limit is half a tick.
    assert.ok(median <= 500, `${name}: median ${median} ms`);
  }
});

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventStateOf } from '../../../src/chronos/alarm/events.ts';
import { cancelAlarm, pauseAlarm, resumeAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import type { DispatcherOptions, FireReport } from '../../../src/chronos/dispatch/dispatcher.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { LookAnswer, LookRequest } from '../../../src/wire/look.ts';
import { createBench } from './dispatch-bench.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const file = (more: object = {}) => ({
  kind: 'event',
  event: { source: 'file', path: 'inbox', repeat: 'always', ...more },
});

/** A dispatcher whose looks are answered by the test; without an answer, nothing is new. */
async function createLooks(
  t: TestContext,
  answers: (Partial<LookAnswer> | Error | Promise<never>)[] = [],
  more: Partial<DispatcherOptions> = {},
) {
  const bench = await createBench(t, { idle: true });
  const looks: { at: number; request: LookRequest }[] = [];
  const fires: FireReport[] = [];
  const looker = {
    async look(request: LookRequest): Promise<LookAnswer> {
      looks.push({ at: bench.clock.now(), request });
      const answer = (await answers.shift()) ?? {};
      if (answer instanceof Error) throw answer;
      return { events: [], seen: request.seen ?? 'nothing', ...answer };
    },
    close: async () => {},
  };
  bench.dispatch({ looker, onFire: (report) => fires.push(report), ...more });
  const began = bench.clock.now();
  return {
    ...{ bench, looks, fires, answers },
    times: () => looks.map(({ at }) => (at - began) / SECOND),
    idsOfWakes: () => bench.waker.wakes.map(({ events }) => events?.map(({ id }) => id).join(' ')),
    seen: async (id: string) => eventStateOf((await bench.state(id)).alarm),
  };
}

const event = (id: string, data: object = {}) => ({ id, data: JSON.stringify(data) });
const down = () => new ReveilleError('unavailable', 'the router is down');

test('a look follows the other, is in no ledger, and wakes only with an event', async (t) => {
  const { bench, times, looks, fires, answers, idsOfWakes, seen } = await createLooks(t);
  const { id } = await bench.set(file());
  await bench.clock.advance(11 * SECOND);
  assert.deepEqual(times(), [5, 10]);
  assert.deepEqual([fires, await bench.ledger(id), bench.waker.wakes], [[], [], []]);
  answers.push({ events: [event('a'), event('b')], seen: 'one' }, { events: [event('b'), event('c')], seen: 'two' });
  await bench.clock.advance(10 * SECOND);
  assert.deepEqual(idsOfWakes(), ['a', 'b', 'c'], 'b is known');
  assert.deepEqual(
    looks.map(({ request }) => request.seen),
    [undefined, 'nothing', 'nothing', 'one'],
  );
  assert.equal((await seen(id)).seen, 'two');
  assert.equal((await bench.ledger(id)).length, 3);
  assert.deepEqual(looks[0]!.request, { user_id: 'ada', alarm_id: id, event: file().event });
});

test('the rest of a long look follows in a second, and a source may ask for more time', async (t) => {
  const { bench, times } = await createLooks(t, [
    { events: [event('a')], more: true },
    { events: [event('b')], more: true },
    { wait_ms: 30_000 },
    { wait_ms: 1000 },
  ]);
  await bench.set(file({ look_every: 'PT10S' }));
  await bench.clock.advance(65 * SECOND);
  assert.deepEqual(
    times().map((at) => Math.round(at)),
    [10, 11, 12, 42, 52, 62],
  );
});

/** Answers of a source that always has more. */
function flood(answers: number, events: number, bytes: number): Partial<LookAnswer>[] {
  return Array.from({ length: answers }, (_, n) => ({
    events: Array.from({ length: events }, (_, one) => event(`e${n}.${one}`, { text: 'x'.repeat(bytes) })),
    ...{ more: true, seen: `${n}` },
  }));
}

test('a source that always has more is looked at once a second', async (t) => {
  const { bench, looks } = await createLooks(t, flood(100, 10, 10));
  await bench.set(file({ look_every: 'PT1S', quiet_for: 'PT1H' }));
  await bench.clock.advance(60 * SECOND);
  assert.ok(looks.length >= 59 && looks.length <= 61, `${looks.length} looks`);
});

test('the events of a source take up no more than their owner may store', async (t) => {
  const maxBytes = 1024 * 1024;
  const { bench, looks } = await createLooks(t, flood(60, 50, 5000), { eventLimits: async () => ({ maxBytes }) });
  const { id } = await bench.set(file({ look_every: 'PT1S', quiet_for: 'PT1H' }));
  await bench.clock.advance(60 * SECOND);
  const { bytes } = eventStateOf((await bench.state(id)).alarm);
  assert.ok(bytes > maxBytes / 2 && bytes <= maxBytes, `${bytes} bytes wait`);
  assert.ok(looks.length < 10, 'it is looked at again in an hour');
});

test('failed looks become rarer, are shown after a while, and no longer when one succeeds', async (t) => {
  const { bench, times, answers } = await createLooks(t, Array.from({ length: 12 }, down));
  const { id } = await bench.set(file({ look_every: 'PT10S' }));
  await bench.clock.advance(25 * SECOND);
  assert.equal((await bench.state(id)).alarm.lastError, null, 'one failure is none');
  await bench.clock.advance(3 * 3600 * SECOND);
  const gaps = times().map((at, index) => Math.round(at - (times()[index - 1] ?? 0)));
  assert.deepEqual(gaps.slice(0, 14), [10, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900, 900, 10]);
  assert.equal(answers.length, 0);
  const { alarm } = await bench.state(id);
  assert.deepEqual([alarm.lastError, alarm.failureCount, alarm.status], [null, 0, 'active']);
  answers.push(down(), down(), down());
  await bench.clock.advance(50 * SECOND);
  const shown = (await bench.state(id)).alarm;
  assert.equal(shown.lastError, 'its source could not be looked at: the router is down');
  assert.deepEqual([shown.failureCount, await bench.ledger(id)], [0, []]);
});

test('a source that has ended ends its alarm, with its last event or without one', async (t) => {
  const { bench, looks, answers, idsOfWakes } = await createLooks(t, [{ events: [event('exit')], ends: true }]);
  const { id } = await bench.set({ kind: 'event', event: { source: 'process', pid: 30, repeat: 'always' } });
  await bench.clock.advance(MINUTE);
  assert.deepEqual([idsOfWakes(), looks.length], [['exit'], 1]);
  assert.equal((await bench.state(id)).alarm.status, 'fired');
  answers.push({ events: [event('exit', { code: 1 })], ends: true });
  const filter = { pointer: '/code', equals: 0 };
  const other = await bench.set({ kind: 'event', event: { source: 'process', pid: 31, filter } });
  await bench.clock.advance(MINUTE);
  assert.deepEqual([idsOfWakes(), (await bench.state(other.id)).alarm.status], [['exit'], 'fired']);
});

test('a deadline between looks fires and says that nothing came; an event moves it', async (t) => {
  const { bench, answers, idsOfWakes, times } = await createLooks(t);
  const { id } = await bench.set(file({ deadline: 'PT12S' }));
  await bench.clock.advance(12_500);
  assert.deepEqual(idsOfWakes(), ['']);
  assert.deepEqual(times(), [5, 10]);
  answers.push({ events: [event('a')] });
  await bench.clock.advance(10 * SECOND);
  assert.deepEqual(idsOfWakes(), ['', 'a']);
  await bench.clock.advance(12 * SECOND);
  assert.equal(idsOfWakes().length, 3);
  assert.equal((await bench.state(id)).alarm.status, 'active');
});

test('a paused alarm is not looked at, and goes on from what it had seen', async (t) => {
  const { bench, looks } = await createLooks(t, [{ seen: 'one' }]);
  const { id } = await bench.set(file());
  await bench.clock.advance(6 * SECOND);
  await bench.change(id, (state) => pauseAlarm(state, bench.clock.now()));
  await bench.clock.advance(MINUTE);
  assert.equal(looks.length, 1);
  await bench.change(id, (state) => resumeAlarm(state, bench.clock.now()));
  await bench.clock.advance(6 * SECOND);
  assert.deepEqual([looks.length, looks[1]!.request.seen], [2, 'one']);
  await bench.change(id, (state) => cancelAlarm(state, bench.clock.now()));
  await bench.clock.advance(MINUTE);
  assert.equal(looks.length, 2);
});

test('a look that a kill interrupts is repeated, and is no attempt', async (t) => {
  const bench = await createBench(t, { idle: true });
  const { id } = await bench.set(file());
  await bench.clock.advance(6 * SECOND);
  const now = bench.clock.now();
  const request = { now, limit: 10, perOwner: 4, inFlight: new Map() };
  assert.equal((await bench.store.claim(request)).length, 1);
  assert.equal(await bench.store.endOrphanedClaims(now), 1);
  assert.deepEqual(await bench.ledger(id), []);
  const { alarm, occurrences } = await bench.state(id);
  assert.deepEqual([alarm.failureCount, alarm.lastError, occurrences[0]!.attempt], [0, null, 0]);
  assert.equal((await bench.store.claim(request)).length, 1);
});

test('without a looker the looks fail, and the alarm says so', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set(file({ look_every: 'PT1S' }));
  await bench.clock.advance(20 * SECOND);
  assert.match((await bench.state(id)).alarm.lastError ?? '', /no router is known/);
});

test('looks that hang do not keep the wakes of their owner waiting', async (t) => {
  const { bench, answers, looks } = await createLooks(t);
  const hanging = Promise.withResolvers<never>();
  answers.push(...Array.from({ length: 8 }, () => hanging.promise));
  for (let n = 0; n < 8; n++) await bench.set(file());
  const { due } = await bench.set({ kind: 'once', wake_message: 'now', delay_seconds: 6 });
  await bench.clock.advance(8 * SECOND);
  assert.ok(bench.waker.wakes[0]!.at - due <= 1000);
  assert.equal(looks.length, 8, 'four of an owner at a time, and then the others');
  hanging.reject(new Error('it took too long'));
});

test('many looks do not keep due alarms waiting', async (t) => {
  const { bench, looks } = await createLooks(t);
  for (let n = 0; n < 200; n++) await bench.set(file({ look_every: 'PT1S' }), `owner-${n % 50}`, { silent: true });
  const { due } = await bench.set({ kind: 'once', wake_message: 'now', delay_seconds: 3 });
  await bench.clock.advance(6 * SECOND);
  const wake = bench.waker.wakes[0]!;
  assert.ok(wake.at - due <= 50, String(wake.at - due));
  assert.ok(looks.length >= 800, String(looks.length));
});

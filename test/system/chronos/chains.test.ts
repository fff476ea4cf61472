import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { FOLLOWERS_MAX, followersOf } from '../../../src/chronos/alarm/chain.ts';
import { Dispatcher } from '../../../src/chronos/dispatch/dispatcher.ts';
import type { WakeOutcome, WakeResult } from '../../../src/chronos/dispatch/waker.ts';
import { recordReports } from '../../../src/chronos/http/turn-report-routes.ts';
import type { AlarmStore, Claim } from '../../../src/chronos/store/store.ts';
import { settle } from '../../../src/kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { partsOfFireId } from '../../../src/wire/fire-id.ts';
import type { TurnOutcome, TurnReport } from '../../../src/wire/turn-report.ts';
import { BUSY, DELIVERED, FaultyStore, HandWaker } from './dispatch-bench.ts';
import { createHttpBench, refused } from './http-bench.ts';

const GONE: WakeResult = { outcome: 'failed', httpStatus: 410, error: 'gone', final: true };
const NOBODY = '01977777-0000-7000-8000-00000000dead';
const DAY = 86_400;

type Options = {
  respond?: (claim: Claim) => WakeOutcome | undefined;
  onCall?: (name: keyof AlarmStore, store: AlarmStore) => void;
};

/** chronosd's service and dispatcher over one store, with a waker and machines that the test controls. */
async function chainBench(t: TestContext, { respond = () => DELIVERED }: Options = {}) {
  let faults!: FaultyStore;
  // Hooks run in their order: the dispatcher ends before its store is closed.
  let stop = async () => {};
  t.after(() => stop());
  const bench = await createHttpBench(t, {
    onDue: (dueAt) => dispatcher?.notifyDue(dueAt),
    storeAround(store) {
      faults = new FaultyStore(store);
      return faults.store;
    },
  });
  const { clock, store } = bench;
  const waker = new HandWaker(clock, respond);
  const config = { concurrency: 256, userConcurrency: 64, tickMs: 1000 };
  const dispatcher = new Dispatcher({ ...{ store, waker, clock, config }, log: silentLogger, random: () => 0 });
  dispatcher.start();
  stop = async () => {
    await waker.close();
    let drained = false;
    const done = dispatcher.drain(0).then(() => {
      drained = true;
    });
    while (!drained) await clock.advance(50);
    await done;
  };
  const ada = await bench.agent('ada');
  const sink = { store, clock, onDue: (dueAt: number) => dispatcher.notifyDue(dueAt) };
  const get = async (id: string) => (await store.get('ada', id))!;
  const fireOf = (id: string) => waker.wakes.findLast(({ claim }) => claim.alarm.id === id)!.claim.occurrence.fireId;
  const pass = async (seconds: number) => {
    await clock.advance(seconds * 1000);
    // Outcomes are stored a moment later, and passed on after that.
    for (let round = 0; round < 3; round++) {
      await settle();
      await clock.advance(20);
    }
    await settle();
  };
  return {
    ...{ ...bench, ada, waker, faults, get, fireOf, pass, sink, dispatcher },
    /** The machine reports the end of the latest turn of an alarm. */
    async finish(id: string, outcome: TurnOutcome = 'ok', more: Partial<TurnReport> = {}, fireId = fireOf(id)) {
      const report: TurnReport = {
        ...{ stage: 'turn_finished', at: clock.now(), outcome, error: null, retryAt: null, reply: null },
        ...{ turnId: null, conversationId: null },
        ...more,
      };
      const { alarmId, dueEpochMs: dueAt } = partsOfFireId(fireId);
      const fresh = await recordReports(sink, { owner: 'ada', alarmId, fireId, dueAt }, [report]);
      await pass(0.05);
      return fresh;
    },
    /** What the wakes of an alarm carried, in order. */
    carried: (id: string) =>
      waker.wakes.flatMap(({ claim, events }) =>
        claim.alarm.id === id ? [events?.map(({ data }) => JSON.parse(data))] : [],
      ),
  };
}

const after = (alarm: string, more: object = {}) => ({
  kind: 'event',
  delay_seconds: undefined,
  after: { alarm, ...more },
});

test('three alarms follow one another, each turn after the one before, and end with it', async (t) => {
  const { ada, finish, carried, fireOf, get, pass } = await chainBench(t);
  const first = await ada.set({ delay_seconds: 60, label: 'fetch' });
  const second = await ada.set(after(first));
  const third = await ada.set(after(second));
  await pass(60);
  assert.deepEqual(carried(second), [], 'the delivery is not the turn');
  await finish(first, 'ok', { reply: 'got 3 files' });
  const told = { alarm_id: first, label: 'fetch', fire_id: fireOf(first), outcome: 'finished', reply: 'got 3 files' };
  assert.deepEqual(carried(second), [[told]]);
  assert.deepEqual(carried(third), []);
  await finish(second);
  assert.deepEqual(carried(third), [[{ alarm_id: second, fire_id: fireOf(second), outcome: 'finished' }]]);
  for (const id of [first, second, third]) assert.equal((await get(id)).alarm.status, 'fired');
});

test('a delay counts from the end of the turn', async (t) => {
  const { ada, finish, carried, pass } = await chainBench(t);
  const first = await ada.set({ delay_seconds: 60 });
  const second = await ada.set(after(first, { delay_seconds: 30 }));
  await pass(60);
  await finish(first);
  await pass(29);
  assert.equal(carried(second).length, 0);
  await pass(1);
  assert.equal(carried(second).length, 1);
});

test('each follower waits for its outcome', async (t) => {
  const ons = ['finished', 'failed', 'missed', 'any'] as const;
  const wakes: Record<TurnOutcome, string[]> = { ok: ['finished', 'any'], failed: ['failed', 'any'], unknown: ['any'] };
  const { ada, finish, carried, pass } = await chainBench(t);
  for (const outcome of ['ok', 'failed', 'unknown'] as const) {
    const first = await ada.set({ delay_seconds: 60 });
    const followers = await Promise.all(ons.map((on) => ada.set(after(first, { on }))));
    await pass(60);
    await finish(first, outcome, { error: outcome === 'ok' ? null : 'out of tokens' });
    const woken = ons.filter((_, index) => carried(followers[index]!).length > 0);
    assert.deepEqual(woken, wakes[outcome], outcome);
  }
});

test('a fire that is given up or missed is passed on', async (t) => {
  let answer: WakeResult = GONE;
  const { ada, carried, get, pass, dispatcher } = await chainBench(t, {
    respond: ({ alarm }) => (alarm.kind === 'event' ? DELIVERED : answer),
  });
  const gone = await ada.set({ delay_seconds: 60 });
  const [failed, finished] = [await ada.set(after(gone, { on: 'failed' })), await ada.set(after(gone))];
  await pass(60);
  assert.deepEqual(
    carried(failed).map((events) => events![0].outcome + events![0].error),
    ['failedgone'],
  );
  assert.deepEqual([(await get(failed)).alarm.status, (await get(finished)).alarm.status], ['fired', 'active']);

  answer = BUSY;
  const tried = await ada.set({ delay_seconds: 60, max_failures: 2 });
  const follower = await ada.set(after(tried, { on: 'any' }));
  await pass(60);
  assert.equal(carried(follower).length, 0, 'it is tried again');
  await pass(60);
  assert.deepEqual(
    carried(follower).map((events) => events![0].outcome),
    ['failed'],
  );

  answer = { outcome: 'held', until: 0, reason: 'quiet hours' } as unknown as WakeResult;
  const late = await ada.set({ delay_seconds: 60, max_lateness_seconds: 10 });
  const missed = await ada.set(after(late, { on: 'missed' }));
  await pass(60);
  await pass(1000);
  assert.deepEqual(
    carried(missed).map((events) => events![0].outcome),
    ['missed'],
  );
  assert.equal(dispatcher.inFlight, 0);
});

test('a fire whose last try died with its process is passed on, and not tried again', async (t) => {
  const { ada, carried, get, pass, store, clock, waker } = await chainBench(t, {
    respond: ({ alarm }) => (alarm.kind === 'event' ? DELIVERED : undefined),
  });
  const first = await ada.set({ delay_seconds: 60, max_failures: 1 });
  const second = await ada.set(after(first, { on: 'failed' }));
  await pass(60);
  assert.equal(await store.endOrphanedClaims(clock.now()), 1);
  await pass(1);
  assert.match(carried(second)[0]![0].error, /^the process that made this attempt stopped/);
  assert.equal(waker.wakes.filter(({ claim }) => claim.alarm.id === first).length, 1);
  assert.deepEqual([(await get(first)).alarm.status, (await get(second)).alarm.status], ['failed', 'fired']);
});

test('a failed alarm that is redriven goes on with its chain', async (t) => {
  let answer: WakeResult = GONE;
  const { ada, carried, finish, get, pass } = await chainBench(t, {
    respond: ({ alarm }) => (alarm.kind === 'event' ? DELIVERED : answer),
  });
  const first = await ada.set({ delay_seconds: 60 });
  const second = await ada.set(after(first));
  await pass(60);
  assert.equal((await get(first)).alarm.status, 'failed');
  answer = DELIVERED;
  await ada.call('POST', `/v1/alarms/${first}/redrive`);
  await pass(1);
  await finish(first);
  assert.equal(carried(second).length, 1);
  assert.equal((await get(second)).alarm.status, 'fired');
});

test('a chain of a series goes on with it, and ends with its last turn', async (t) => {
  const { ada, carried, finish, get, pass } = await chainBench(t);
  const series = await ada.set({ kind: 'cron', delay_seconds: undefined, cron_expr: '@every 60s', max_fires: 2 });
  const follower = await ada.set(after(series, { on: 'any' }));
  await pass(60);
  await finish(series);
  assert.deepEqual([carried(follower).length, (await get(follower)).alarm.status], [1, 'active']);
  await pass(60);
  await finish(series, 'failed');
  assert.deepEqual([carried(follower).length, (await get(follower)).alarm.status], [2, 'fired']);
});

test('a chain whose alarm is cancelled ends, but not before a turn that still runs', async (t) => {
  const { ada, carried, finish, get, pass } = await chainBench(t);
  const idle = await ada.set();
  const waiting = await ada.set(after(idle));
  await ada.call('DELETE', `/v1/alarms/${idle}`);
  assert.equal((await get(waiting)).alarm.status, 'fired');

  const series = await ada.set({ kind: 'cron', delay_seconds: undefined, cron_expr: '@every 60s' });
  const follower = await ada.set(after(series));
  await pass(60);
  await ada.call('DELETE', `/v1/alarms/${series}`);
  assert.equal((await get(follower)).alarm.status, 'active');
  await finish(series);
  assert.deepEqual([carried(follower).length, (await get(follower)).alarm.status], [1, 'fired']);
});

test('a report that was recorded, but not passed on, is passed on when it is repeated, once', async (t) => {
  const { ada, carried, finish, faults, pass, fireOf } = await chainBench(t);
  const first = await ada.set({ delay_seconds: 60 });
  const second = await ada.set(after(first, { on: 'any' }));
  await pass(60);
  faults.failing.add('recordEvents');
  await assert.rejects(finish(first, 'ok', { reply: 'one' }), { code: 'unavailable' });
  faults.failing.clear();
  for (let time = 0; time < 3; time++) await finish(first, 'failed', { reply: 'another' });
  assert.deepEqual(carried(second), [[{ alarm_id: first, fire_id: fireOf(first), outcome: 'finished', reply: 'one' }]]);
});

test('a turn that ends while its follower is being stored wakes it', async (t) => {
  const { ada, carried, finish, faults, get, pass } = await chainBench(t);
  const first = await ada.set({ delay_seconds: 60 });
  await pass(60);
  let ended: Promise<unknown> | undefined;
  faults.onCall = (name) => {
    if (name === 'create') ended ??= finish(first);
  };
  const second = await ada.set(after(first));
  await ended;
  await pass(1);
  assert.deepEqual([carried(second).length, (await get(second)).alarm.status], [1, 'fired']);
});

test('an alarm that has ended, another owner’s, and a missing one cannot be followed', async (t) => {
  const { ada, agent, finish, pass } = await chainBench(t);
  const bob = await agent('bob');
  const missing = 'after.alarm: you have no alarm with this id; alarm_list shows the ones you have';
  const create = (body: object) => ada.call('POST', '/v1/alarms', { body: { wake_message: 'x', ...body } });
  refused(await create({ after: { alarm: NOBODY } }), 404, 'not_found', missing);
  refused(await create({ after: { alarm: await bob.set() } }), 404, 'not_found', missing);
  const event = { event: { source: 'alarm', alarm: NOBODY } };
  refused(await create(event), 404, 'not_found', missing.replace('after', 'event'));
  const first = await ada.set({ delay_seconds: 60 });
  await pass(60);
  const running = await create({ after: { alarm: first } });
  assert.equal(running.status, 200, 'its turn still runs');
  await finish(first);
  const ended = `after.alarm: alarm ${first} has fired, and its turn has ended, so nothing would follow it`;
  refused(await create({ after: { alarm: first } }), 409, 'conflict', ended);
  const cancelled = await ada.set();
  await ada.call('DELETE', `/v1/alarms/${cancelled}`);
  refused(await create({ after: { alarm: cancelled } }), 409, 'conflict', /is cancelled, so nothing would follow it$/);
});

test('a circle is refused and named, and leaves nothing behind', async (t) => {
  const { ada, get } = await chainBench(t);
  const root = await ada.set();
  const one = await ada.set(after(root));
  const two = await ada.set(after(one));
  const three = await ada.set(after(two));
  const edit = (id: string, alarm: string) => ada.call('PATCH', `/v1/alarms/${id}`, { body: { after: { alarm } } });
  const circle = (...ids: string[]) => `alarms cannot wait for each other in a circle: ${ids.join(' after ')}`;
  refused(await edit(one, three), 400, 'invalid_request', circle(one, three, two, one));
  refused(await edit(one, one), 400, 'invalid_request', circle(one, one));
  assert.deepEqual(followersOf((await get(three)).alarm), []);
  assert.equal((await edit(three, root)).status, 200);
  assert.deepEqual(followersOf((await get(two)).alarm), []);
  assert.deepEqual(followersOf((await get(root)).alarm), [one, three]);
});

test('two edits at once cannot close a circle', async (t) => {
  const { ada } = await chainBench(t);
  const root = await ada.set();
  for (let round = 0; round < 5; round++) {
    const [one, two] = [await ada.set(after(root)), await ada.set(after(root))];
    const edit = (id: string, alarm: string) => ada.call('PATCH', `/v1/alarms/${id}`, { body: { after: { alarm } } });
    const answers = await Promise.all([edit(one, two), edit(two, one)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  }
});

test('at most a hundred alarms wait for one; ended ones do not count', async (t) => {
  const { ada } = await chainBench(t);
  const first = await ada.set();
  const followers = [];
  for (let n = 0; n < FOLLOWERS_MAX; n++) followers.push(await ada.set(after(first)));
  const create = () => ada.call('POST', '/v1/alarms', { body: { wake_message: 'x', after: { alarm: first } } });
  refused(await create(), 409, 'conflict', `100 alarms wait for alarm ${first} already; cancel some of them`);
  await ada.call('DELETE', `/v1/alarms/${followers[7]}`);
  assert.equal((await create()).status, 200);
});

test('a repeated create with a key finds its alarm, also after the followed one has ended', async (t) => {
  const { ada, finish, get, pass } = await chainBench(t);
  const first = await ada.set({ delay_seconds: 60 });
  const create = () =>
    ada.call('POST', '/v1/alarms', { body: { wake_message: 'x', after: { alarm: first }, idempotency_key: 'next' } });
  const { id } = (await create()).data;
  const again = await create();
  assert.deepEqual([again.data.id, again.data.deduped], [id, true]);
  assert.deepEqual(followersOf((await get(first)).alarm), [id]);
  await pass(60);
  await finish(first);
  assert.deepEqual((await create()).data.id, id);
});

test('event.source "alarm" is the same, once or with a filter', async (t) => {
  const { ada, carried, finish, get, pass } = await chainBench(t);
  const series = await ada.set({ kind: 'cron', delay_seconds: undefined, cron_expr: '@every 60s' });
  const event = { source: 'alarm', alarm: series, on: 'any' };
  const once = await ada.set({ kind: 'event', delay_seconds: undefined, event });
  const filter = { pointer: '/reply', equals: 'found' };
  const found = await ada.set({
    kind: 'event',
    delay_seconds: undefined,
    event: { ...event, repeat: 'always', filter },
  });
  for (const reply of ['nothing', 'found', 'found']) {
    await pass(60);
    await finish(series, 'ok', { reply });
  }
  assert.deepEqual([carried(once).length, (await get(once)).alarm.status], [1, 'fired']);
  assert.deepEqual(
    carried(found).map((events) => events![0].reply),
    ['found', 'found'],
  );
});

test('the absence of a turn wakes, and says that nothing came', async (t) => {
  const { ada, carried, finish, get, pass } = await chainBench(t);
  const series = await ada.set({ kind: 'cron', delay_seconds: undefined, cron_expr: '@every 3600s' });
  const expect = { every: 'PT1H', grace: 'PT10M' };
  const watch = await ada.set({ ...after(series), expect });
  for (let hour = 0; hour < 3; hour++) {
    await pass(3600);
    await finish(series);
  }
  assert.deepEqual(carried(watch), []);
  await pass(3600);
  await finish(series, 'failed');
  assert.deepEqual(carried(watch), []);
  await pass(600);
  assert.deepEqual(carried(watch), [[]]);
  await pass(4200);
  assert.deepEqual([carried(watch), (await get(watch)).alarm.status], [[[], []], 'active']);
});

test('what was expected of an alarm that has failed is absent once', async (t) => {
  const { ada, carried, get, pass, finish } = await chainBench(t);
  const first = await ada.set({ delay_seconds: 60 });
  const watch = await ada.set({ ...after(first), expect: { every: 'P1D' } });
  const met = await ada.set({ delay_seconds: 60 });
  const content = await ada.set({ ...after(met), expect: { every: 'P1D' } });
  await pass(60);
  await finish(met);
  assert.equal((await get(content)).alarm.status, 'fired');
  await finish(first, 'failed');
  await pass(DAY);
  assert.deepEqual([carried(watch), carried(content)], [[[]], []]);
});

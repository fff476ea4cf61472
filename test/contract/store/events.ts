import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import { draftAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import {
  afterEventFire,
  EVENTS_WAITING_MAX,
  eventStateOf,
  eventsOfFire,
  isEventFire,
  waitingEvents,
  withEvents,
} from '../../../src/chronos/alarm/events.ts';
import { TIMELESS_EVENT, UNNAMED_EVENT } from '../../../src/chronos/alarm/hook.ts';
import { KNOWN_EVENTS } from '../../../src/chronos/store/event-rows.ts';
import type { AlarmStore, EventArrival } from '../../../src/chronos/store/store.ts';
import type { AlarmCreate } from '../../../src/wire/alarm.ts';
import type { AlarmEvent, EventSource } from '../../../src/wire/conditions.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { ADA, attemptOf, BOB, cancelled, claim, create, edited, keyOf, NOW, newId, withCode } from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

const LIMITS = { minIntervalSeconds: 10, maxFailures: 100 };
const EVERYTHING = { from: 1, to: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER };

export const eventOf = (n: number, change: Partial<AlarmEvent> = {}): AlarmEvent => ({
  id: `delivery-${n}`,
  receivedAt: NOW + n,
  data: `{"n":${n}.0}`,
  ...change,
});
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const range = (from: number, to: number) => numbers(from, to).map((n) => eventOf(n));

const event = (fields: Partial<EventSource> = {}) =>
  ({ kind: 'event', event: { source: 'webhook', repeat: 'always', ...fields } }) as Partial<AlarmCreate>;

/** An alarm that waits for events. */
export function createWaiting(store: AlarmStore, fields: Partial<AlarmCreate> = event(), owner = ADA) {
  const body = { wake_message: 'read the mail', label: 'mail', ...fields } as AlarmCreate;
  const alarm = draftAlarm(body, { id: newId(), owner, now: NOW, limits: LIMITS });
  return create(store, { alarm, occurrence: firstOccurrence(alarm, NOW, LIMITS) });
}

export const arrivalFor = ({ alarm }: AlarmState, events: readonly AlarmEvent[], at = NOW): EventArrival => ({
  ...{ owner: alarm.owner, alarmId: alarm.id, events },
  arrive: (state, fresh) => withEvents(state, fresh, at),
});

const kept = async (store: AlarmStore, { alarm }: AlarmState, within: Partial<typeof EVERYTHING> = {}) =>
  store.eventsOf(alarm.owner, alarm.id, { ...EVERYTHING, ...within });

export function eventContract(open: OpenStore): void {
  describe('recordEvents', () => {
    test('keeps every event in the order of arrival, and one occurrence carries the first', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const waiting = await createWaiting(store);
      const hostile = [
        eventOf(1, { id: 'a"b\\c\0d 🦘', data: '{"text":"\\u0000 \\ud800 🦘","number":1.50e400}' }),
        eventOf(2, { id: '{}', data: 'null', cause: 'client https://chat.example/client.json' }),
      ];
      const recorded = await store.recordEvents(arrivalFor(waiting, hostile));
      assert.equal(recorded?.fresh, 2);
      await store.recordEvents(arrivalFor(waiting, range(3, 4), NOW + 4));
      assert.deepEqual(await kept(store, waiting), [...hostile, ...range(3, 4)]);
      const state = (await store.get(ADA, waiting.alarm.id))!;
      assert.deepEqual(
        state.occurrences.filter((one) => isEventFire(state.alarm, one)).map(({ dueAt, source }) => [dueAt, source]),
        [[NOW, 'trigger']],
      );
      const { last, next } = eventStateOf(state.alarm);
      assert.deepEqual([last, next], [4, 1]);
      const again = await reopen();
      assert.deepEqual(await again.get(ADA, waiting.alarm.id), state);
      assert.deepEqual(await kept(again, waiting), [...hostile, ...range(3, 4)]);
      assert.deepEqual(await claim(again, { now: NOW + 9 }).then((claims) => claims.map(({ alarm }) => alarm.id)), [
        waiting.alarm.id,
      ]);
    });

    test('an id counts once: within a call, across calls, and after the event was carried', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      const twice = [eventOf(1), eventOf(2), eventOf(1, { data: '"other"' })];
      assert.equal((await store.recordEvents(arrivalFor(waiting, twice)))?.fresh, 2);
      const more = await store.recordEvents(arrivalFor(waiting, [eventOf(2), eventOf(3)]));
      assert.equal(more?.fresh, 1);
      assert.deepEqual(await kept(store, waiting), range(1, 3));
      await store.dropEvents(ADA, waiting.alarm.id, 3);
      const before = await store.get(ADA, waiting.alarm.id);
      const refuse = () => assert.fail('nothing has come');
      const repeated = await store.recordEvents({ ...arrivalFor(waiting, range(1, 3)), arrive: refuse });
      assert.deepEqual(repeated, { state: before, fresh: 0 });
      assert.deepEqual(await store.recordEvents({ ...arrivalFor(waiting, []), arrive: refuse }), repeated);
      assert.deepEqual(await kept(store, waiting), []);
    });

    test('alarms have their own ids and numbers', async (t) => {
      const { store } = await openFor(t, open);
      const [one, other] = [await createWaiting(store), await createWaiting(store, event(), BOB)];
      for (const each of [one, other]) {
        assert.equal((await store.recordEvents(arrivalFor(each, range(1, 2))))?.fresh, 2);
        assert.deepEqual(await kept(store, each), range(1, 2));
      }
      await store.dropEvents(BOB, one.alarm.id, 9);
      await store.dropEvents('a\0b', one.alarm.id, 9);
      assert.deepEqual(await kept(store, one), range(1, 2));
      assert.deepEqual(await store.eventsOf(BOB, one.alarm.id, EVERYTHING), []);
      assert.deepEqual(await store.eventsOf('a\0b', one.alarm.id, EVERYTHING), []);
      const foreign = { ...arrivalFor(one, range(3, 3)), owner: BOB };
      assert.equal(await store.recordEvents(foreign), undefined);
      assert.equal(await store.recordEvents({ ...foreign, owner: 'a\0b' }), undefined);
      assert.deepEqual(await kept(store, one), range(1, 2));
    });

    test('what simultaneous calls bring is kept once each, with successive numbers', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const waiting = await createWaiting(store, event({ quiet_for: 'PT10S' }));
      // Each event is sent by two callers.
      const calls = numbers(0, 199).map((n) => pick(n).recordEvents(arrivalFor(waiting, [eventOf(Math.floor(n / 2))])));
      const answers = await Promise.all(calls);
      assert.equal(
        answers.reduce((sum, answer) => sum + answer!.fresh, 0),
        100,
      );
      const state = (await store.get(ADA, waiting.alarm.id))!;
      assert.equal(waitingEvents(eventStateOf(state.alarm)), 100);
      const found = [];
      for (const n of numbers(1, 100)) found.push(...(await kept(store, waiting, { from: n, to: n })));
      assert.deepEqual(
        found.map(({ id }) => id).sort(),
        range(0, 99)
          .map(({ id }) => id)
          .sort(),
      );
      assert.equal(state.occurrences.length, 2);
    });

    test('meets other changes of its alarm without losing any', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const waiting = await createWaiting(store);
      await Promise.all(
        numbers(1, 20).flatMap((n) => [
          pick(n).recordEvents(arrivalFor(waiting, [eventOf(n)])),
          pick(n + 1).update(ADA, waiting.alarm.id, (state) => edited({ label: `${state.alarm.label}.` })(state)),
        ]),
      );
      const { alarm } = (await store.get(ADA, waiting.alarm.id))!;
      assert.deepEqual([alarm.label.length, eventStateOf(alarm).last], [waiting.alarm.label.length + 20, 20]);
      assert.equal((await kept(store, waiting)).length, 20);
    });

    test('a refusal stores nothing, and does not touch the calls beside it', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      const refusal = () => {
        throw new ReveilleError('conflict', 'no more of these');
      };
      const results = await Promise.allSettled([
        store.recordEvents(arrivalFor(waiting, [eventOf(1)])),
        store.recordEvents({ ...arrivalFor(waiting, [eventOf(2)]), arrive: refusal }),
        store.recordEvents(arrivalFor(waiting, [eventOf(3, { id: 'x'.repeat(2000) })])),
        store.recordEvents(arrivalFor(waiting, [eventOf(4)])),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
      );
      await assert.rejects(
        store.recordEvents({ ...arrivalFor(waiting, [eventOf(2)]), arrive: refusal }),
        withCode('conflict'),
      );
      assert.deepEqual(await kept(store, waiting), [eventOf(1), eventOf(4)]);
      assert.equal((await store.recordEvents(arrivalFor(waiting, [eventOf(2)])))?.fresh, 1);
      await store.update(ADA, waiting.alarm.id, cancelled);
      await assert.rejects(store.recordEvents(arrivalFor(waiting, [eventOf(5)])), withCode('conflict'));
      assert.equal((await kept(store, waiting)).length, 3);
    });

    test('a result that has not numbered what came is refused', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      const arrive = (state: AlarmState, [first]: readonly AlarmEvent[]) => withEvents(state, [first!], NOW);
      await assert.rejects(store.recordEvents({ ...arrivalFor(waiting, range(1, 2)), arrive }), withCode('internal'));
      assert.deepEqual(await store.get(ADA, waiting.alarm.id), waiting);
    });

    test('counts what waits as stored bytes, and refuses what exceeds the limit', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      const { bytes } = await store.usage();
      const big = eventOf(1, { data: JSON.stringify('x'.repeat(50_000)) });
      const limits = { maxBytes: bytes + 60_000 };
      assert.equal((await store.recordEvents({ ...arrivalFor(waiting, [big]), limits }))?.fresh, 1);
      const grown = (await store.usage()).bytes - bytes;
      assert.ok(grown >= 50_000 && grown < 51_000, `${grown}`);
      const second = { ...arrivalFor(waiting, [{ ...big, id: 'second' }]), limits };
      await assert.rejects(store.recordEvents(second), withCode('rate_limited'));
      assert.equal((await kept(store, waiting)).length, 1);
      const [claimed] = await claim(store);
      const { fireId } = claimed!.occurrence;
      const settle = (state: AlarmState) => settled(state, fireId);
      await store.complete([{ key: keyOf(claimed!), attempt: attemptOf(claimed!), settle }]);
      assert.ok((await store.usage()).bytes < bytes + 1000);
    });

    test('an expected event only moves the deadline: its id is kept, and no number', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store, { kind: 'event', expect: { every: 'PT1H' } });
      for (const n of [1, 2]) {
        const receivedAt = NOW + n * 60_000;
        const arrival = arrivalFor(waiting, [eventOf(n, { receivedAt })], receivedAt);
        assert.equal((await store.recordEvents(arrival))?.fresh, 1);
      }
      assert.equal((await store.recordEvents(arrivalFor(waiting, [eventOf(1)])))?.fresh, 0);
      const state = (await store.get(ADA, waiting.alarm.id))!;
      assert.deepEqual(
        state.occurrences.map(({ scheduledFor }) => scheduledFor),
        [NOW + 62 * 60_000],
      );
      assert.deepEqual(await kept(store, waiting), []);
      assert.equal(await store.pruneEvents({ before: NOW + 60_001, limit: 10 }), 1);
    });

    test('as many events may wait as the rules allow', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store, event({ quiet_for: 'PT10S', batch_up_to: 1000 }));
      for (let from = 1; from <= EVENTS_WAITING_MAX; from += 1000)
        assert.equal((await store.recordEvents(arrivalFor(waiting, range(from, from + 999))))?.fresh, 1000);
      await assert.rejects(store.recordEvents(arrivalFor(waiting, [eventOf(0)])), withCode('rate_limited'));
      const state = (await store.get(ADA, waiting.alarm.id))!;
      assert.deepEqual(eventsOfFire(state.alarm), { from: 1, to: 1000, isFixed: false });
      assert.deepEqual(await kept(store, waiting, { to: 1000 }), range(1, 1000));
      await store.dropEvents(ADA, waiting.alarm.id, 1000);
      assert.deepEqual(await kept(store, waiting, { to: 1002 }), range(1001, 1002));
    });
  });

  describe('eventsOf', () => {
    test('returns a range in order, at least one, and as many as fit', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      const data = JSON.stringify('🦘'.repeat(1000));
      const all = numbers(1, 12).map((n) => eventOf(n, { data }));
      await store.recordEvents(arrivalFor(waiting, all));
      assert.deepEqual(await kept(store, waiting, { from: 2, to: 11 }), all.slice(1, 11));
      assert.deepEqual(await kept(store, waiting, { from: 5, maxBytes: 1 }), all.slice(4, 5));
      assert.deepEqual(await kept(store, waiting, { maxBytes: 3 * 4200 }), all.slice(0, 3));
      assert.deepEqual(await kept(store, waiting, { from: 13 }), []);
      assert.deepEqual(await kept(store, waiting, { from: 3, to: 2 }), []);
    });
  });

  describe('pruneEvents', () => {
    test('deletes ids of dropped events that came before an instant, the oldest first', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store);
      await store.recordEvents(arrivalFor(waiting, range(1, 6)));
      assert.equal(await store.pruneEvents({ before: NOW + 100, limit: 10 }), 0, 'they wait');
      await store.dropEvents(ADA, waiting.alarm.id, 4);
      assert.equal(await store.pruneEvents({ before: NOW + 4, limit: 2 }), 2);
      assert.equal(await store.pruneEvents({ before: NOW + 4, limit: 2 }), 1);
      assert.equal(await store.pruneEvents({ before: NOW + 4, limit: 2 }), 0);
      assert.equal((await store.recordEvents(arrivalFor(waiting, range(3, 4))))?.fresh, 1, 'the id of 3 is forgotten');
      assert.deepEqual(await kept(store, waiting), [eventOf(5), eventOf(6), eventOf(3)]);
    });
  });

  describe('ids of events that are over', () => {
    const DAY_MS = 24 * 3600_000;
    const expected = { kind: 'event', expect: { every: 'PT1H' } } as Partial<AlarmCreate>;

    /** Events from `first` on, 500 at once, that are over as soon as they came. @returns the number after the last one */
    async function pass(store: AlarmStore, waiting: AlarmState, first: number, rounds: number, apartMs: number) {
      for (let round = 0; round < rounds; round++) {
        const from = first + round * 500;
        const events = numbers(from, from + 499).map((n) => eventOf(n, { receivedAt: NOW + n * apartMs }));
        assert.equal((await store.recordEvents(arrivalFor(waiting, events)))?.fresh, 500);
        await store.dropEvents(ADA, waiting.alarm.id, Number.MAX_SAFE_INTEGER);
      }
      return first + rounds * 500;
    }
    const isKnown = async (store: AlarmStore, waiting: AlarmState, n: number, receivedAt: number) =>
      (await store.recordEvents(arrivalFor(waiting, [eventOf(n, { receivedAt })])))?.fresh === 0;

    for (const [what, fields] of [
      ['that wakes carried', event({ batch_up_to: 1000 })],
      ['that are only expected', expected],
    ] as const)
      test(`${what}: the latest of an alarm stay, and all for as long as a signature may be valid`, async (t) => {
        const { store } = await openFor(t, open);
        const waiting = await createWaiting(store, fields);
        // A minute apart.
        const next = await pass(store, waiting, 0, 12, 60_000);
        const now = NOW + next * 60_000;
        assert.equal(await isKnown(store, waiting, next - KNOWN_EVENTS, now), true);
        assert.equal(await isKnown(store, waiting, next - KNOWN_EVENTS - 600, now), false);
        // Within seconds.
        const quick = await createWaiting(store, fields);
        await pass(store, quick, 0, 12, 1);
        for (const n of [0, 1, 2999, 5999]) assert.equal(await isKnown(store, quick, n, NOW + 6000), true);
        const rows = await store.pruneEvents({ before: now + DAY_MS, limit: 100_000 });
        assert.ok(rows <= KNOWN_EVENTS + 501 + 6000, `${rows}`);
      });

    test('of a heartbeat that names no id, nothing is stored but the last arrival and their number', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store, expected);
      for (let round = 0; round < 10; round++) {
        const calls = numbers(1, 300).map((n) => eventOf(n, { id: `${UNNAMED_EVENT}${round}-${n}` }));
        assert.equal((await store.recordEvents(arrivalFor(waiting, calls, NOW + round)))?.fresh, 300);
      }
      const { met, lastAt } = eventStateOf((await store.get(ADA, waiting.alarm.id))!.alarm);
      assert.deepEqual([met, lastAt], [3000, NOW + 9]);
      assert.equal(await store.pruneEvents({ before: NOW + DAY_MS, limit: 10_000 }), 0);
    });

    test('whose signature has no time stay as long as the alarm', async (t) => {
      const { store } = await openFor(t, open);
      const waiting = await createWaiting(store, event({ batch_up_to: 10 }));
      const signed = eventOf(1, { id: `${TIMELESS_EVENT}0123` });
      await store.recordEvents(arrivalFor(waiting, [signed, eventOf(2)]));
      await store.dropEvents(ADA, waiting.alarm.id, 2);
      assert.equal(await store.pruneEvents({ before: NOW + 1000 * DAY_MS, limit: 10 }), 1);
      assert.equal((await store.recordEvents(arrivalFor(waiting, [signed])))?.fresh, 0);
    });
  });

  describe('alarms with events', () => {
    test('are listed by their kind', async (t) => {
      const { store } = await openFor(t, open);
      const [active, away] = [await createWaiting(store), await createWaiting(store)];
      await store.update(ADA, away.alarm.id, edited({ status: 'paused' }));
      const idsOf = async (status?: 'active' | 'paused') =>
        (await store.list(ADA, { kind: 'event', limit: 9, ...(status && { status }) })).map(({ alarm }) => alarm.id);
      assert.deepEqual(await idsOf(), [away.alarm.id, active.alarm.id]);
      assert.deepEqual(await idsOf('active'), [active.alarm.id]);
      assert.deepEqual(await idsOf('paused'), [away.alarm.id]);
      assert.deepEqual(await store.list(ADA, { kind: 'once', limit: 9 }), []);
    });

    test('are deleted with their events, in steps where there are many', async (t) => {
      const { store } = await openFor(t, open);
      const { bytes } = await store.usage();
      const text = '{"event_state":{"bytes":7}} \0 \ud800 \\u0000';
      const waiting = await createWaiting(store, event({ filter: { pointer: '/a', equals: text } }));
      const other = await createWaiting(store, event(), BOB);
      for (let from = 1; from < 3000; from += 1000)
        await store.recordEvents(arrivalFor(waiting, range(from, from + 999)));
      await store.recordEvents(arrivalFor(other, range(1, 2)));
      await store.update(ADA, waiting.alarm.id, (state) => ({ ...cancelled(state), occurrences: [] }));
      let calls = 0;
      for (; (await store.usage()).alarms > 1; calls++) {
        assert.ok(calls < 10);
        await store.deleteCancelled(ADA, 10);
      }
      assert.equal(await store.get(ADA, waiting.alarm.id), undefined);
      assert.deepEqual(await kept(store, waiting), []);
      assert.deepEqual(await kept(store, other), range(1, 2));
      await store.update(BOB, other.alarm.id, (state) => ({ ...cancelled(state), occurrences: [] }));
      await store.pruneAlarms({ before: NOW + 1, limit: 10 });
      assert.deepEqual(await kept(store, other), []);
      const left = await store.usage();
      assert.deepEqual([left.alarms, left.bytes], [0, bytes]);
    });
  });
}

/** The wake of some events was delivered. */
function settled({ alarm, occurrences }: AlarmState, fireId: string): AlarmState {
  const own = occurrences.find((one) => one.fireId === fireId)!;
  return afterEventFire(
    alarm,
    own,
    occurrences.filter((one) => one !== own),
    { at: NOW + 20, isWoken: true },
  );
}

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { AlarmEvent } from '../../wire/conditions.ts';
import { type AlarmState, isClaimed, type Occurrence } from './alarm.ts';
import {
  EVENTS_WAITING_MAX,
  eventStateOf,
  eventsOfFire,
  isEventFire,
  isLook,
  waitingEvents,
  withEvents,
  withFixedEvents,
} from './events.ts';
import { cancelAlarm, pauseAlarm, redriveAlarm, resumeAlarm, triggerAlarm } from './lifecycle.ts';
import { LAST_INSTANT } from './occurrence.ts';
import {
  settleDeferred,
  settleDelivered,
  settleFailed,
  settleInterrupted,
  settleMissed,
  settleSkipped,
} from './settlement.ts';
import { ALARM_ID, type Body, claim, complete, edit, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const OTHER = '01977777-0000-7000-8000-000000000002';

const eventsAt = (now: number, count: number, from = 1): AlarmEvent[] =>
  Array.from({ length: count }, (_, n) => ({ id: `e${from + n}`, receivedAt: now, data: '{}' }));

/** Events numbered after the earlier ones. */
const arrive = (state: AlarmState, now: number, count = 1, isLast = false): AlarmState =>
  withEvents(state, eventsAt(now, count, eventStateOf(state.alarm).last + 1), now, isLast);

const hook = (more: Body = {}, fields: Body = {}) => setAlarm({ event: { source: 'webhook', ...more }, ...fields });
const always = (more: Body = {}, fields: Body = {}) => hook({ repeat: 'always', ...more }, fields);

const eventFire = (state: AlarmState): Occurrence => {
  const fire = state.occurrences.find((one) => isEventFire(state.alarm, one));
  assert.ok(fire, 'events wait for a wake');
  return fire;
};

const deliver = (state: AlarmState, { fireId }: Occurrence, now: number) =>
  complete(claim(state, fireId, now), fireId, (one) => settleDelivered(one, fireId, now));
const giveUp = (state: AlarmState, { fireId }: Occurrence, at: number) =>
  complete(claim(state, fireId, at), fireId, (one) =>
    settleFailed(one, fireId, { error: 'gone', at, final: true, retryAt: () => at }),
  );
const retry = (state: AlarmState, { fireId }: Occurrence, at: number) =>
  complete(claim(state, fireId, at), fireId, (one) =>
    settleFailed(one, fireId, { error: 'busy', at, final: false, retryAt: () => at + MINUTE }),
  );

const carried = ({ alarm }: AlarmState) => {
  const { from, to } = eventsOfFire(alarm);
  return [from, to];
};

describe('waiting events', () => {
  test('an alarm without a deadline is due when an event comes, and ends with its wake', () => {
    const before = hook();
    assert.equal(scheduled(before).dueAt, LAST_INSTANT);
    const came = arrive(before, NOW + 5);
    assert.deepEqual([eventFire(came).dueAt, carried(came)], [NOW + 5, [1, 1]]);
    const { alarm, occurrences } = deliver(came, eventFire(came), NOW + 9);
    assert.deepEqual([alarm.status, alarm.fireCount, occurrences], ['fired', 1, []]);
    assert.throws(() => arrive({ alarm, occurrences }, NOW + 10), /this alarm is fired/);
  });

  test('without collecting, each event has a wake of its own, one after another', () => {
    let state = arrive(always(), NOW, 3);
    const fires = new Set<string>();
    for (const number of [1, 2, 3]) {
      assert.deepEqual(carried(state), [number, number]);
      fires.add(eventFire(state).fireId);
      state = deliver(state, eventFire(state), NOW);
    }
    assert.deepEqual([fires.size, state.alarm.status, state.occurrences.length], [3, 'active', 1]);
  });

  test('quiet_for waits until no event has come for so long, at most ten times', () => {
    let state = arrive(always({ quiet_for: 'PT10S' }), NOW);
    assert.equal(eventFire(state).dueAt, NOW + 10 * SECOND);
    state = arrive(state, NOW + 9 * SECOND);
    assert.deepEqual([eventFire(state).dueAt, carried(state)], [NOW + 19 * SECOND, [1, 2]]);
    for (let at = NOW + 18 * SECOND; at < NOW + 100 * SECOND; at += 9 * SECOND) state = arrive(state, at);
    const due = eventFire(state).dueAt!;
    assert.ok(Math.abs(due - (NOW + 100 * SECOND)) < 100, `due ${due - NOW} ms after the first`);
    assert.equal(state.occurrences.filter((one) => isEventFire(state.alarm, one)).length, 1);
  });

  test('a full batch does not wait, and the rest follows it', () => {
    let state = arrive(always({ quiet_for: 'PT10S', batch_up_to: 3 }), NOW, 2);
    state = arrive(state, NOW + 1, 3);
    assert.deepEqual([carried(state), eventFire(state).dueAt! <= NOW + 10 * SECOND + 1], [[1, 3], true]);
    const due = eventFire(state);
    assert.ok(due.dueAt! - NOW <= 10 * SECOND + 2);
    state = deliver(state, due, NOW + 20);
    assert.deepEqual(carried(state), [4, 5]);
  });

  test('at_most_every collects between two wakes', () => {
    let state = arrive(always({ at_most_every: 'PT1M' }), NOW);
    assert.equal(eventFire(state).dueAt, NOW);
    state = deliver(state, eventFire(state), NOW + 2);
    state = arrive(arrive(state, NOW + 10), NOW + 20);
    assert.deepEqual([eventFire(state).dueAt, carried(state)], [NOW + 2 + MINUTE, [2, 3]]);
  });

  test('an event that comes during a delivery, or between its tries, waits for the next wake', () => {
    const first = arrive(always({ quiet_for: 'PT1S' }), NOW);
    const { fireId } = eventFire(first);
    const during = arrive(claim(first, fireId, NOW + SECOND), NOW + SECOND);
    assert.deepEqual(carried(during), [1, 1]);
    const between = arrive(retry(first, eventFire(first), NOW + SECOND), NOW + 2 * SECOND);
    assert.deepEqual([carried(between), eventFire(between).fireId], [[1, 1], fireId]);
    const after = deliver(between, eventFire(between), NOW + MINUTE);
    assert.deepEqual(carried(after), [2, 2]);
    assert.notEqual(eventFire(after).fireId, fireId);
  });

  test('a batch that does not fit into a wake is cut, for every try', () => {
    const state = arrive(always({ quiet_for: 'PT1S' }), NOW, 5);
    const fire = eventFire(state);
    const cut = withFixedEvents(claim(state, fire.fireId), fire.fireId, 2);
    assert.deepEqual(carried(cut), [1, 2]);
    assert.equal(withFixedEvents(cut, fire.fireId, 1), cut, 'it is fixed once');
    const deferred = complete(cut, fire.fireId, (one) =>
      settleDeferred(one, fire.fireId, { until: NOW + HOUR, dueAt: NOW + HOUR, reason: 'budget' }),
    );
    const more = arrive(deferred, NOW + 2);
    assert.deepEqual([carried(more), eventFire(more).dueAt], [[1, 2], NOW + HOUR]);
    assert.deepEqual(carried(deliver(more, eventFire(more), NOW + HOUR)), [3, 6]);
  });

  test('a deferred wake that was never tried takes further events along, and stays deferred', () => {
    const state = arrive(always({ quiet_for: 'PT1S' }), NOW);
    const fire = eventFire(state);
    const deferred = complete(claim(state, fire.fireId), fire.fireId, (one) =>
      settleDeferred(one, fire.fireId, { until: NOW + HOUR, dueAt: NOW + HOUR, reason: 'budget' }),
    );
    const more = arrive(deferred, NOW + 2);
    const held = eventFire(more);
    assert.deepEqual([carried(more), held.fireId, held.dueAt], [[1, 2], fire.fireId, NOW + HOUR]);
  });

  test('too many waiting events are refused, and change nothing', () => {
    const full = arrive(always(), NOW, EVENTS_WAITING_MAX);
    assert.throws(() => arrive(full, NOW), { code: 'rate_limited', retryAfterSeconds: 10 });
  });

  test('a wake of events and an owner’s trigger never share a fire id', () => {
    let state = arrive(always({ quiet_for: 'PT10S' }), NOW);
    const ids = [eventFire(state).fireId];
    const { state: triggered, fireId } = triggerAlarm(state, NOW + SECOND);
    const trigger = triggered.occurrences.find((one) => one.fireId === fireId)!;
    assert.equal(trigger.dueAt, NOW + SECOND + 1, 'a trigger does not wait for a batch');
    state = deliver(triggered, trigger, NOW + SECOND);
    state = deliver(state, eventFire(state), NOW + 10 * SECOND);
    state = triggerAlarm(state, NOW + 10 * SECOND).state;
    const second = state.occurrences.find(({ source }) => source === 'trigger')!;
    state = deliver(state, second, NOW + 10 * SECOND);
    state = arrive(state, NOW + 10 * SECOND);
    ids.push(fireId, second.fireId, eventFire(state).fireId);
    assert.equal(new Set(ids).size, 4, ids.join());
  });

  test('a pause keeps events; resuming wakes with them', () => {
    const paused = arrive(pauseAlarm(always(), NOW), NOW + 1, 2);
    assert.equal(eventFire(paused).dueAt, null);
    const resumed = resumeAlarm(paused, NOW + HOUR);
    assert.deepEqual([eventFire(resumed).dueAt, carried(resumed)], [NOW + HOUR, [1, 1]]);
  });

  test('a cancelled alarm wakes no more', () => {
    const came = arrive(always(), NOW, 2);
    assert.deepEqual(cancelAlarm(came, NOW).occurrences, []);
    const { fireId } = eventFire(came);
    const running = cancelAlarm(claim(came, fireId), NOW);
    assert.deepEqual(complete(running, fireId, (one) => settleDelivered(one, fireId, NOW)).occurrences, []);
  });

  test('an alarm whose only wake is given up or missed has failed, and can be redriven with its events', () => {
    const came = arrive(hook(), NOW);
    const fire = eventFire(came);
    const missed = complete(claim(came, fire.fireId), fire.fireId, (one) =>
      settleMissed(one, fire.fireId, 'late', NOW),
    );
    for (const state of [giveUp(came, fire, NOW), missed]) {
      assert.deepEqual([state.alarm.status, eventFire(state).dueAt], ['failed', null]);
      const redriven = redriveAlarm(state, NOW + HOUR);
      assert.deepEqual([redriven.alarm.status, eventFire(redriven).dueAt], ['active', NOW + HOUR]);
      assert.equal(deliver(redriven, eventFire(redriven), NOW + HOUR).alarm.status, 'fired');
    }
  });

  test('a skipped wake ends no alarm that waits for its first one', () => {
    const came = arrive(hook({ deadline: 'PT1H' }), NOW + MINUTE);
    assert.equal(scheduled(came).dueAt, LAST_INSTANT);
    const { fireId } = eventFire(came);
    const skipped = complete(claim(came, fireId), fireId, (one) => settleSkipped(one, fireId, NOW + MINUTE));
    assert.deepEqual([skipped.alarm.status, scheduled(skipped).dueAt], ['active', NOW + MINUTE + HOUR]);
    assert.deepEqual(carried(arrive(skipped, NOW + HOUR)), [2, 2]);
  });
});

describe('deadlines', () => {
  test('without an event for so long the alarm fires and, unless it repeats, ends', () => {
    const once = hook({ deadline: 'PT1H' });
    assert.deepEqual([scheduled(once).dueAt, isLook(once.alarm, scheduled(once))], [NOW + HOUR, false]);
    assert.equal(deliver(once, scheduled(once), NOW + HOUR).alarm.status, 'fired');
    assert.equal(giveUp(once, scheduled(once), NOW + HOUR).alarm.status, 'failed');
    const again = deliver(always({ deadline: 'PT1H' }), scheduled(once), NOW + HOUR + 5);
    assert.deepEqual([again.alarm.status, scheduled(again).dueAt], ['active', NOW + 2 * HOUR + 5]);
  });

  test('each event moves it', () => {
    const came = arrive(always({ deadline: 'PT1H' }), NOW + MINUTE);
    assert.equal(scheduled(came).dueAt, NOW + MINUTE + HOUR);
    assert.equal(came.occurrences.length, 2);
  });

  test('a wake that says that nothing came is not tried again once something has come', () => {
    const state = always({ deadline: 'PT1H' });
    const { fireId } = scheduled(state);
    const later = NOW + HOUR + MINUTE;
    const tried = arrive(retry(state, scheduled(state), NOW + HOUR), later);
    assert.ok(!tried.occurrences.some((one) => one.fireId === fireId));
    assert.equal(tried.alarm.failureCount, 0);
    const running = arrive(claim(state, fireId, NOW + HOUR), later);
    const failed = complete(running, fireId, (one) =>
      settleFailed(one, fireId, { error: 'busy', at: later, final: false, retryAt: () => later + 1 }),
    );
    for (const after of [tried, failed]) {
      assert.ok(!after.occurrences.some((one) => one.fireId === fireId));
      assert.deepEqual([scheduled(after).dueAt, eventFire(after).dueAt], [later + HOUR, later]);
    }
  });

  test('a deadline and a batch that are due in one instant have different fire ids', () => {
    let state = always({ deadline: 'PT30S', quiet_for: 'PT30S' });
    for (const at of [NOW, NOW + 1, NOW + 1, NOW + 2]) {
      state = arrive(state, at);
      assert.equal(new Set(state.occurrences.map(({ fireId }) => fireId)).size, 2);
    }
  });

  test('after a pause it counts anew', () => {
    const paused = pauseAlarm(always({ deadline: 'PT1H' }), NOW + MINUTE);
    const resumed = resumeAlarm(paused, NOW + 2 * MINUTE);
    assert.equal(scheduled(resumed).dueAt, NOW + 2 * MINUTE + HOUR);
    assert.equal(isLook(resumed.alarm, scheduled(resumed)), false);
  });

  test('an edit starts it anew and keeps what waits', () => {
    const came = arrive(always({ deadline: 'PT1H' }), NOW);
    const edited = edit(came, { event: { source: 'webhook', repeat: 'always', deadline: 'PT2H' } }, NOW + MINUTE);
    assert.deepEqual([scheduled(edited).dueAt, carried(edited)], [NOW + MINUTE + 2 * HOUR, [1, 1]]);
  });
});

describe('chains and expectations', () => {
  const after = (more: Body = {}, fields: Body = {}) => setAlarm({ after: { alarm: OTHER, ...more }, ...fields });

  test('delay_seconds moves the wake', () => {
    assert.equal(eventFire(arrive(after({ delay_seconds: 90 }), NOW)).dueAt, NOW + 90 * SECOND);
  });

  test('the alarm goes on until the last event, and ends with its wake', () => {
    let state = arrive(after(), NOW);
    state = arrive(deliver(state, eventFire(state), NOW), NOW + 1, 1, true);
    assert.equal(state.alarm.status, 'active');
    assert.equal(giveUp(state, eventFire(state), NOW + 1).alarm.status, 'failed');
    assert.equal(deliver(state, eventFire(state), NOW + 1).alarm.status, 'fired');
  });

  test('where no further event can come and none waits, it ends at once', () => {
    const { alarm, occurrences } = withEvents(after(), [], NOW, true);
    assert.deepEqual([alarm.status, occurrences], ['fired', []]);
    const waiting = withEvents(arrive(after(), NOW), [], NOW, true);
    assert.equal(waiting.alarm.status, 'active');
    assert.equal(deliver(waiting, eventFire(waiting), NOW).alarm.status, 'fired');
  });

  test('an expected event only moves the deadline', () => {
    const expect = after({}, { expect: { every: 'P1D', grace: 'PT1H' } });
    assert.equal(scheduled(expect).dueAt, NOW + 25 * HOUR);
    const met = withEvents(expect, eventsAt(NOW + HOUR, 1), NOW + HOUR);
    assert.deepEqual([scheduled(met).dueAt, met.occurrences.length], [NOW + 26 * HOUR, 1]);
    const absent = deliver(met, scheduled(met), NOW + 26 * HOUR);
    assert.deepEqual([absent.alarm.status, scheduled(absent).dueAt], ['active', NOW + 51 * HOUR]);
  });

  test('an absence that is being delivered ends with this attempt when the event comes after all', () => {
    const expect = setAlarm({ expect: { every: 'PT1H' } });
    const { fireId } = scheduled(expect);
    const late = NOW + HOUR + SECOND;
    const met = withEvents(claim(expect, fireId, NOW + HOUR), eventsAt(late, 1), late);
    const failed = complete(met, fireId, (one) => settleInterrupted(one, fireId, late));
    assert.deepEqual(
      failed.occurrences.map(({ dueAt }) => dueAt),
      [late + HOUR],
    );
  });

  test('what was expected of an alarm that has ended is met, or absent once', () => {
    const expect = after({}, { expect: { every: 'PT1H' } });
    assert.equal(withEvents(expect, eventsAt(NOW, 1), NOW, true).alarm.status, 'fired');
    const lost = withEvents(expect, [], NOW, true);
    assert.deepEqual([lost.alarm.status, scheduled(lost).dueAt], ['active', NOW + HOUR]);
    assert.equal(deliver(lost, scheduled(lost), NOW + HOUR).alarm.status, 'fired');
  });
});

/** A step of a random history. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant('arrive' as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 40_000 }) }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('claim' as const), pick: fc.nat(5) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constantFrom('deliver' as const, 'retry' as const, 'giveUp' as const),
      pick: fc.nat(5),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom('interrupt' as const, 'defer' as const, 'skip' as const, 'cut' as const),
      pick: fc.nat(5),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constantFrom('pause' as const, 'resume' as const, 'trigger' as const) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const RULES: Body[] = [
  {},
  { batch_up_to: 3 },
  { quiet_for: 'PT10S' },
  { at_most_every: 'PT15S', batch_up_to: 5 },
  { quiet_for: 'PT10S', at_most_every: 'PT15S', deadline: 'PT10S' },
  { deadline: 'PT20S' },
];

class History {
  state: AlarmState;
  now = NOW;
  sent = 0;
  /** What each fire carried: the same at every try. */
  readonly tries = new Map<string, string>();
  /** Events by the fire that ended with them, in order. */
  readonly ended: number[] = [];
  readonly endedFires = new Set<string>();

  constructor(rules: Body) {
    this.state = always(rules);
  }

  #pick(which: (one: Occurrence) => boolean, pick: number): Occurrence | undefined {
    const found = this.state.occurrences.filter(which);
    return found[pick % Math.max(1, found.length)];
  }

  take(one: Step): void {
    const { alarm } = this.state;
    switch (one.does) {
      case 'arrive':
        this.state = arrive(this.state, this.now, one.count);
        this.sent += one.count;
        return;
      case 'pass':
        this.now += one.ms;
        return;
      case 'pause':
        if (alarm.status === 'active') this.state = pauseAlarm(this.state, this.now);
        return;
      case 'resume':
        this.state = resumeAlarm(this.state, this.now);
        return;
      case 'trigger':
        this.state = triggerAlarm(this.state, this.now).state;
        return;
      case 'claim': {
        const due = this.#pick((each) => each.dueAt !== null && each.dueAt <= this.now && !isClaimed(each), one.pick);
        if (!due) return;
        this.state = claim(this.state, due.fireId, this.now);
        this.#remember(due);
        return;
      }
      default: {
        const running = this.#pick(isClaimed, one.pick);
        if (running) this.#end(running, one.does);
      }
    }
  }

  /** Every try of a fire carries the same events. */
  #remember(fire: Occurrence): void {
    assert.ok(!this.endedFires.has(fire.fireId), `${fire.fireId} is used again`);
    if (!isEventFire(this.state.alarm, fire)) return;
    const { from, to } = eventsOfFire(this.state.alarm);
    const before = this.tries.get(fire.fireId);
    // A wake that was only deferred may take more along.
    if (fire.attempt > 0) assert.equal(`${from}-${to}`, before ?? `${from}-${to}`);
    this.tries.set(fire.fireId, `${from}-${to}`);
  }

  #end(running: Occurrence, how: 'deliver' | 'retry' | 'giveUp' | 'interrupt' | 'defer' | 'skip' | 'cut'): void {
    const { fireId } = running;
    const at = this.now;
    if (how === 'cut') {
      if (!isEventFire(this.state.alarm, running) || running.attempt > 1) return;
      const { from, to } = eventsOfFire(this.state.alarm);
      this.state = withFixedEvents(this.state, fireId, Math.max(from, to - 1));
      this.#remember({ ...running, attempt: 0 });
      return;
    }
    const isOfEvents = isEventFire(this.state.alarm, running);
    const { from, to } = isOfEvents ? eventsOfFire(this.state.alarm) : { from: 1, to: 0 };
    const failure = { error: 'x', at, final: how === 'giveUp', retryAt: () => at + 500 };
    const settle = {
      deliver: (state: AlarmState) => settleDelivered(state, fireId, at),
      retry: (state: AlarmState) => settleFailed(state, fireId, failure),
      giveUp: (state: AlarmState) => settleFailed(state, fireId, failure),
      interrupt: (state: AlarmState) => settleInterrupted(state, fireId, at),
      defer: (state: AlarmState) =>
        settleDeferred(state, fireId, { until: at + 900, dueAt: at + 900, reason: 'budget' }),
      skip: (state: AlarmState) => settleSkipped(state, fireId, at),
    }[how];
    this.state = complete(this.state, fireId, settle);
    if (this.state.occurrences.some((one) => one.fireId === fireId)) return;
    this.endedFires.add(fireId);
    for (let number = from; number <= to; number++) this.ended.push(number);
  }

  check(): void {
    const { alarm, occurrences } = this.state;
    const state = eventStateOf(alarm);
    assert.equal(new Set(occurrences.map(({ fireId }) => fireId)).size, occurrences.length, 'fire ids are unique');
    assert.equal(occurrences.filter(({ source }) => source === 'schedule').length, 1);
    assert.equal(occurrences.filter((one) => isEventFire(alarm, one)).length, waitingEvents(state) > 0 ? 1 : 0);
    assert.equal(state.last, this.sent);
    assert.deepEqual(
      this.ended,
      Array.from({ length: state.next - 1 }, (_, n) => n + 1),
      'each event once, in order',
    );
    if (alarm.status === 'active')
      for (const one of occurrences) assert.ok(one.dueAt !== null || isClaimed(one), 'nothing stays parked');
  }
}

test('in any history, each event is carried by one fire, in order', () => {
  fc.assert(
    fc.property(fc.constantFrom(...RULES), fc.array(step, { maxLength: 60 }), (rules, steps) => {
      const history = new History(rules);
      for (const one of steps) {
        history.take(one);
        history.check();
      }
      history.take({ does: 'resume' });
      for (let round = 0; round < 1000 && waitingEvents(eventStateOf(history.state.alarm)) > 0; round++) {
        for (const one of [
          { does: 'pass', ms: 20_000 },
          { does: 'claim', pick: round },
          { does: 'deliver', pick: 0 },
        ] as const)
          history.take(one);
        history.check();
      }
      assert.equal(history.ended.length, history.sent, 'none waits for ever');
    }),
    { numRuns: 500 },
  );
});

test('fire ids are those of the alarm', () => {
  assert.ok(eventFire(arrive(hook(), NOW)).fireId.startsWith(`${ALARM_ID}@`));
});

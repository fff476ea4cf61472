import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmState, Occurrence } from './alarm.ts';
import { cancelAlarm, pauseAlarm, triggerAlarm } from './lifecycle.ts';
import {
  INTERRUPTED,
  settleDelivered,
  settleFailed,
  settleInterrupted,
  settleMissed,
  settleReplaced,
} from './settlement.ts';
import { type Body, claim, complete, edit, NOW, scheduled, setAlarm } from './testing/alarm-state.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

type Kind = 'once' | 'cron' | 'trigger';
type Meanwhile = 'active' | 'paused' | 'cancelled' | 'edited';

/** When the attempt of each kind starts. */
const STARTED: Record<Kind, number> = { once: NOW + MINUTE, cron: NOW + 50 * MINUTE, trigger: NOW + 1 };

function alarmOf(kind: Kind, more: Body = {}): AlarmState {
  if (kind === 'once') return setAlarm({ kind: 'once', delay_seconds: 60, ...more });
  const hourly = setAlarm({ kind: 'cron', cron_expr: '0 * * * *', ...more });
  return kind === 'cron' ? hourly : triggerAlarm(hourly, STARTED.trigger).state;
}

/** An alarm with one running attempt, and its owner's action during it. */
function runningAttempt(kind: Kind, meanwhile: Meanwhile, more: Body = {}): { state: AlarmState; fireId: string } {
  const before = alarmOf(kind, more);
  const source = kind === 'trigger' ? 'trigger' : 'schedule';
  const { fireId } = before.occurrences.find((occurrence) => occurrence.source === source)!;
  const claimed = claim(before, fireId, STARTED[kind]);
  const now = STARTED[kind] + 1;
  const act: Record<Meanwhile, () => AlarmState> = {
    active: () => claimed,
    paused: () => pauseAlarm(claimed, now),
    cancelled: () => cancelAlarm(claimed, now),
    edited: () => edit(claimed, kind === 'once' ? { delay_seconds: 3600 } : { cron_expr: '30 * * * *' }, now),
  };
  return { state: act[meanwhile](), fireId };
}

const retryAt = (failure: number) => 1_000_000 + failure;
const refused = { error: 'busy', final: false, retryAt };
const gone = { error: 'gone', final: true, retryAt };

const OUTCOMES = {
  delivered: (state: AlarmState, fireId: string) => settleDelivered(state, fireId, NOW + 7),
  refused: (state: AlarmState, fireId: string) => settleFailed(state, fireId, refused),
  gone: (state: AlarmState, fireId: string) => settleFailed(state, fireId, gone),
  interrupted: settleInterrupted,
  missed: (state: AlarmState, fireId: string) => settleMissed(state, fireId, 'too late'),
};
type OutcomeName = keyof typeof OUTCOMES;

/** The remaining state of the attempt's own occurrence, and of the others. */
function show(state: AlarmState, fireId: string): string {
  const words = (occurrence: Occurrence) => {
    const which = occurrence.fireId === fireId ? 'same' : occurrence.source === 'trigger' ? 'trigger' : 'next';
    return `${which} ${occurrence.dueAt === null ? 'parked' : 'due'}`;
  };
  return `${state.alarm.status}: ${state.occurrences.map(words).sort().join(', ')}`;
}

/** Outcome × kind × the owner's action: the alarm's status and its pending occurrences. */
const EXPECTED: Record<Kind, Record<Meanwhile, Record<OutcomeName, string>>> = {
  once: {
    active: {
      delivered: 'fired: ',
      refused: 'active: same due',
      gone: 'failed: same parked',
      interrupted: 'active: same due',
      missed: 'failed: same parked',
    },
    paused: {
      delivered: 'fired: ',
      refused: 'paused: same parked',
      gone: 'failed: same parked',
      interrupted: 'paused: same parked',
      missed: 'failed: same parked',
    },
    cancelled: {
      delivered: 'cancelled: ',
      refused: 'cancelled: ',
      gone: 'cancelled: ',
      interrupted: 'cancelled: ',
      missed: 'cancelled: ',
    },
    edited: {
      delivered: 'active: next due',
      refused: 'active: next due',
      gone: 'active: next due',
      interrupted: 'active: next due',
      missed: 'active: next due',
    },
  },
  cron: {
    active: {
      delivered: 'active: next due',
      refused: 'active: same due',
      gone: 'active: next due',
      interrupted: 'active: same due',
      missed: 'active: next due',
    },
    paused: {
      delivered: 'paused: next parked',
      refused: 'paused: same parked',
      gone: 'paused: next parked',
      interrupted: 'paused: same parked',
      missed: 'paused: next parked',
    },
    cancelled: {
      delivered: 'cancelled: ',
      refused: 'cancelled: ',
      gone: 'cancelled: ',
      interrupted: 'cancelled: ',
      missed: 'cancelled: ',
    },
    edited: {
      delivered: 'active: next due',
      refused: 'active: next due',
      gone: 'active: next due',
      interrupted: 'active: next due',
      missed: 'active: next due',
    },
  },
  trigger: {
    active: {
      delivered: 'active: next due',
      refused: 'active: next due, same due',
      gone: 'active: next due',
      interrupted: 'active: next due, same due',
      missed: 'active: next due',
    },
    paused: {
      delivered: 'paused: next parked',
      refused: 'paused: next parked, same due',
      gone: 'paused: next parked',
      interrupted: 'paused: next parked, same due',
      missed: 'paused: next parked',
    },
    cancelled: {
      delivered: 'cancelled: ',
      refused: 'cancelled: ',
      gone: 'cancelled: ',
      interrupted: 'cancelled: ',
      missed: 'cancelled: ',
    },
    edited: {
      delivered: 'active: next due',
      refused: 'active: next due, same due',
      gone: 'active: next due',
      interrupted: 'active: next due, same due',
      missed: 'active: next due',
    },
  },
};

for (const [kind, byMeanwhile] of Object.entries(EXPECTED) as [Kind, (typeof EXPECTED)[Kind]][]) {
  for (const [meanwhile, byOutcome] of Object.entries(byMeanwhile) as [Meanwhile, Record<OutcomeName, string>][]) {
    test(`an attempt at a ${kind} occurrence whose alarm is ${meanwhile} at the time of its outcome`, () => {
      for (const [outcome, expected] of Object.entries(byOutcome) as [OutcomeName, string][]) {
        const { state, fireId } = runningAttempt(kind, meanwhile);
        const after = complete(state, fireId, (given) => OUTCOMES[outcome](given, fireId));
        assert.equal(show(after, fireId), expected, outcome);
        const delivered = outcome === 'delivered' ? 1 : 0;
        assert.equal(after.alarm.fireCount, delivered, outcome);
        assert.equal(after.alarm.lastFiredAt, delivered ? NOW + 7 : null, outcome);
        if (!delivered) assert.notEqual(after.alarm.lastError, null, outcome);
        assert.ok(
          after.occurrences.every(({ claimedAt }) => claimedAt === null),
          outcome,
        );
      }
    });
  }
}

describe('retries', () => {
  test('each failure of the schedule counts, and passes its zero-based number to the delay', () => {
    let { state, fireId } = runningAttempt('once', 'active');
    for (const failure of [0, 1, 2]) {
      state = complete(state, fireId, (given) => settleFailed(given, fireId, refused));
      assert.equal(state.alarm.failureCount, failure + 1);
      assert.equal(scheduled(state).dueAt, retryAt(failure));
      state = claim(state, fireId);
    }
  });

  test('end after max_failures: a single alarm fails, a series continues with a count of zero', () => {
    for (const kind of ['once', 'cron'] as const) {
      let { state, fireId } = runningAttempt(kind, 'active', { max_failures: 2 });
      state = complete(state, fireId, (given) => settleFailed(given, fireId, refused));
      assert.equal(show(state, fireId), 'active: same due');
      state = complete(claim(state, fireId), fireId, (given) => settleFailed(given, fireId, refused));
      assert.equal(show(state, fireId), kind === 'once' ? 'failed: same parked' : 'active: next due');
      assert.equal(state.alarm.failureCount, kind === 'once' ? 2 : 0);
      assert.equal(state.alarm.lastError, 'busy');
    }
  });

  test('a trigger counts its own attempts and is given up after the last one', () => {
    let { state, fireId } = runningAttempt('trigger', 'active', { max_failures: 2 });
    state = complete(state, fireId, (given) => settleFailed(given, fireId, refused));
    assert.equal(state.occurrences.find((occurrence) => occurrence.fireId === fireId)?.dueAt, retryAt(0));
    assert.equal(state.alarm.failureCount, 0);
    state = complete(claim(state, fireId), fireId, (given) => settleFailed(given, fireId, refused));
    assert.equal(show(state, fireId), 'active: next due');
  });

  test('interrupted attempts are counted, so that no wake is repeated for ever', () => {
    let { state, fireId } = runningAttempt('once', 'active', { max_failures: 3 });
    const { dueAt } = scheduled(state);
    for (const failures of [1, 2]) {
      state = complete(state, fireId, (given) => settleInterrupted(given, fireId));
      assert.equal(state.alarm.failureCount, failures);
      assert.equal(scheduled(state).dueAt, dueAt, 'retried at once');
      state = claim(state, fireId);
    }
    state = complete(state, fireId, (given) => settleInterrupted(given, fireId));
    assert.equal(state.alarm.status, 'failed');
    assert.equal(state.alarm.lastError, INTERRUPTED);
  });

  test('the outcome of a trigger does not change the count of the schedule', () => {
    let { state, fireId } = runningAttempt('cron', 'active');
    state = complete(state, fireId, (given) => settleFailed(given, fireId, refused));
    for (const outcome of ['delivered', 'refused', 'gone', 'interrupted', 'missed'] as const) {
      const triggered = triggerAlarm(state, NOW + HOUR + 1);
      const after = complete(claim(triggered.state, triggered.fireId), triggered.fireId, (given) =>
        OUTCOMES[outcome](given, triggered.fireId),
      );
      assert.equal(after.alarm.failureCount, 1, outcome);
    }
  });

  test('a delivery clears count and error', () => {
    let { state, fireId } = runningAttempt('cron', 'active');
    state = complete(state, fireId, (given) => settleFailed(given, fireId, refused));
    state = complete(claim(state, fireId), fireId, (given) => settleDelivered(given, fireId, NOW));
    assert.deepEqual([state.alarm.failureCount, state.alarm.lastError], [0, null]);
  });
});

describe('the end of a series', () => {
  const deliver = (state: AlarmState): AlarmState => {
    const { fireId, scheduledFor } = scheduled(state);
    return complete(claim(state, fireId), fireId, (given) => settleDelivered(given, fireId, scheduledFor));
  };

  test('max_fires counts deliveries of the schedule, without triggers', () => {
    let state = alarmOf('trigger', { max_fires: 2 });
    const { fireId } = state.occurrences.find(({ source }) => source === 'trigger')!;
    state = complete(claim(state, fireId), fireId, (given) => settleDelivered(given, fireId, NOW));
    state = deliver(state);
    assert.equal(state.alarm.status, 'active');
    state = deliver(state);
    assert.equal(state.alarm.status, 'fired');
    assert.deepEqual(state.occurrences, []);
    assert.deepEqual([state.alarm.fireCount, state.alarm.scheduledFires], [3, 2]);
  });

  test('ends_at', () => {
    let state = alarmOf('cron', { ends_at: new Date(NOW + 2 * HOUR).toISOString() });
    state = deliver(state);
    assert.equal(scheduled(state).scheduledFor, NOW + 110 * MINUTE);
    state = deliver(state);
    assert.equal(state.alarm.status, 'fired');
  });

  test('an occurrence given up does not use up max_fires', () => {
    const { state, fireId } = runningAttempt('cron', 'active', { max_fires: 1 });
    const after = complete(state, fireId, (given) => settleFailed(given, fireId, gone));
    assert.equal(show(after, fireId), 'active: next due');
  });

  test('a zone that no longer exists makes the series fail visibly', () => {
    const { state, fireId } = runningAttempt('cron', 'active');
    const moved = { ...state, alarm: { ...state.alarm, timezone: 'Europe/Atlantis' } };
    const after = complete(moved, fireId, (given) => settleDelivered(given, fireId, NOW));
    assert.equal(after.alarm.status, 'failed');
    assert.match(after.alarm.lastError ?? '', /timezone/);
    assert.deepEqual(after.occurrences, []);
  });

  test('a pending trigger at the next instant does not block the series', () => {
    const { state, fireId } = runningAttempt('cron', 'active');
    const taken = { ...deliver(alarmOf('cron')).occurrences[0]!, source: 'trigger' as const };
    const crowded = { ...state, occurrences: [...state.occurrences, taken] };
    const after = complete(crowded, fireId, (given) => settleDelivered(given, fireId, NOW));
    assert.equal(scheduled(after).scheduledFor, taken.scheduledFor + HOUR);
  });
});

describe('a later occurrence that replaces an overdue one', () => {
  const replacement = (state: AlarmState) => ({
    ...scheduled(alarmOf('cron')),
    fireId: `${state.alarm.id}@${NOW + 290 * MINUTE}`,
    scheduledFor: NOW + 290 * MINUTE,
    missedCount: 4,
  });
  const settled = (meanwhile: Meanwhile) => {
    const { state, fireId } = runningAttempt('cron', meanwhile);
    return complete(state, fireId, (given) => settleReplaced(given, fireId, replacement(given)));
  };

  test('replaces it', () => {
    assert.deepEqual(settled('active').occurrences, [replacement(alarmOf('cron'))]);
  });

  test('is dropped when the alarm was cancelled or got another schedule', () => {
    assert.deepEqual(settled('cancelled').occurrences, []);
    assert.equal(scheduled(settled('edited')).scheduledFor, NOW + 80 * MINUTE);
  });

  test('is dropped when the alarm was paused: the overdue one is parked as if it had not been claimed', () => {
    const { attempt, dueAt, scheduledFor } = scheduled(settled('paused'));
    assert.deepEqual([attempt, dueAt, scheduledFor], [0, null, NOW + 50 * MINUTE]);
  });
});

test('a store that settles an occurrence it did not pass gets an error', () => {
  assert.throws(() => settleDelivered(alarmOf('once'), 'nobody@1', NOW), /without passing it to the transition/);
});

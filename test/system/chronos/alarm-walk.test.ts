/**
 * A random walk over all events of one alarm: its owner's changes, outcomes of deliveries, vanished holders, elapsed
 * time. After every step the invariants must hold.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AlarmState, isClaimed, type Occurrence, scheduledOccurrence } from '../../../src/chronos/alarm/alarm.ts';
import { addBackfill, isBackfill, occurrencesBetween } from '../../../src/chronos/alarm/backfill.ts';
import {
  cancelAlarm,
  pauseAlarm,
  redriveAlarm,
  resumeAlarm,
  triggerAlarm,
} from '../../../src/chronos/alarm/lifecycle.ts';
import { optionsOf } from '../../../src/chronos/alarm/options.ts';
import { afterTurn } from '../../../src/chronos/alarm/policies.ts';
import { catchUp } from '../../../src/chronos/alarm/series.ts';
import {
  settleDeferred,
  settleDelivered,
  settleFailed,
  settleInterrupted,
  settleMissed,
  settleReplaced,
  settleSkipped,
} from '../../../src/chronos/alarm/settlement.ts';
import { type Body, claim, edit, NOW, release, setAlarm } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { checkTransition } from '../../../src/chronos/store/difference.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';

const MINUTE = 60_000;
const later = (ms: number) => new Date(NOW + ms).toISOString();

const creations: readonly Body[] = [
  { kind: 'once', delay_seconds: 90 },
  { kind: 'once', delay_seconds: 90, jitter_seconds: 120, max_failures: 2 },
  { kind: 'cron', cron_expr: '*/5 * * * *', max_failures: 3 },
  { kind: 'cron', cron_expr: '@every 45s', max_fires: 4 },
  { kind: 'cron', cron_expr: '*/2 * * * *', jitter_seconds: 3600, ends_at: later(40 * MINUTE) },
  { kind: 'cron', cron_expr: '*/2 * * * *', overlap: 'buffer_all', pause_on_failure: true, max_failures: 2 },
  { kind: 'cron', cron_expr: '*/2 * * * *', overlap: 'skip', pause_on_failure: true, max_fires: 5 },
];

const edits: readonly Body[] = [
  { label: 'other' },
  { jitter_seconds: 30 },
  { jitter_seconds: null },
  { max_failures: 1 },
  { delay_seconds: 30 },
  { fire_at: later(20 * MINUTE) },
  { cron_expr: '*/3 * * * *' },
  { cron_expr: '@every 20s' },
  { max_fires: 3 },
  { max_fires: null, ends_at: null },
  { ends_at: later(30 * MINUTE) },
  { overlap: 'buffer_one' },
  { overlap: null, pause_on_failure: false },
];

type Step =
  | { do: 'pass'; ms: number }
  | { do: 'pause' | 'resume' | 'cancel' | 'trigger' | 'redrive' | 'claim' | 'vanish' | 'backfill' }
  | { do: 'edit'; body: Body }
  | { do: 'settle'; outcome: Outcome }
  | { do: 'turn'; outcome: 'ok' | 'failed' };

const OUTCOMES = ['delivered', 'delivered', 'refused', 'gone', 'missed', 'skipped', 'waits'] as const;
type Outcome = (typeof OUTCOMES)[number];

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 4 * MINUTE }) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('claim' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      outcome: fc.constantFrom(...OUTCOMES),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'pause' as const,
        'resume' as const,
        'resume' as const,
        'trigger' as const,
        'redrive' as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('turn' as const),
      outcome: fc.constantFrom('ok' as const, 'failed' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('backfill' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'vanish' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('edit' as const), body: fc.constantFrom(...edits) }) },
);

const REPORT = {
  stage: 'turn_finished',
  at: NOW,
  error: null,
  retryAt: null,
  reply: null,
  turnId: null,
  conversationId: null,
  usage: null,
} as const;

/** One alarm, its clock, and an observer's record of it. */
/** How long after its last sign of life a process counts as gone. */
const GONE_MS = 2000;

class Walk {
  state: AlarmState;
  now = NOW;
  readonly delivered = new Set<string>();
  cancelledAt: number | undefined;
  /** The latest occurrence of the schedule since its last restart. */
  #latest: Occurrence | undefined;
  /** How often each action was performed and not refused, to show that the walk covers every action. */
  static readonly done = new Map<string, number>();

  constructor(body: Body) {
    this.state = setAlarm(body);
    this.check(this.state, 'begin');
  }

  /** Applies a transition as a store does; a refusal changes nothing. */
  #apply(name: string, given: AlarmState, transition: (state: AlarmState) => AlarmState): void {
    let after: AlarmState;
    try {
      after = transition(given);
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      assert.ok(['conflict', 'invalid_request', 'rate_limited'].includes(thrown.code), thrown.message);
      return;
    }
    checkTransition(given, after);
    this.check(after, name);
    this.state = after;
    Walk.done.set(name, (Walk.done.get(name) ?? 0) + 1);
  }

  step(step: Step): void {
    const { state, now } = this;
    switch (step.do) {
      case 'pass':
        this.now += step.ms;
        break;
      case 'pause':
        this.#apply(step.do, state, (given) => pauseAlarm(given, now));
        break;
      case 'resume':
        this.#apply(step.do, state, (given) => resumeAlarm(given, now));
        break;
      case 'cancel':
        this.#apply(step.do, state, (given) => cancelAlarm(given, now));
        break;
      case 'redrive':
        this.#apply(step.do, state, (given) => redriveAlarm(given, now));
        break;
      case 'trigger':
        this.#apply(step.do, state, (given) => {
          const triggered = triggerAlarm(given, now);
          assert.ok(!this.delivered.has(triggered.fireId), 'a trigger took the id of a fire that was delivered');
          return triggered.state;
        });
        break;
      case 'edit':
        this.#apply(step.do, state, (given) => edit(given, step.body, now));
        break;
      case 'turn':
        this.#apply(`turn ${step.outcome}`, state, (given) =>
          afterTurn(given, { ...REPORT, outcome: step.outcome }, now),
        );
        break;
      case 'backfill':
        this.#backfill();
        break;
      case 'claim':
        this.#claim();
        break;
      case 'vanish':
        this.#vanish();
        break;
      case 'settle':
        this.#settle(step.outcome);
        break;
    }
  }

  /** As the route does it: what the schedule has passed and did not deliver. */
  #backfill(): void {
    const { alarm } = this.state;
    if (alarm.kind === 'once' || alarm.status !== 'active') return;
    const until = scheduledOccurrence(this.state)!.nominal;
    const passed = [...occurrencesBetween(alarm, NOW - 10 * MINUTE, Math.min(until, this.now))];
    const occurrences = passed.filter(({ fireId }) => !this.delivered.has(fireId));
    this.#apply('backfill', this.state, (given) => addBackfill(given, { alarm, occurrences }, this.now)!.state);
  }

  #claim(): void {
    const due = this.state.occurrences.find(
      ({ dueAt, claimedAt }) => dueAt !== null && dueAt <= this.now && claimedAt === null,
    );
    if (!due) return;
    assert.ok(this.now >= due.scheduledFor, 'never early');
    assert.ok(!this.delivered.has(due.fireId), 'a delivered occurrence is not delivered again');
    assert.equal(this.cancelledAt, undefined, 'nothing starts after a cancel');
    this.state = claim(this.state, due.fireId, this.now);
    Walk.done.set('claim', (Walk.done.get('claim') ?? 0) + 1);
  }

  /** The process that claimed is gone. */
  #vanish(): void {
    this.now += GONE_MS;
    for (const { fireId, claimedAt } of this.state.occurrences) {
      const still = this.state.occurrences.find((occurrence) => occurrence.fireId === fireId);
      if (claimedAt === null || !still) continue;
      this.#apply('vanish', release(this.state, fireId), (given) => settleInterrupted(given, fireId));
    }
  }

  #settle(outcome: Outcome): void {
    // No delivery takes less than a millisecond.
    const now = ++this.now;
    const { state } = this;
    const claimed = state.occurrences.find(isClaimed);
    if (!claimed) return;
    const { fireId } = claimed;
    const given = release(state, fireId);
    const replacement = claimed.attempt === 1 ? catchUp(state.alarm, claimed, claimed.claimedAt!) : undefined;
    if (replacement) {
      this.#apply('replaced', given, (before) => settleReplaced(before, fireId, replacement));
      return;
    }
    if (outcome === 'delivered') this.delivered.add(fireId);
    const failure = { error: outcome, final: outcome === 'gone', retryAt: (n: number) => now + 30_000 * 2 ** n };
    this.#apply(outcome, given, (before) => {
      if (outcome === 'delivered') return settleDelivered(before, fireId, now);
      if (outcome === 'missed') return settleMissed(before, fireId, 'late');
      if (outcome === 'skipped') return settleSkipped(before, fireId, now);
      const until = now + MINUTE;
      const reason = 'the turn of the fire due NOW still runs (overlap: buffer_all)';
      if (outcome === 'waits') return settleDeferred(before, fireId, { until, dueAt: until, reason });
      return settleFailed(before, fireId, failure);
    });
  }

  check({ alarm, occurrences }: AlarmState, name: string): void {
    const scheduled = scheduledOccurrence({ alarm, occurrences });
    assert.equal(new Set(occurrences.map(({ fireId }) => fireId)).size, occurrences.length, 'fire ids are unique');
    assert.ok(occurrences.filter(({ source }) => source === 'schedule').length <= 1);
    switch (alarm.status) {
      case 'active':
        assert.notEqual(scheduled?.dueAt ?? null, null, `${name} left an active alarm that would never fire`);
        break;
      case 'paused':
        assert.equal(
          scheduled?.dueAt,
          null,
          `${name} left a paused alarm that would fire, or one that never can again`,
        );
        break;
      case 'failed':
        assert.equal(scheduled?.dueAt ?? null, null);
        break;
      case 'fired':
        assert.equal(scheduled, undefined);
        break;
      case 'cancelled':
        this.cancelledAt ??= this.now;
        assert.ok(occurrences.every(({ dueAt, claimedAt }) => dueAt === null && claimedAt !== null));
        break;
    }
    const filling = occurrences.filter((one) => isBackfill(alarm, one));
    assert.equal(
      filling.length,
      optionsOf(alarm).backfill === undefined ? 0 : 1,
      `${name} left a backfill that stands`,
    );
    for (const { dueAt, claimedAt } of filling)
      assert.ok(
        dueAt !== null || claimedAt !== null || alarm.status === 'paused',
        `${name} parked a backfill for ever`,
      );
    for (const { dueAt, scheduledFor } of occurrences) assert.ok(dueAt === null || dueAt >= scheduledFor);
    if (alarm.maxFires !== null) assert.ok(alarm.scheduledFires <= alarm.maxFires, 'max_fires is a maximum');

    if (name === 'edit') this.#latest = undefined;
    if (!scheduled) return;
    if (this.#latest && this.#latest.fireId !== scheduled.fireId)
      assert.ok(scheduled.scheduledFor > this.#latest.scheduledFor, `${name} moved the series back`);
    this.#latest = scheduled;
  }
}

test('an edit of the jitter ends a backfill, also while a fire is due', () => {
  const walk = new Walk({ kind: 'cron', cron_expr: '@every 45s', max_fires: 4 });
  const taken = { do: 'settle', outcome: 'delivered' } as const;
  const steps: Step[] = [
    ...[{ do: 'pass', ms: 89_999 } as const, { do: 'claim' } as const, taken, { do: 'claim' } as const, taken],
    ...[{ do: 'edit', body: { jitter_seconds: 30 } } as const, { do: 'backfill' } as const],
    ...[{ do: 'pass', ms: 60_465 } as const, { do: 'edit', body: { jitter_seconds: null } } as const],
    ...[1, 2, 3].flatMap((): Step[] => [{ do: 'claim' }, taken]),
  ];
  for (const step of steps) walk.step(step);
});

test('for every action of its owner and every outcome of its deliveries, an alarm keeps its invariants', () => {
  fc.assert(
    fc.property(fc.constantFrom(...creations), fc.array(steps, { maxLength: 60, size: 'max' }), (body, walk) => {
      const alarm = new Walk(body);
      for (const step of walk) alarm.step(step);
    }),
    { numRuns: 3000 },
  );
  const missing = [
    'pause',
    'resume',
    'cancel',
    'redrive',
    'trigger',
    'edit',
    'claim',
    'vanish',
    'replaced',
    'delivered',
  ]
    .concat(['refused', 'gone', 'missed', 'skipped', 'waits', 'backfill', 'turn ok', 'turn failed'])
    .filter((name) => (Walk.done.get(name) ?? 0) < 20);
  assert.deepEqual(missing, [], 'the walk did not reach every action');
});

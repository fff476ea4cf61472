import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import type { Budget } from '../../wire/budget.ts';
import { Account, type WakeRequest } from './account.ts';
import { limitsOf } from './slots.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The longest delay after the promised time, in milliseconds. */
const SLACK = 500;

const caller = (fireId: string, now: number, urgent = false): WakeRequest => ({ fireId, urgent, now, probeMs: 30_000 });
const deferred = (account: Account, budget: Budget, fireId: string, now: number, urgent = false) => {
  const decision = account.decide(budget, caller(fireId, now, urgent));
  assert.ok(!decision.go, `${fireId} should be deferred`);
  return decision;
};
const goes = (account: Account, budget: Budget, fireId: string, now: number, urgent = false) =>
  assert.deepEqual(account.decide(budget, caller(fireId, now, urgent)), { go: true }, fireId);

describe('an account', () => {
  test('promises each deferred wake its own time, and every wake passes at its first return', () => {
    const budget: Budget = { wakes_per_hour: 3, min_gap_seconds: 60 };
    const account = new Account([]);
    goes(account, budget, 'a', NOW);
    const untils = ['b', 'c', 'd', 'e'].map((fireId) => deferred(account, budget, fireId, NOW).until - NOW);
    assert.deepEqual(untils, [MINUTE, 2 * MINUTE + SLACK, HOUR, HOUR + MINUTE + SLACK]);
    // A small delay does not move another wake back.
    goes(account, budget, 'b', NOW + MINUTE + SLACK);
    goes(account, budget, 'c', NOW + untils[1]!);
    goes(account, budget, 'd', NOW + HOUR);
    goes(account, budget, 'e', NOW + untils[3]!);
  });

  test('keeps the promised time of a wake that returns early', () => {
    const budget: Budget = { wakes_per_hour: 2, min_gap_seconds: 60 };
    const account = new Account([]);
    goes(account, budget, 'a', NOW);
    const fires = ['b', 'c', 'd', 'e'];
    const untils = fires.map((fireId) => deferred(account, budget, fireId, NOW).until);
    const again = [3, 0, 2, 1].map((n) => [n, deferred(account, budget, fires[n]!, NOW + 20 * SECOND).until]);
    for (const [n, until] of again) assert.equal(until, untils[n!], fires[n!]);
  });

  test('names the rule that defers a wake', () => {
    const reason = (budget: Budget, counted: number[], now = NOW) =>
      deferred(new Account(counted.map((at, n) => ({ fireId: `old${n}`, at }))), budget, 'x', now).reason;
    assert.equal(
      reason({ wakes_per_hour: 1 }, [NOW - MINUTE]),
      "1 wake in the last hour is this user's budget; this one may go at 2026-06-15T12:59:00.000Z",
    );
    assert.match(
      reason({ wakes_per_day: 2 }, [NOW - 2, NOW - 1]),
      /^2 wakes in the last 24 hours are this user's budget;/,
    );
    assert.match(reason({ min_gap_seconds: 60 }, [NOW - 1]), /leaves at least 60 seconds between two wakes/);
    const quiet = { from: '11:00', to: '13:00', timezone: 'UTC' };
    assert.equal(reason({ quiet }, []), 'quiet hours of this user until 13:00 UTC');
    assert.equal(
      reason({ quiet, wakes_per_hour: 1 }, [NOW - MINUTE, NOW + HOUR]),
      'quiet hours of this user until 13:00 UTC; by the rest of the budget this one may go at 2026-06-15T14:00:00.000Z',
    );
  });

  test('lets an urgent wake go in quiet hours, but not past a limit', () => {
    const budget: Budget = { quiet: { from: '11:00', to: '13:00', timezone: 'UTC' }, wakes_per_hour: 1 };
    const account = new Account([]);
    assert.equal(deferred(account, budget, 'calm', NOW).until, NOW + HOUR);
    goes(account, budget, 'urgent', NOW, true);
    assert.match(deferred(account, budget, 'another', NOW, true).reason, /1 wake in the last hour/);
  });

  test('counts a fire once, and always admits one that may have been accepted', () => {
    const budget: Budget = { wakes_per_hour: 1, quiet: { from: '12:30', to: '13:00', timezone: 'UTC' } };
    const account = new Account([{ fireId: 'a', at: NOW - MINUTE }]);
    goes(account, budget, 'a', NOW);
    goes(account, budget, 'a', NOW + 40 * MINUTE);
    assert.equal(deferred(account, budget, 'b', NOW).until, NOW + HOUR);
  });

  test('gives the quota of a rejected wake to the next', () => {
    const budget: Budget = { wakes_per_hour: 1 };
    const account = new Account([]);
    goes(account, budget, 'a', NOW);
    account.uncount('a');
    goes(account, budget, 'b', NOW);
  });

  test('drops a promised time that was not used', () => {
    const budget: Budget = { min_gap_seconds: 600 };
    const account = new Account([{ fireId: 'old', at: NOW }]);
    assert.equal(deferred(account, budget, 'gone', NOW).until, NOW + 10 * MINUTE);
    assert.equal(deferred(account, budget, 'next', NOW).until, NOW + 20 * MINUTE + SLACK);
    goes(account, budget, 'fresh', NOW + 32 * MINUTE + SLACK);
  });

  test('admits every wake in the end, even if all return late', () => {
    const budget: Budget = { min_gap_seconds: 60, wakes_per_hour: 12 };
    const account = new Account([]);
    const queue = Array.from({ length: 30 }, (_, n) => ({ fireId: `f${n}`, at: NOW }));
    const accepted: number[] = [];
    for (let steps = 0; queue.length > 0; steps++) {
      assert.ok(steps < 600, `${queue.length} still wait`);
      queue.sort((one, other) => one.at - other.at);
      const wake = queue.shift()!;
      const decision = account.decide(budget, caller(wake.fireId, wake.at));
      if (decision.go) accepted.push(wake.at);
      else queue.push({ ...wake, at: decision.until + 5 * SECOND });
    }
    for (const { count, spanMs } of limitsOf(budget))
      for (const from of accepted) assert.ok(accepted.filter((at) => at >= from && at < from + spanMs).length <= count);
    assert.ok(accepted.at(-1)! - NOW < 4 * HOUR, 'not much later than they could be');
  });

  test('never exceeds a limit in any window, and admits every wake in the end', () => {
    const budgets = fc.record(
      {
        wakes_per_hour: fc.integer({ min: 1, max: 5 }),
        wakes_per_day: fc.integer({ min: 2, max: 12 }),
        min_gap_seconds: fc.integer({ min: 1, max: 1800 }),
        quiet: fc.constantFrom(
          { from: '22:00', to: '07:00', timezone: 'Europe/Berlin' },
          { from: '00:00', to: '23:00', timezone: 'America/New_York' },
          { from: '13:00', to: '12:50', timezone: 'Asia/Kolkata' },
        ),
      },
      { requiredKeys: ['wakes_per_hour'] },
    );
    const arrivals = fc.array(
      fc.record({
        after: fc.integer({ min: 0, max: 40 * MINUTE }),
        urgent: fc.boolean(),
        accepted: fc.integer({ min: 0, max: 9 }).map((n) => n > 1),
      }),
      { minLength: 1, maxLength: 30 },
    );
    fc.assert(
      fc.property(budgets, arrivals, (budget, coming) => {
        const account = new Account([]);
        const accepted: { at: number; urgent: boolean }[] = [];
        const asked = new Map<string, number>();
        let clock = NOW;
        const queue = coming.map(({ after, urgent, accepted: taken }, n) => {
          clock += after;
          return { at: clock, fireId: `f${n}`, urgent, taken };
        });
        for (let steps = 0; queue.length > 0; steps++) {
          assert.ok(steps < 2000, 'a wake is deferred for ever');
          queue.sort((one, other) => one.at - other.at);
          const wake = queue.shift()!;
          asked.set(wake.fireId, (asked.get(wake.fireId) ?? 0) + 1);
          const decision = account.decide(budget, caller(wake.fireId, wake.at, wake.urgent));
          if (!decision.go) {
            assert.ok(decision.until > wake.at);
            // On time, or a little late.
            queue.push({ ...wake, at: decision.until + (steps % 3) * 200 });
          } else if (wake.taken) accepted.push(wake);
          else account.uncount(wake.fireId);
        }
        assert.equal(accepted.length, coming.filter((one) => one.accepted).length);
        for (const [fireId, times] of asked) assert.ok(times <= 2, `${fireId} came ${times} times`);
        for (const { count, spanMs } of limitsOf(budget))
          for (const { at: from } of accepted)
            assert.ok(accepted.filter(({ at }) => at >= from && at < from + spanMs).length <= count);
        if (budget.quiet)
          for (const { at, urgent } of accepted) assert.ok(urgent || quietUntil(budget.quiet, at) === undefined);
      }),
      { numRuns: 150 },
    );
  });
});

describe('the circuit breaker', () => {
  const budget: Budget = { breaker: { failures: 2, pause_seconds: 60 } };
  const fails = (account: Account, fireId: string, now: number, error = 'it died') => {
    goes(account, budget, fireId, now);
    const since = account.failures;
    account.startFailed(budget, { since, now, error });
    account.undecided(since);
    account.uncount(fireId);
  };

  test('opens at the last allowed failure, and states the reason', () => {
    const account = new Account([]);
    fails(account, 'a', NOW);
    fails(account, 'a', NOW + SECOND, 'no such file');
    const { until, reason } = deferred(account, budget, 'a', NOW + 2 * SECOND);
    assert.equal(until, NOW + 61 * SECOND);
    assert.equal(
      reason,
      'the machine failed to start 2 times in a row (last: no such file); tried again at 2026-06-15T12:01:01.000Z',
    );
    assert.match(deferred(account, budget, 'urgent', NOW + 2 * SECOND, true).reason, /failed to start/);
  });

  test('then admits one probe; its failure doubles the pause, up to an hour', () => {
    const account = new Account([]);
    fails(account, 'a', NOW);
    let now = NOW;
    const pauses: number[] = [];
    for (let n = 0; n < 8; n++) {
      fails(account, 'a', now);
      const { until } = deferred(account, budget, 'b', now);
      pauses.push((until - now) / MINUTE);
      now = until;
    }
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    goes(account, budget, 'a', now);
    assert.equal(
      deferred(account, budget, 'b', now).until,
      now + 30_000,
      'the others wait for the result of the probe',
    );
    account.started();
    goes(account, budget, 'b', now);
    assert.ok(!account.isEmpty);
  });

  test('counts starts that failed together as one; a success resets the count', () => {
    const account = new Account([]);
    for (const fireId of ['a', 'b', 'c']) goes(account, budget, fireId, NOW);
    for (let n = 0; n < 3; n++) account.startFailed(budget, { since: 0, now: NOW, error: 'it died' });
    fails(account, 'd', NOW);
    deferred(account, budget, 'e', NOW);
    account.started();
    fails(account, 'e', NOW);
    goes(account, budget, 'e', NOW);
  });

  test('closes when the machine changes; failures of the earlier specification do not count', () => {
    const account = new Account([]);
    fails(account, 'a', NOW);
    fails(account, 'a', NOW);
    deferred(account, budget, 'b', NOW);
    const since = account.failures;
    account.machineChanged();
    account.startFailed(budget, { since, now: NOW, error: 'it died' });
    fails(account, 'b', NOW);
    goes(account, budget, 'b', NOW);
  });

  test('does not block when the probe ends without an answer or the clock is set back', () => {
    const account = new Account([]);
    fails(account, 'a', NOW);
    fails(account, 'a', NOW);
    goes(account, budget, 'a', NOW + MINUTE);
    account.undecided(account.failures);
    goes(account, budget, 'b', NOW + MINUTE);
    account.undecided(account.failures);
    assert.equal(deferred(account, budget, 'c', NOW - 24 * HOUR).until, NOW - 24 * HOUR + MINUTE);
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Account } from './account.ts';
import { type CountedTurn, limitsSpending, type Settled, spendingDeferral, spendingOf } from './spending.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NOW = Date.UTC(2026, 5, 15, 12);
const MINE = 'my-alarm';

const tokens = (count: number, cost_usd?: number): Settled => ({
  input_tokens: count,
  output_tokens: 0,
  ...(cost_usd === undefined ? {} : { cost_usd }),
});
let number = 0;
const turn = (ago: number, usage?: Settled, alarmId = MINE): CountedTurn => ({
  fireId: `${alarmId}@${number++}`,
  at: NOW - ago,
  usage,
});
const request = { now: NOW, alarmId: MINE };

test('a wake waits until the oldest turns have left the window, and the last one may exceed it', () => {
  const turns = [turn(HOUR, tokens(900)), turn(3 * HOUR, tokens(50)), turn(2 * HOUR, tokens(300))];
  assert.equal(spendingDeferral({ tokens_per_day: 1251 }, turns, request), undefined);
  const deferral = spendingDeferral({ tokens_per_day: 1000 }, turns, request)!;
  assert.equal(deferral.until, NOW - 2 * HOUR + DAY);
  assert.equal(
    deferral.reason,
    "this user's turns of the last 24 hours used 1250 tokens, and the budget is 1000 tokens; this one may go at 2026-06-16T10:00:00.000Z",
  );
  assert.equal(spendingDeferral({ tokens_per_day: 1250 }, turns, request)!.until, NOW - 3 * HOUR + DAY);
  assert.equal(spendingDeferral({ tokens_per_day: 1 }, turns, request)!.until, NOW - HOUR + DAY);
});

test('turns before the window do not count', () => {
  assert.equal(spendingDeferral({ tokens_per_day: 10 }, [turn(DAY, tokens(900))], request), undefined);
  assert.ok(spendingDeferral({ tokens_per_day: 10 }, [turn(DAY - 1, tokens(900))], request));
});

test('unknown usage counts as nothing, and the reason says how many turns have it', () => {
  const unknown = [turn(HOUR, 'unknown'), turn(HOUR, 'unknown'), turn(HOUR)];
  assert.equal(spendingDeferral({ tokens_per_day: 10, usd_per_day: 1 }, unknown, request), undefined);
  const { reason } = spendingDeferral({ tokens_per_day: 10 }, [...unknown, turn(HOUR, tokens(10))], request)!;
  assert.match(
    reason,
    /used 10 tokens, and the budget is 10 tokens; the usage of 3 of them is not fully known; this one/,
  );
  const cut: Settled = { input_tokens: 10, output_tokens: 0, incomplete: true };
  assert.match(
    spendingDeferral({ tokens_per_day: 10 }, [turn(HOUR, cut)], request)!.reason,
    /; the usage of 1 of them is not fully known;/,
  );
});

test('money counts where it is known', () => {
  const turns = [turn(HOUR, tokens(5000)), turn(2 * HOUR, tokens(10, 0.75)), turn(3 * HOUR, tokens(10, 0.5))];
  assert.equal(spendingDeferral({ usd_per_day: 1.26 }, turns, request), undefined);
  const { until, reason } = spendingDeferral({ usd_per_day: 1.25 }, turns, request)!;
  assert.equal(until, NOW - 3 * HOUR + DAY);
  assert.match(reason, /used \$1\.25, and the budget is \$1\.25; the usage of 1 of them is not fully known/);
});

test('a limit for each alarm counts only its own turns, and a wake without an alarm has none', () => {
  const turns = [turn(HOUR, tokens(900), 'another'), turn(2 * HOUR, tokens(100))];
  const budget = { tokens_per_alarm_per_day: 100 };
  assert.match(
    spendingDeferral(budget, turns, request)!.reason,
    /^the turns of this alarm of the last 24 hours used 100/,
  );
  assert.equal(spendingDeferral({ tokens_per_alarm_per_day: 101 }, turns, request), undefined);
  assert.equal(spendingDeferral(budget, turns, { now: NOW, alarmId: undefined }), undefined);
  assert.equal(spendingDeferral({ usd_per_alarm_per_day: 1 }, turns, request), undefined);
});

test('the latest instant of several limits counts', () => {
  const turns = [turn(HOUR, tokens(10, 3)), turn(5 * HOUR, tokens(990, 0.1))];
  const { until, reason } = spendingDeferral({ tokens_per_day: 500, usd_per_day: 1 }, turns, request)!;
  assert.equal(until, NOW - HOUR + DAY);
  assert.match(reason, /\$3\.10/);
});

test('while a turn is under way, the others leave it as much as the largest turn used', () => {
  const turns = [turn(HOUR, tokens(400)), turn(MINUTE)];
  assert.equal(spendingDeferral({ tokens_per_day: 801 }, turns, request), undefined);
  const { until, reason } = spendingDeferral({ tokens_per_day: 800 }, turns, request)!;
  assert.equal(until, NOW + 30_000);
  assert.match(reason, /used 400 tokens, and the budget is 800 tokens; a turn under way may use the rest; tried again/);
  // A turn that never reports its end does not stop the alarms.
  assert.equal(
    spendingDeferral({ tokens_per_day: 800 }, [turn(HOUR, tokens(400)), turn(15 * MINUTE)], request),
    undefined,
  );
  // Nothing is known of the first turns.
  assert.equal(spendingDeferral({ tokens_per_day: 1 }, [turn(MINUTE), turn(MINUTE)], request), undefined);
});

test('a budget of wakes, or of tokens in a turn, does not limit what turns use in a day', () => {
  assert.ok(!limitsSpending({ wakes_per_day: 5, tokens_per_turn: 100 }));
  for (const member of ['tokens_per_day', 'usd_per_day', 'tokens_per_alarm_per_day', 'usd_per_alarm_per_day'])
    assert.ok(limitsSpending({ [member]: 5 }));
});

test('the view counts the turns of the window', () => {
  const turns = [turn(DAY, tokens(9)), turn(HOUR, tokens(7, 0.5)), turn(HOUR, 'unknown'), turn(MINUTE)];
  assert.deepEqual(spendingOf(turns, NOW), { turns: 3, tokens: 7, cost_usd: 0.5, unknown: 1, under_way: 1 });
});

test('wakes that return together go one after the other, and each sees what the one before used', () => {
  const budget = { tokens_per_day: 100 };
  const account = new Account([{ fireId: `${MINE}@first`, at: NOW - HOUR, usage: tokens(150) }]);
  const decide = (fireId: string, now: number, urgent = false) =>
    account.decide(budget, { fireId: `${MINE}@${fireId}`, alarmId: MINE, urgent, now, probeMs: 1000 });
  const free = NOW - HOUR + DAY;
  for (const fireId of ['a', 'b', 'c']) {
    const decision = decide(fireId, NOW, true);
    assert.equal(!decision.go && decision.until, free, 'urgent or not');
  }
  assert.ok(decide('a', free).go);
  for (const fireId of ['b', 'c']) {
    const decision = decide(fireId, free);
    assert.equal(!decision.go && decision.until, free + 30_000);
  }
  assert.ok(decide('a', free + 1000).go, 'a wake that may have been accepted is repeated');
  assert.deepEqual(account.unsettled(), [`${MINE}@a`]);
  assert.ok(account.settle(`${MINE}@a`, tokens(60)));
  assert.ok(!account.settle(`${MINE}@a`, tokens(70)), 'the first report counts');
  assert.ok(decide('b', free + 30_000).go);
  assert.ok(account.settle(`${MINE}@b`, tokens(45)));
  const decision = decide('c', free + 30_000);
  assert.equal(!decision.go && decision.until, free + DAY);
});

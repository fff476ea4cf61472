import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fireIdOf } from '../../../../src/wire/fire-id.ts';
import { callOn, createOf, found, lastAttempt, planted, verdictOn, wakeOf } from '../broken-day.ts';

planted(
  3,
  'an attempt that started after the answer',
  /was cancelled by \S+, and attempt 1 at \S+ started at/,
  (draft, { cancelled, plain }) => {
    const cancel = callOn(draft, 'cancel', cancelled);
    const startedAt = cancel.answeredAt! + 60_000;
    const fireId = fireIdOf(cancelled, createOf(draft, cancelled).invokedAt + 1 + 60_000);
    const template = { ...lastAttempt(draft, plain), alarmId: cancelled, fireId, attempt: 1, startedAt };
    draft.database.attempts.push({
      ...template,
      finishedAt: startedAt + 10,
      outcome: 'failed',
      error: 'no',
      scheduledFor: startedAt,
    });
  },
);

planted(
  3,
  'an attempt that is running as the logs end, and was claimed after the answer',
  /was cancelled by \S+, and attempt 2 at \S+ was claimed at/,
  (draft, { inFlight }) => {
    const attempt = lastAttempt(draft, inFlight);
    Object.assign(attempt, { outcome: 'failed', error: 'busy' });
    const claimed = found(draft.database.occurrences, ({ claimedAt }) => claimedAt !== null);
    const { alarmId, owner, fireId } = attempt;
    draft.database.occurrences.push({ ...claimed, alarmId, owner, fireId, attempt: 2, fence: 2 });
  },
);

planted(3, 'a wake without a running attempt', /and the wake of \S+ arrived at/, (draft, { inFlight }) => {
  const late = { ...wakeOf(draft, inFlight) };
  late.receivedAt += 60_000;
  late.attempt = 2;
  draft.receiver.wakes.push(late);
  // The database has begun this one.
  const attempt = lastAttempt(draft, inFlight);
  attempt.outcome = 'unknown';
  draft.database.attempts.push({
    ...attempt,
    attempt: 2,
    startedAt: late.receivedAt - 3,
    finishedAt: late.receivedAt + 3,
  });
  draft.database.audit = null;
});

planted(3, 'a cancel without effect', /was cancelled by \S+, and is active in the database/, (draft, { later }) => {
  const at = draft.database.readAt - 100;
  draft.client.calls.push({
    user: 'ada',
    operation: { op: 'cancel', alarmId: later },
    invokedAt: at,
    answeredAt: at + 2,
    answer: { answer: 'acknowledged', alarmId: later, status: 'cancelled', inFlight: false },
  });
});

planted(
  3,
  'a claim that the audit shows after the cancel',
  /was claimed at \S+, when the alarm was cancelled already/,
  (draft, { inFlight }) => {
    const audit = draft.database.audit!;
    const cancel = found(
      audit,
      ({ table, after }) => table === 'alarms' && after?.id === inFlight && after.status === 'cancelled',
    );
    const claim = found(
      audit,
      ({ table, after }) => table === 'occurrences' && after?.alarmId === inFlight && after.claimedAt !== null,
    );
    const early = audit.splice(audit.indexOf(cancel), 1)[0]!;
    early.seq = claim.seq - 0.5;
    audit.splice(audit.indexOf(claim), 0, early);
  },
);

test('an attempt claimed before the cancel that began a little later is in flight, as the answer reported', async () => {
  const { broken } = await verdictOn((draft, { inFlight }) => {
    const attempt = lastAttempt(draft, inFlight);
    attempt.startedAt = callOn(draft, 'cancel', inFlight).answeredAt! + 1000;
    attempt.finishedAt = attempt.startedAt + 5;
  });
  assert.deepEqual(broken, []);
});

test('an alarm that failed before its cancel may be redriven after it', async () => {
  const { broken } = await verdictOn((draft, { redriven }) => {
    const { invokedAt } = callOn(draft, 'redrive', redriven);
    draft.client.calls.push({
      user: 'ada',
      operation: { op: 'cancel', alarmId: redriven },
      invokedAt: invokedAt - 30_000,
      answeredAt: invokedAt - 29_998,
      answer: { answer: 'acknowledged', alarmId: redriven, status: 'failed', inFlight: false },
    });
  });
  assert.deepEqual(broken, []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fireIdOf } from '../../../../src/wire/fire-id.ts';
import { attemptsOf, lastAttempt, planted, verdictOn, wakeOf } from '../broken-day.ts';
import type { AuditEntry } from '../history.ts';

planted(2, 'an attempt that started a millisecond before it was due', /1 ms before it was due/, (draft, { plain }) => {
  const attempt = lastAttempt(draft, plain);
  attempt.startedAt = attempt.scheduledFor - 1;
});

planted(
  2,
  'a wake that arrived before the time in its fire id',
  /the wake of \S+ arrived at \S+, 10 ms before it was due/,
  (draft, { plain }) => {
    const wake = wakeOf(draft, plain);
    wake.receivedAt = Number(wake.fireId.split('@')[1]) - 10;
  },
);

test('a wake within the declared tolerance of its log is no violation', async () => {
  const { broken } = await verdictOn((draft, { plain }) => {
    draft.receiver.clockToleranceMs = 10;
    const wake = wakeOf(draft, plain);
    wake.receivedAt = Number(wake.fireId.split('@')[1]) - 10;
  });
  assert.deepEqual(broken, []);
});

// A name with another time than the requested one also violates the sixth invariant.
planted(
  [2, 6],
  'a wake before the requested time, with another fire id',
  /"plants"\) was asked for \S+, and the wake of \S+ arrived at/,
  (draft, { plain }) => {
    const { fireId, receivedAt } = wakeOf(draft, plain);
    const early = fireIdOf(plain, Number(fireId.split('@')[1]) - 15_000);
    for (const list of [draft.receiver.wakes, draft.receiver.turns!, draft.database.attempts])
      for (const item of list) if (item.fireId === fireId) item.fireId = early;
    wakeOf(draft, plain).receivedAt = receivedAt - 15_000;
  },
);

planted(
  2,
  'a retry that was claimed before its due time',
  /attempt 2 at \S+ was claimed at \S+, 5 ms before/,
  (draft, { refused }) => {
    const claims = draft.database.audit!.filter(
      ({ table, before, after }) =>
        table === 'occurrences' &&
        before?.alarmId === refused &&
        after?.claimedAt !== null &&
        before.claimedAt === null,
    );
    const { before, after } = claims[1] as Extract<AuditEntry, { table: 'occurrences' }>;
    after!.claimedAt = before!.dueAt! - 5;
  },
);

test('a retry after the clock was set back is not early: the occurrence had been due before', async () => {
  const { broken } = await verdictOn((draft, { refused }) => {
    // It went back by an hour during the first attempt.
    for (const attempt of attemptsOf(draft, refused)) {
      if (attempt.attempt > 1) attempt.startedAt -= 3_600_000;
      attempt.finishedAt -= 3_600_000;
    }
  });
  assert.deepEqual(broken, []);
});

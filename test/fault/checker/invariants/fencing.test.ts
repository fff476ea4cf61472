import { attemptsOf, found, lastAttempt, planted, wakeOf, without } from '../broken-day.ts';

planted(
  7,
  'a gap in the numbers of attempts',
  /attempt 2 at \S+ is missing from the ledger, which goes up to 3/,
  (draft, { refused }) => {
    without(draft.database.attempts, ({ alarmId, attempt }) => alarmId === refused && attempt === 2);
  },
);

planted(
  7,
  'one attempt that was recorded twice',
  /attempt 1 at \S+ is in the ledger more than once/,
  (draft, { plain }) => {
    const attempt = lastAttempt(draft, plain);
    draft.database.attempts.push({
      ...attempt,
      startedAt: attempt.startedAt + 1,
      outcome: 'unknown',
      error: 'interrupted',
    });
  },
);

planted(
  7,
  'an attempt after the delivered one',
  /attempt 1 at \S+ was delivered at \S+, and attempt 2 \(delivered/,
  (draft, { plain }) => {
    const attempt = lastAttempt(draft, plain);
    const startedAt = attempt.finishedAt + 30_000;
    draft.database.attempts.push({ ...attempt, attempt: 2, startedAt, finishedAt: startedAt + 6 });
  },
);

// An attempt during the one before is also too early.
planted(
  [7, 10],
  'two attempts at the same time',
  /attempt 2 at \S+ started at \S+, while attempt 1 ran until/,
  (draft, { refused }) => {
    const [first, second] = attemptsOf(draft, refused).sort((a, b) => a.attempt - b.attempt);
    first!.outcome = 'failed';
    first!.finishedAt = second!.startedAt + 1;
  },
);

planted(
  7,
  'an occurrence with another attempt number than its ledger',
  /has attempt 5, and its ledger and claim have 1/,
  (draft, { retrying }) => {
    Object.assign(
      found(draft.database.occurrences, ({ alarmId }) => alarmId === retrying),
      { attempt: 5, fence: 5 },
    );
  },
);

planted(
  7,
  "a fence that went back below its occurrence's attempts",
  /has fence 0 after 1 attempts/,
  (draft, { retrying }) => {
    found(draft.database.occurrences, ({ alarmId }) => alarmId === retrying).fence = 0;
  },
);

planted(
  7,
  'one attempt that arrived twice',
  /attempt 1 at \S+ arrived more than once: two holders had it/,
  (draft, { plain }) => {
    draft.receiver.wakes.push({ ...wakeOf(draft, plain), status: 200 });
  },
);

planted(7, 'a wake without an attempt', /neither the ledger nor the queue has an attempt/, (draft, { series }) => {
  const { fireId } = lastAttempt(draft, series);
  without(draft.database.attempts, (attempt) => attempt.fireId === fireId);
});

planted(
  7,
  'an overwritten ledger, as the audit shows',
  /was changed in the ledger, which is append-only/,
  (draft, { plain }) => {
    const { fireId, alarmId, attempt } = lastAttempt(draft, plain);
    const image = { fireId, alarmId, attempt, outcome: 'unknown' as const };
    draft.database.audit!.push({
      table: 'fire_attempts',
      seq: 1e9,
      transaction: null,
      at: 0,
      before: image,
      after: { ...image, outcome: 'delivered' },
    });
  },
);

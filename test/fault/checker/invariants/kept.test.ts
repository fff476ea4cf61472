import { alarmOf, found, lastAttempt, planted, without } from '../broken-day.ts';

planted(
  1,
  'an acknowledged alarm that is not in the database',
  /acknowledged and is not in the database/,
  (draft, { plain }) => {
    without(draft.database.alarms, ({ id }) => id === plain);
  },
);

planted(
  1,
  'an alarm that was cancelled without a request',
  /"stubborn".* is cancelled, and its owner never asked/,
  (draft, { refused }) => {
    alarmOf(draft, refused).status = 'cancelled';
  },
);

planted(
  1,
  'an alarm with status fired that never arrived',
  /has status fired, and the receiver accepted no wake/,
  (draft, { plain }) => {
    without(draft.receiver.wakes, ({ fireId }) => fireId.startsWith(plain));
    without(draft.receiver.turns!, ({ fireId }) => fireId.startsWith(plain));
  },
);

planted(
  1,
  'one delivery of a series that never arrived',
  /the ledger records attempt 1 at \S+ as delivered/,
  (draft, { series }) => {
    const { fireId } = lastAttempt(draft, series);
    without(draft.receiver.wakes, (wake) => wake.fireId === fireId);
    without(draft.receiver.turns!, (turn) => turn.fireId === fireId);
  },
);

planted(1, 'a failure without an error', /"in vain".* has failed, and has no error/, (draft, { exhausted }) => {
  alarmOf(draft, exhausted).lastError = null;
});

planted(1, 'an alarm that was paused without a request', /is paused, and its owner never asked/, (draft, { later }) => {
  alarmOf(draft, later).status = 'paused';
});

planted(
  1,
  'an active alarm without a pending occurrence',
  /"much later".* is active, was never delivered/,
  (draft, { later }) => {
    without(draft.database.occurrences, ({ alarmId }) => alarmId === later);
  },
);

planted(
  [1, 9],
  'an overdue alarm without a claim',
  /"not yet"\): \S+ was due at \S+ and by \S+ it was not claimed/,
  (draft, { retrying }) => {
    found(draft.database.occurrences, ({ alarmId }) => alarmId === retrying).dueAt = draft.database.readAt - 21_000;
  },
);

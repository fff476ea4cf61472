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
  'an alarm that is cancelled and nobody asked for it',
  /"stubborn".* is cancelled, and its owner never asked/,
  (draft, { refused }) => {
    alarmOf(draft, refused).status = 'cancelled';
  },
);

planted(
  1,
  'an alarm that is called fired and never arrived',
  /called fired, and the receiving end accepted nothing/,
  (draft, { plain }) => {
    without(draft.receiver.wakes, ({ fireId }) => fireId.startsWith(plain));
    without(draft.receiver.turns!, ({ fireId }) => fireId.startsWith(plain));
  },
);

planted(
  1,
  'one delivery of a series that never arrived',
  /the ledger calls attempt 1 at \S+ delivered/,
  (draft, { series }) => {
    const { fireId } = lastAttempt(draft, series);
    without(draft.receiver.wakes, (wake) => wake.fireId === fireId);
    without(draft.receiver.turns!, (turn) => turn.fireId === fireId);
  },
);

planted(1, 'a failure without an error', /"in vain".* has failed, and no error says why/, (draft, { exhausted }) => {
  alarmOf(draft, exhausted).lastError = null;
});

planted(
  1,
  'an alarm that is paused and nobody asked for it',
  /is paused, and its owner never asked/,
  (draft, { later }) => {
    alarmOf(draft, later).status = 'paused';
  },
);

planted(
  1,
  'an active alarm of which nothing is owed',
  /"much later".* is active, was never delivered/,
  (draft, { later }) => {
    without(draft.database.occurrences, ({ alarmId }) => alarmId === later);
  },
);

planted(
  [1, 9],
  'an alarm that is overdue and lies about',
  /"not yet"\): \S+ was due at \S+ and by \S+ nobody had taken it/,
  (draft, { retrying }) => {
    found(draft.database.occurrences, ({ alarmId }) => alarmId === retrying).dueAt = draft.database.readAt - 21_000;
  },
);

import assert from 'node:assert/strict';
import { fireIdOf } from '../../../../src/wire/fire-id.ts';
import {
  alarmOf,
  attemptsOf,
  callOn,
  createOf,
  type Draft,
  definitionOf,
  lastAttempt,
  planted,
  turnOf,
  wakeOf,
  without,
} from '../broken-day.ts';
import type { AuditEntry } from '../history.ts';

const MINUTE = 60_000;

/** Gives an occurrence of a series another time in all logs. */
const move = (draft: Draft, from: string, to: string) => {
  const due = Number(to.split('@')[1]);
  for (const attempt of draft.database.attempts)
    if (attempt.fireId === from) Object.assign(attempt, { fireId: to, scheduledFor: due });
  for (const list of [draft.receiver.wakes, draft.receiver.turns!])
    for (const item of list) if (item.fireId === from) item.fireId = to;
  draft.database.audit = null;
};

planted(
  6,
  'a series that drifts by a second',
  /"breaks"\) ran as \S+, and "\*\/5 \* \* \* \*" \(Europe\/Berlin\) has no target/,
  (draft, { series }) => {
    const { fireId, scheduledFor, startedAt } = lastAttempt(draft, series);
    assert.ok(startedAt >= scheduledFor);
    move(draft, fireId, fireIdOf(series, scheduledFor - 1000));
  },
);

planted(
  6,
  'a target without a run and without a report',
  /the target \S+ has no run, and \S+, the next one, reports 0 skipped occurrences/,
  (draft, { series }) => {
    const runs = attemptsOf(draft, series).filter(({ missedCount }) => missedCount === 0);
    const { fireId } = runs.sort((a, b) => a.startedAt - b.startedAt)[1]!;
    without(draft.database.attempts, (attempt) => attempt.fireId === fireId);
    without(draft.receiver.wakes, (wake) => wake.fireId === fireId);
    without(draft.receiver.turns!, (turn) => turn.fireId === fireId);
    draft.database.audit = null;
  },
);

planted(6, 'a run that reports too many skipped occurrences', /reports 9 skipped occurrences/, (draft, { series }) => {
  const runs = attemptsOf(draft, series).filter(
    ({ missedCount, scheduledFor }) => missedCount === 0 && scheduledFor % (5 * MINUTE) === 0,
  );
  runs[0]!.missedCount = 9;
});

planted(
  6,
  'an active series without a pending occurrence',
  /"breaks"\) is active, and its series has no pending occurrence/,
  (draft, { series }) => {
    without(draft.database.occurrences, ({ alarmId, source }) => alarmId === series && source === 'schedule');
  },
);

planted(
  6,
  'a series that was shown without its next time',
  /shown active without a next_fire_at \(read/,
  (draft, { series }) => {
    const { answer } = callOn(draft, 'read', series);
    assert.ok(answer.answer === 'acknowledged');
    answer.nextFireAt = null;
  },
);

planted(
  6,
  'a series that ended too early',
  /"breaks"\) has ended, and the target \S+ has no run/,
  (draft, { series }) => {
    const { fireId } = lastAttempt(draft, series);
    alarmOf(draft, series).status = 'fired';
    without(draft.database.occurrences, ({ alarmId }) => alarmId === series);
    for (const list of [draft.database.attempts, draft.receiver.wakes, draft.receiver.turns!])
      without<{ fireId: string }>(list, (item) => item.fireId === fireId);
  },
);

planted(
  6,
  'a bounded series that was delivered too often',
  /was delivered 2 times, and max_fires is 1/,
  (draft, { bounded }) => {
    definitionOf(draft, bounded).maxFires = 1;
  },
);

planted(6, 'an occurrence that was dropped although it was in time', /was dropped at/, (draft, { missed }) => {
  definitionOf(draft, missed).maxLatenessSeconds = 3600 * 24;
});

planted(
  6,
  'an attempt that started too late',
  /started \d+ ms after it was due, and it had 1000 ms/,
  (draft, { refused }) => {
    definitionOf(draft, refused).maxLatenessSeconds = 1;
  },
);

planted(6, 'a single alarm that ran twice', /and the request has no target at/, (draft, { plain }) => {
  const attempt = lastAttempt(draft, plain);
  const again = { ...attempt, scheduledFor: attempt.scheduledFor + MINUTE, startedAt: attempt.startedAt + MINUTE };
  again.finishedAt = again.startedAt + 6;
  again.fireId = fireIdOf(plain, again.scheduledFor);
  draft.database.attempts.push(again);
  draft.receiver.wakes.push({ ...wakeOf(draft, plain), fireId: again.fireId, receivedAt: again.startedAt + 3 });
  draft.receiver.turns!.push({ ...turnOf(draft, plain), fireId: again.fireId });
});

planted(6, 'a series whose times go back, as the audit shows', /its times must grow/, (draft, { series }) => {
  const came = draft.database.audit!.filter(
    ({ table, before, after }) =>
      table === 'occurrences' && before === null && after?.alarmId === series && after.source === 'schedule',
  ) as Extract<AuditEntry, { table: 'occurrences' }>[];
  came[2]!.after!.nominal = came[0]!.after!.nominal;
});

planted(
  6,
  'a schedule that the oracle cannot read',
  /cannot be compared with the oracle, which cannot read "\*\/5 \* \* \* \*" in "Mars\/Olympus"/,
  (draft, { series }) => {
    definitionOf(draft, series).timezone = 'Mars/Olympus';
  },
);

planted(
  6,
  'an alarm that was set by a clock with an error of an hour',
  /"unsure"\) was set at \S+ by the database's clock, and its owner did so between/,
  (draft, { repeated }) => {
    for (const call of draft.client.calls) {
      if (call.operation.op !== 'create' || call.operation.key !== 'unsure') continue;
      call.invokedAt -= 3_600_000;
      call.answeredAt! -= 3_600_000;
    }
    assert.ok(repeated);
  },
);

planted(
  6,
  'an answer that names another time than the schedule does',
  /"breaks"\) was acknowledged for \S+, and its schedule names/,
  (draft, { series }) => {
    const { answer } = createOf(draft, series);
    assert.ok(answer.answer === 'acknowledged');
    answer.nextFireAt! += 1;
  },
);

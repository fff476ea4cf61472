import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Draft, found, planted, verdictOn } from '../broken-day.ts';

const claimedOf = ({ database }: Draft) => found(database.occurrences, ({ claimedAt }) => claimedAt !== null);

planted(9, 'a claim that no process has any more', /\S+ was claimed at \S+, and at \S+ it still was/, (draft) => {
  claimedOf(draft).claimedAt = draft.database.readAt - draft.policy.longestClaimMs - 1;
});

planted(
  9,
  'the next occurrence of a series that is not claimed',
  /was due at \S+ and by \S+ it was not claimed/,
  (draft, { series }) => {
    found(draft.database.occurrences, ({ alarmId }) => alarmId === series).dueAt = draft.database.readAt - 20_001;
  },
);

test('an installation has time to recover after a fault', async () => {
  const { broken } = await verdictOn((draft, { series }) => {
    claimedOf(draft).claimedAt = draft.database.readAt - 120_000;
    found(draft.database.occurrences, ({ alarmId }) => alarmId === series).dueAt = draft.database.readAt - 60_000;
    draft.database.wholeSince = draft.database.readAt - 1_000;
  });
  assert.deepEqual(broken, []);
});

test("an occurrence behind hanging wakes of its owner is not lost, and does not excuse other users' delays", async () => {
  const hang = (owner: string) =>
    verdictOn((draft, { series }) => {
      const occurrence = found(draft.database.occurrences, ({ alarmId }) => alarmId === series);
      occurrence.dueAt = draft.database.readAt - 60_000;
      const claimed = claimedOf(draft);
      for (let n = 0; n < draft.policy.userConcurrency; n++)
        draft.database.occurrences.push({
          ...claimed,
          owner,
          alarmId: `hanging-${n}`,
          fireId: `hanging-${n}@1`,
          attempt: 1,
          fence: 1,
        });
    });
  assert.deepEqual((await hang('ada')).broken, []);
  assert.deepEqual((await hang('carol')).broken, [9]);
});

import { fireIdOf } from '../../../../src/wire/fire-id.ts';
import { found, planted, turnOf, wakeOf, without } from '../broken-day.ts';

planted(4, 'two turns of one occurrence', /\S+ has 2 turns/, (draft, { plain }) => {
  draft.receiver.turns!.push({ ...turnOf(draft, plain) });
});

planted(4, 'an accepted wake without a turn', /was accepted, and no turn ran/, (draft, { plain }) => {
  without(draft.receiver.turns!, ({ fireId }) => fireId.startsWith(plain));
});

planted(
  4,
  'a message that lost a space',
  /carries the message "water the plants \\u0007" where/,
  (draft, { plain }) => {
    for (const item of [wakeOf(draft, plain), turnOf(draft, plain)]) item.message = item.message.trimEnd();
  },
);

planted(4, 'a payload that was parsed and written again', /carries the payload/, (draft) => {
  const wake = found(draft.receiver.wakes, ({ payload }) => payload?.includes('12345678901234567890') === true);
  wake.payload = JSON.stringify(JSON.parse(wake.payload!));
});

planted(
  4,
  'a turn in another conversation',
  /carries the conversation "attic" where "garden" was set/,
  (draft, { refused }) => {
    turnOf(draft, refused).conversation = 'attic';
  },
);

planted(4, 'a wake without an alarm', /belongs to no requested alarm/, (draft, { plain }) => {
  const wake = wakeOf(draft, plain);
  draft.receiver.wakes.push({
    ...wake,
    fireId: fireIdOf('019fffff-0000-7000-8000-000000000000', wake.receivedAt),
    status: 503,
  });
});

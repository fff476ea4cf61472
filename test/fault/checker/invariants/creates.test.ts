import type { Alarm } from '../../../../src/chronos/alarm/alarm.ts';
import { alarmOf, createOf, type Draft, planted } from '../broken-day.ts';

const secondRow = (draft: Draft, id: string, change: Partial<Alarm>) => {
  const copy = '019fffff-0000-7000-8000-000000000001';
  draft.database.alarms.push({ ...alarmOf(draft, id), id: copy, status: 'fired', ...change });
};

planted(
  5,
  'two alarms under the key of a lost create',
  /the key "unsure" of ada belongs to 2 alarms/,
  (draft, { repeated }) => {
    secondRow(draft, repeated, {});
  },
);

planted(
  5,
  'a repeated create that was answered with another alarm',
  /the key "plants" of ada was acknowledged as 2 alarms/,
  (draft, { plain, refused }) => {
    const repeat = { ...createOf(draft, refused) };
    const { operation } = createOf(draft, plain);
    draft.client.calls.push({
      ...repeat,
      operation:
        operation.op === 'create'
          ? { ...operation, definition: (repeat.operation as typeof operation).definition }
          : operation,
    });
  },
);

planted(
  5,
  'a refused create that left an alarm',
  /the key "plants" of ada made 1 alarms that no answer named/,
  (draft, { plain }) => {
    secondRow(draft, plain, { status: 'cancelled' });
  },
);

planted(
  5,
  'an alarm without a create',
  /bob has the alarm \S+ \("unheard of"\) and asked for no such thing/,
  (draft, { plain }) => {
    secondRow(draft, plain, { owner: 'bob', idempotencyKey: null, wakeMessage: 'unheard of' });
  },
);

planted(
  5,
  'an alarm under a key that was never used',
  /under the key "strange", which was never used/,
  (draft, { plain }) => {
    secondRow(draft, plain, { idempotencyKey: 'strange' });
  },
);

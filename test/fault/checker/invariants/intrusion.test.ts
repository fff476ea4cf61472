import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alarmOf, createOf, type Draft, found, planted, verdictOn, wakeOf } from '../broken-day.ts';

const intrusionOn = (draft: Draft, id: string, action: string) =>
  found(
    draft.client.calls,
    ({ operation }) => operation.op === 'intrude' && operation.alarmId === id && operation.action === action,
  );

planted(8, 'a granted intrusion', /bob's cancel of alarm \S+ \("plants"\) at \S+ was granted/, (draft, { plain }) => {
  intrusionOn(draft, plain, 'cancel').answer = { answer: 'acknowledged', alarmId: plain, revealed: '{}' };
});

planted(8, 'a refusal that reveals a secret', /revealed "water the plants/, (draft, { plain }) => {
  intrusionOn(draft, plain, 'cancel').answer = {
    answer: 'refused',
    code: 'not_found',
    message: 'not yours: water the plants \\u0007 ',
  };
});

planted(
  8,
  'a refusal that reveals that the alarm exists',
  /was answered conflict, which reveals/,
  (draft, { plain }) => {
    intrusionOn(draft, plain, 'cancel').answer = { answer: 'refused', code: 'conflict', message: 'it has fired' };
  },
);

planted(
  8,
  "a list that shows another's alarm",
  /bob's list of alarm \S+ \("plants"\) at \S+ showed it/,
  (draft, { plain }) => {
    intrusionOn(draft, plain, 'list').answer = { answer: 'acknowledged', revealed: JSON.stringify([{ id: plain }]) };
  },
);

planted(
  8,
  'an alarm that an intruder changed',
  /the message of alarm \S+ \("breaks"\) is now "pwned", which its owner never set/,
  (draft, { series }) => {
    alarmOf(draft, series).wakeMessage = 'pwned';
  },
);

planted(8, 'a wake that reached another user', /belongs to ada and reached bob/, (draft, { plain }) => {
  wakeOf(draft, plain).user = 'bob';
});

test("an action on another owner's alarm is an intrusion, whatever its name in the log", async () => {
  const { broken } = await verdictOn((draft, { plain }) => {
    draft.client.calls.push({ ...createOf(draft, plain), user: 'bob', operation: { op: 'cancel', alarmId: plain } });
  });
  assert.deepEqual(broken, [8]);
});

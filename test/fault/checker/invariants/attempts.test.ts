import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attemptsOf, callOn, definitionOf, found, planted, verdictOn, without } from '../broken-day.ts';

planted(10, 'more attempts than max_failures', /was attempted 3 times, and 2 are allowed/, (draft, { refused }) => {
  definitionOf(draft, refused).maxFailures = 2;
});

planted(
  10,
  'an attempt after a final refusal',
  /started at \S+, after a final refusal \(410\)/,
  (draft, { refused }) => {
    found(attemptsOf(draft, refused), ({ attempt }) => attempt === 1).httpStatus = 410;
  },
);

planted(
  10,
  'a retry that came too early',
  /started at \S+, 999 ms after attempt 1 had been refused/,
  (draft, { refused }) => {
    const [first, second] = attemptsOf(draft, refused).sort((a, b) => a.attempt - b.attempt);
    first!.finishedAt = second!.startedAt - 999;
  },
);

planted(
  10,
  'an alarm that was given up too early',
  /"in vain"\) was given up after 2 failures, and it had 5/,
  (draft, { exhausted }) => {
    definitionOf(draft, exhausted).maxFailures = 5;
  },
);

test('a redrive gives a failed alarm a fresh ladder', async () => {
  const { broken } = await verdictOn((draft, { redriven }) =>
    without(draft.client.calls, (call) => call === callOn(draft, 'redrive', redriven)),
  );
  assert.deepEqual(broken, [10]);
});

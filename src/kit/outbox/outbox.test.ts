import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { silentLogger } from '../log/log.ts';
import { createOutbox } from './outbox.ts';

test('an item that becomes due during the query is delivered without another poll', async (t) => {
  const DUE = 100;
  const clock = new ManualClock(DUE);
  // The clock advances a millisecond between the query for due items and the one for the next due time.
  const instants = [DUE - 1, DUE];
  let waits = true;
  const outbox = createOutbox({
    store: {
      due: (now) => (waits && now >= DUE ? [{ id: 'it', attempts: 1 }] : []),
      nextDue: () => (waits ? DUE : undefined),
      done: () => {
        waits = false;
      },
      later: assert.fail,
      drop: assert.fail,
    },
    deliver: async () => ({ result: 'done' }),
    ...{ now: () => instants.shift() ?? clock.now(), clock, log: silentLogger, random: () => 0.5 },
    ...{
      concurrency: 1,
      firstPauseMs: 1000,
      longestPauseMs: 60_000,
      noun: 'an item',
      about: () => ({}),
      lastRoundMs: 0,
    },
  });
  t.after(() => outbox.close());
  outbox.start();
  await clock.advance(1);
  assert.equal(waits, false);
});

/** What the reads of a full calendar feed keep in memory: counted in what is read from the store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newFeed } from '../../../src/chronos/auth/calendar-feed.ts';
import { createHttpBench } from './http-bench.ts';

const ALARMS = 150;
const READERS = 30;

test('readers of a feed share one calendar, which is read in steps', async (t) => {
  const steps: number[] = [];
  const allAsk = Promise.withResolvers<void>();
  let asked = 0;
  const bench = await createHttpBench(t, {
    storeAround: (store) => ({
      ...store,
      feedsOf(owner) {
        if (++asked === READERS) allAsk.resolve();
        return store.feedsOf(owner);
      },
      async upcoming(owner, request) {
        await allAsk.promise;
        const states = await store.upcoming(owner, request);
        steps.push(states.length);
        return states;
      },
    }),
  });
  const agent = await bench.agent('ada');
  for (let n = 0; n < ALARMS; n++) await agent.set({ delay_seconds: 60 + (n % 7), label: `alarm ${n}` });
  const { feed, path } = newFeed({
    owner: 'ada',
    name: 'x',
    messages: true,
    madeBy: null,
    createdAt: bench.clock.now(),
  });
  assert.ok(await bench.store.addFeed(feed, 10));

  const texts = await Promise.all(
    Array.from({ length: READERS }, async () => {
      const answer = await fetch(bench.url + path);
      assert.equal(answer.status, 200);
      return answer.text();
    }),
  );
  const labels = new Set(texts[0]!.match(/^SUMMARY:alarm \d+/gm));
  assert.equal(labels.size, ALARMS);
  assert.equal(new Set(texts).size, 1);
  assert.ok(Math.max(...steps) <= 64, `a step of ${Math.max(...steps)}`);
  assert.ok(steps.length < READERS, `${steps.length} reads for ${READERS} readers`);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CalendarFeed } from '../../../src/chronos/store/store.ts';
import { ADA, BOB, NOW } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';

const feedOf = (n: number, more: Partial<CalendarFeed> = {}): CalendarFeed => ({
  ...{ owner: ADA, id: String(n).padStart(12, '0'), name: `phone "${n}" ✓`, digest: 'ab'.repeat(32) },
  ...{ messages: n % 2 === 0, createdAt: NOW + n, madeBy: n % 2 === 0 ? 'key 0123456789abcdef' : null, ...more },
});

export function calendarFeedContract(open: OpenStore): void {
  describe('calendar feeds', () => {
    test('are stored, listed oldest first, and survive a restart', async (t) => {
      const { store, reopen } = await openFor(t, open);
      assert.deepEqual(await store.feedsOf(ADA), []);
      const [old, young] = [feedOf(1), feedOf(2)];
      assert.equal(await store.addFeed(young, 10), true);
      assert.equal(await store.addFeed(old, 10), true);
      assert.deepEqual(await store.feedsOf(ADA), [old, young]);
      assert.deepEqual(await (await reopen()).feedsOf(ADA), [old, young]);
    });

    test('belong to one owner, whose limit counts them', async (t) => {
      const { store } = await openFor(t, open);
      await store.addFeed(feedOf(1), 1);
      assert.equal(await store.addFeed(feedOf(2), 1), false);
      assert.equal(await store.addFeed(feedOf(1, { owner: BOB }), 1), true);
      assert.deepEqual(await store.feedsOf(ADA), [feedOf(1)]);
    });

    test('are removed once, and only by their owner', async (t) => {
      const { store } = await openFor(t, open);
      await store.addFeed(feedOf(1), 10);
      assert.equal(await store.removeFeed(BOB, feedOf(1).id), undefined);
      assert.equal(await store.removeFeed(ADA, 'none'), undefined);
      assert.deepEqual(await store.removeFeed(ADA, feedOf(1).id), feedOf(1));
      assert.equal(await store.removeFeed(ADA, feedOf(1).id), undefined);
      assert.deepEqual(await store.feedsOf(ADA), []);
    });
  });
}

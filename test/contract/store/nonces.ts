import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NOW } from './fixtures.ts';
import { type OpenStore, openFor, openInstances, together } from './store-under-test.ts';

const DID = 'did:matrix:ada:0123456789abcdef';
const OTHER = 'did:matrix:bob:0123456789abcdef';
const LATER = NOW + 120_000;

export function nonceContract(open: OpenStore): void {
  describe('nonces', () => {
    test('are accepted once', async (t) => {
      const { store } = await openFor(t, open);
      await store.putNonce('n1', DID, LATER, NOW);
      await store.putNonce('n2', DID, LATER, NOW);
      assert.equal(await store.takeNonce('n1', DID, NOW + 1), true);
      assert.equal(await store.takeNonce('n1', DID, NOW + 1), false);
      assert.equal(await store.takeNonce('n2', DID, NOW + 1), true);
      assert.equal(await store.takeNonce('never made', DID, NOW + 1), false);
    });

    test('are valid until they expire, and not in that millisecond', async (t) => {
      const { store } = await openFor(t, open);
      await store.putNonce('n1', DID, LATER, NOW);
      await store.putNonce('n2', DID, LATER, NOW);
      assert.equal(await store.takeNonce('n1', DID, LATER - 1), true);
      assert.equal(await store.takeNonce('n2', DID, LATER), false);
    });

    test('are valid for their own DID; use under another DID consumes them', async (t) => {
      const { store } = await openFor(t, open);
      await store.putNonce('n', DID, LATER, NOW);
      assert.equal(await store.takeNonce('n', OTHER, NOW), false);
      assert.equal(await store.takeNonce('n', DID, NOW), false);
    });

    test('survive a restart', async (t) => {
      const { store, reopen } = await openFor(t, open);
      await store.putNonce('n', DID, LATER, NOW);
      assert.equal(await (await reopen()).takeNonce('n', DID, NOW), true);
    });

    test('make space by expiry when a new one comes, and do not remove others', async (t) => {
      const underTest = await openFor(t, open);
      const { store } = underTest;
      const [old, young, fresh] = together(underTest, 3) as [string, string, string];
      await store.putNonce(old, DID, NOW + 1, NOW);
      await store.putNonce(young, DID, LATER, NOW);
      await store.putNonce(fresh, DID, LATER + 1, NOW + 1);
      // Deleted, not only expired: a clock that went back does not make it valid again.
      assert.equal(await store.takeNonce(old, DID, NOW), false);
      assert.equal(await store.takeNonce(young, DID, NOW + 1), true);
      assert.equal(await store.takeNonce(fresh, DID, NOW + 1), true);
    });

    test('of many simultaneous takers of one nonce, one gets it', async (t) => {
      const { store, pick } = await openInstances(t, open);
      await store.putNonce('n', DID, LATER, NOW);
      const taken = await Promise.all(Array.from({ length: 20 }, (_, n) => pick(n).takeNonce('n', DID, NOW)));
      assert.equal(taken.filter(Boolean).length, 1);
    });
  });
}

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AgentKey } from '../../../src/chronos/store/store.ts';
import { ADA, agentKey, BOB, NOW } from './fixtures.ts';
import { type OpenStore, openFor, openInstances } from './store-under-test.ts';

const keyText = (n: number) => n.toString(16).padStart(2, '0').repeat(32);

export function agentKeyContract(open: OpenStore): void {
  describe('agent keys', () => {
    test('the first key of an owner is pinned, the next is not', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const first = agentKey();
      assert.deepEqual(await store.keysOf(ADA), []);
      assert.equal(await store.pinFirstKey(first), true);
      assert.deepEqual(await store.keysOf(BOB), []);
      assert.equal(await store.pinFirstKey(agentKey({ publicKey: keyText(1) })), false);
      assert.deepEqual(await store.keysOf(ADA), [first]);
      assert.deepEqual(await (await reopen()).keysOf(ADA), [first]);
    });

    test('a known key is accepted again, and stays as it was first seen', async (t) => {
      const { store } = await openFor(t, open);
      const first = agentKey();
      await store.pinFirstKey(first);
      assert.equal(await store.pinFirstKey(agentKey({ label: 'other', enrolledAt: NOW + 9 })), true);
      assert.deepEqual(await store.keysOf(ADA), [first]);
    });

    test('a revoked key is not accepted, and allows no other first key', async (t) => {
      const { store } = await openFor(t, open);
      await store.pinFirstKey(agentKey());
      await store.revokeKeys(ADA, undefined, NOW + 1);
      assert.equal(await store.pinFirstKey(agentKey()), false);
      assert.equal(await store.pinFirstKey(agentKey({ publicKey: keyText(1) })), false);
      assert.deepEqual(await store.keysOf(ADA), [agentKey({ revokedAt: NOW + 1 })]);
    });

    test('owners are independent, even with the same key', async (t) => {
      const { store } = await openFor(t, open);
      assert.equal(await store.pinFirstKey(agentKey()), true);
      assert.equal(await store.pinFirstKey(agentKey({ owner: BOB })), true);
      await store.revokeKeys(ADA, undefined, NOW);
      assert.deepEqual(await store.keysOf(BOB), [agentKey({ owner: BOB })]);
    });

    test('of many simultaneous first keys one is pinned', async (t) => {
      const { store, pick } = await openInstances(t, open);
      const pinned = await Promise.all(
        Array.from({ length: 20 }, (_, n) => pick(n).pinFirstKey(agentKey({ publicKey: keyText(n) }))),
      );
      assert.equal(pinned.filter(Boolean).length, 1);
      const [key, ...others] = await store.keysOf(ADA);
      assert.equal(key?.publicKey, keyText(pinned.indexOf(true)));
      assert.deepEqual(others, []);
    });

    test('several keys may be enrolled, listed oldest first', async (t) => {
      const { store } = await openFor(t, open);
      const young = agentKey({ publicKey: keyText(1), source: 'enrolled', enrolledAt: NOW + 2 });
      const old = agentKey({ publicKey: keyText(2), source: 'enrolled', enrolledAt: NOW + 1 });
      await store.enrollKey(young);
      await store.enrollKey(old);
      assert.deepEqual(await store.keysOf(ADA), [old, young]);
      assert.equal(await store.pinFirstKey(young), true);
      assert.equal(await store.pinFirstKey(agentKey({ publicKey: keyText(3) })), false);
    });

    test('enrolling removes a revocation, and enrolls a pinned key', async (t) => {
      const { store } = await openFor(t, open);
      await store.pinFirstKey(agentKey());
      await store.revokeKeys(ADA, agentKey().publicKey, NOW + 1);
      await store.enrollKey(agentKey({ source: 'enrolled', enrolledAt: NOW + 2, label: 'other' }));
      assert.deepEqual(await store.keysOf(ADA), [agentKey({ source: 'enrolled' })]);
      assert.equal(await store.pinFirstKey(agentKey()), true);
    });

    test('revoking returns the revoked keys, each key once', async (t) => {
      const { store } = await openFor(t, open);
      const keys = [1, 2, 3].map((n) =>
        agentKey({ publicKey: keyText(4 - n), source: 'enrolled', enrolledAt: NOW + n }),
      );
      for (const key of keys) await store.enrollKey(key);
      const revoked = (key: AgentKey, revokedAt: number) => ({ ...key, revokedAt });

      assert.deepEqual(await store.revokeKeys(ADA, keys[1]!.publicKey, NOW + 5), [revoked(keys[1]!, NOW + 5)]);
      assert.deepEqual(await store.revokeKeys(ADA, keys[1]!.publicKey, NOW + 6), []);
      assert.deepEqual(await store.revokeKeys(ADA, 'no such key', NOW + 6), []);
      const rest = [revoked(keys[0]!, NOW + 7), revoked(keys[2]!, NOW + 7)];
      assert.deepEqual(await store.revokeKeys(ADA, undefined, NOW + 7), rest);
      assert.deepEqual(await store.keysOf(ADA), [rest[0], revoked(keys[1]!, NOW + 5), rest[1]]);
    });

    test('pages list the keys of all owners, revoked ones included', async (t) => {
      const { store } = await openFor(t, open);
      const keys = ['ada', 'ada', 'bob', 'carl', 'carl'].map((owner, n) =>
        agentKey({ owner, publicKey: keyText(n), source: 'enrolled' }),
      );
      for (const key of keys.toReversed()) await store.enrollKey(key);
      await store.revokeKeys('bob', undefined, NOW + 1);
      const wanted = keys.map((key) => (key.owner === 'bob' ? { ...key, revokedAt: NOW + 1 } : key));
      assert.deepEqual(await store.listKeys({ limit: 100 }), wanted);
      const paged: AgentKey[] = [];
      for (;;) {
        const after = paged.at(-1);
        const page = await store.listKeys({ limit: 2, ...(after && { after }) });
        if (page.length === 0) break;
        paged.push(...page);
      }
      assert.deepEqual(paged, wanted);
    });
  });
}

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AgentKey, MOST_REVOKED_KEYS } from '../../../src/chronos/store/store.ts';
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

    const rotation = { owner: ADA, from: keyText(1), to: keyText(2), now: NOW + 9, enrolledOnly: false };

    test('a rotation enrols the new key with the standing of the old one, and revokes that', async (t) => {
      const { store, reopen } = await openFor(t, open);
      const old = agentKey({ publicKey: keyText(1) });
      await store.pinFirstKey(old);
      assert.equal(await store.rotateKey(rotation), 'rotated');
      const wanted = [
        { ...old, revokedAt: NOW + 9 },
        { ...old, publicKey: keyText(2) },
      ];
      assert.deepEqual(await store.keysOf(ADA), wanted);
      assert.equal(await store.rotateKey(rotation), 'not_accepted');
      assert.equal(await store.rotateKey({ ...rotation, from: keyText(2), to: keyText(1) }), 'revoked_before');
      assert.deepEqual(await (await reopen()).keysOf(ADA), wanted);
    });

    test('an unknown key, one of another owner, and one that was only pinned may not rotate', async (t) => {
      const { store } = await openFor(t, open);
      await store.pinFirstKey(agentKey({ publicKey: keyText(1) }));
      assert.equal(await store.rotateKey({ ...rotation, owner: BOB }), 'not_accepted');
      assert.equal(await store.rotateKey({ ...rotation, from: keyText(3) }), 'not_accepted');
      assert.equal(await store.rotateKey({ ...rotation, enrolledOnly: true }), 'not_accepted');
      await store.enrollKey(agentKey({ publicKey: keyText(1), source: 'enrolled' }));
      assert.equal(await store.rotateKey({ ...rotation, enrolledOnly: true }), 'rotated');
      assert.deepEqual(
        (await store.keysOf(ADA)).map(({ source }) => source),
        ['enrolled', 'enrolled'],
      );
    });

    test('a key that an operator enrolled before keeps its standing when another one rotates to it', async (t) => {
      const { store } = await openFor(t, open);
      await store.pinFirstKey(agentKey({ publicKey: keyText(1) }));
      const enrolled = agentKey({ publicKey: keyText(2), source: 'enrolled', enrolledAt: NOW + 1 });
      await store.enrollKey(enrolled);
      assert.equal(await store.rotateKey(rotation), 'rotated');
      assert.deepEqual((await store.keysOf(ADA))[1], enrolled);
    });

    test('of many simultaneous rotations of one key one succeeds', async (t) => {
      const { store, pick } = await openInstances(t, open);
      await store.pinFirstKey(agentKey({ publicKey: keyText(1) }));
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => pick(n).rotateKey({ ...rotation, to: keyText(n + 2) })),
      );
      assert.equal(answers.filter((answer) => answer === 'rotated').length, 1);
      assert.equal(answers.filter((answer) => answer === 'not_accepted').length, 19);
      const accepted = (await store.keysOf(ADA)).filter(({ revokedAt }) => revokedAt === null);
      assert.deepEqual(
        accepted.map(({ publicKey }) => publicKey),
        [keyText(answers.indexOf('rotated') + 2)],
      );
    });

    test('no key survives a revocation of all keys during rotations', async (t) => {
      const { store, pick } = await openInstances(t, open);
      for (let round = 0; round < 10; round++) {
        const owner = `owner-${round}`;
        await store.enrollKey(agentKey({ owner, publicKey: keyText(1), source: 'enrolled' }));
        await Promise.all([
          pick(0).rotateKey({ ...rotation, owner }),
          pick(1).revokeKeys(owner, undefined, NOW + 10),
          pick(0).rotateKey({ ...rotation, owner, from: keyText(2), to: keyText(3) }),
        ]);
        const accepted = (await store.keysOf(owner)).filter(({ revokedAt }) => revokedAt === null);
        assert.deepEqual(accepted, []);
      }
    });

    test('rotations leave a limited number of revoked keys', async (t) => {
      const { store } = await openFor(t, open);
      const last = MOST_REVOKED_KEYS + 5;
      await store.pinFirstKey(agentKey({ publicKey: keyText(0) }));
      for (let n = 0; n < last; n++)
        await store.rotateKey({ ...rotation, from: keyText(n), to: keyText(n + 1), now: NOW + n });
      const keys = await store.keysOf(ADA);
      assert.equal(keys.length, MOST_REVOKED_KEYS + 1);
      assert.deepEqual(
        keys.filter(({ revokedAt }) => revokedAt === null).map(({ publicKey }) => publicKey),
        [keyText(last)],
      );
      assert.equal(await store.rotateKey({ ...rotation, from: keyText(0) }), 'not_accepted');
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

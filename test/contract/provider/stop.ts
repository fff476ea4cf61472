import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { OpenProvider, Traits } from './provider-under-test.ts';
import { healthOf, openFor, rejectionOf, start } from './under-test.ts';

export function stopContract(open: OpenProvider, { shared }: Traits): void {
  describe('stop', () => {
    test('resolves when no process of the machine runs any more, and the next start is a cold one', async (t) => {
      const underTest = await openFor(t, open);
      const { provider, machine } = underTest;
      for (let round = 1; round <= 3; round++) {
        assert.equal((await start(underTest)).cold, true);
        await provider.stop(machine);
        assert.equal(underTest.running(), 0);
        assert.equal(underTest.starts(), round);
      }
    });

    test('is harmless when nothing runs: before any start, twice, and after the machine ended by itself', async (t) => {
      const underTest = await openFor(t, open);
      const { provider, machine } = underTest;
      await provider.stop(machine);
      await start(underTest);
      await provider.stop(machine);
      await provider.stop(machine);
      await start(underTest);
      await underTest.crash();
      await provider.stop(machine);
      assert.equal(underTest.running(), 0);
    });

    test('stops a running machine, also with another specification or a tombstone', async (t) => {
      const underTest = await openFor(t, open);
      const { provider, machine, changed } = underTest;
      await start(underTest);
      await provider.stop(changed);
      assert.equal(underTest.running(), 0);
      await start(underTest);
      await provider.stop({ ...machine, token: '' });
      assert.equal(underTest.running(), 0);
      await start(underTest);
      await provider.stop({ ...machine, provider: 'http', spec: { url: 'http://127.0.0.1:9' } });
      assert.equal(underTest.running(), 0);
    });

    test('writes no secret to the log', async (t) => {
      const underTest = await openFor(t, open);
      await start(underTest);
      await underTest.provider.stop(underTest.machine);
      for (const canary of underTest.canaries) assert.ok(!underTest.logged().includes(canary), canary);
    });

    if (shared) {
      test('gives up with a reason after a bounded time without answers, and works when answers return', async (t) => {
        const underTest = await openFor(t, open);
        const { provider, machine, clock } = underTest;
        const { url } = await start(underTest);
        const release = underTest.hang!();
        let done = false;
        const stopping = rejectionOf(provider.stop(machine)).finally(() => {
          done = true;
        });
        let advancedMs = 0;
        while (!done) {
          await new Promise((resolve) => setImmediate(resolve));
          clock.advance(1000);
          advancedMs += 1000;
          assert.ok(advancedMs < 10_000_000, 'it does not end');
        }
        const error = await stopping;
        assert.ok(error instanceof ReveilleError && error.code === 'internal', String(error));
        assert.match(error.message, /could not be stopped: .*no answer within \d+ ms|state could not be read/);
        release();
        assert.equal(await healthOf(url), 200);
        await provider.stop(machine);
        assert.equal(underTest.running(), 0);
      });
    }
  });
}

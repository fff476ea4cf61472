import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import type { OpenProvider } from './provider-under-test.ts';
import { healthOf, openFor, patient, start } from './under-test.ts';

export function recoveryContract(open: OpenProvider): void {
  describe('the next router', () => {
    test('is informed of a running machine, and adopts it unchanged', async (t) => {
      const underTest = await openFor(t, open);
      const { url } = await start(underTest);
      const next = underTest.reopen();
      assert.deepEqual(next.survivors(), [underTest.machine.userId]);
      const daemon = await next.adopt(underTest.machine, patient());
      assert.deepEqual([daemon?.url, daemon?.cold], [url, false]);
      assert.equal(await healthOf(url), 200);
      assert.equal(underTest.starts(), 1);
      await next.stop(underTest.machine);
      assert.equal(underTest.running(), 0);
    });

    test('gets no machine when the machine was stopped', async (t) => {
      const underTest = await openFor(t, open);
      await start(underTest);
      await underTest.provider.stop(underTest.machine);
      const next = underTest.reopen();
      assert.deepEqual(next.survivors(), []);
      assert.equal(await next.adopt(underTest.machine, patient()), undefined);
    });

    test('stops a machine that was started from another specification', async (t) => {
      const underTest = await openFor(t, open);
      await start(underTest);
      const next = underTest.reopen();
      next.survivors();
      assert.equal(await next.adopt(underTest.changed, patient()), undefined);
      assert.equal(underTest.running(), 0);
    });

    test('records a machine as asleep when it ended while no router ran', async (t) => {
      const underTest = await openFor(t, open);
      await start(underTest);
      await underTest.crash();
      const next = underTest.reopen();
      next.survivors();
      assert.equal(await next.adopt(underTest.machine, patient()), undefined);
      assert.equal((await next.start(underTest.machine, patient(), () => {})).cold, true);
    });

    test('stops a machine that runs and is not healthy', async (t) => {
      const underTest = await openFor(t, open);
      await start(underTest);
      underTest.setHealthy(false);
      const next = underTest.reopen();
      next.survivors();
      let settled = false;
      const adopting = next.adopt(underTest.machine, patient()).finally(() => {
        settled = true;
      });
      await eventually('the start was given up', () => {
        underTest.clock.advance(200);
        return settled;
      });
      assert.equal(await adopting, undefined);
      assert.equal(underTest.running(), 0);
    });
  });
}

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import type { OpenProvider, Traits } from './provider-under-test.ts';
import { healthOf, openFor, start } from './under-test.ts';

export function startContract(open: OpenProvider, { starts, shared }: Traits): void {
  describe('start', () => {
    test('resolves with a healthy daemon', async (t) => {
      const underTest = await openFor(t, open);
      const daemon = await start(underTest);
      assert.equal(await healthOf(daemon.url), 200);
      assert.equal(daemon.cold, starts);
      assert.equal(daemon.gone.aborted, false);
      assert.equal(underTest.starts(), starts ? 1 : 0);
    });

    test('finds a running daemon, and starts nothing', async (t) => {
      const underTest = await openFor(t, open);
      const first = await start(underTest);
      for (let n = 0; n < 3; n++) {
        const again = await start(underTest);
        assert.deepEqual([again.url, again.cold], [first.url, false]);
      }
      assert.equal(underTest.starts(), starts ? 1 : 0);
      assert.equal(underTest.running(), 1);
    });

    if (shared) {
      test('finds a daemon that another client has started', async (t) => {
        const underTest = await openFor(t, open);
        await underTest.startElsewhere!();
        const daemon = await start(underTest);
        assert.equal(daemon.cold, false);
        assert.equal(await healthOf(daemon.url), 200);
        assert.equal(underTest.starts(), 1);
      });

      test('joins a start that another client has begun', async (t) => {
        const underTest = await openFor(t, open);
        const finish = await underTest.beginElsewhere!();
        const states: string[] = [];
        let done = false;
        const starting = start(underTest, states).finally(() => {
          done = true;
        });
        await eventually('the log has the reason of the wait', () => states.length > 0);
        assert.equal(done, false);
        await finish();
        const daemon = await starting;
        assert.equal(await healthOf(daemon.url), 200);
        assert.equal(underTest.starts(), 1);
      });
    }

    if (starts) {
      test('waits until the daemon is healthy, and reports meanwhile why it is not', async (t) => {
        const underTest = await openFor(t, open);
        underTest.setHealthy(false);
        const states: string[] = [];
        let done = false;
        const starting = start(underTest, states).finally(() => {
          done = true;
        });
        await eventually('it has looked', () => states.some((text) => /healthz answered 500/.test(text)));
        assert.equal(done, false);
        underTest.setHealthy(true);
        assert.equal((await starting).cold, true);
        assert.equal(underTest.starts(), 1);
      });

      test('restarts a machine that ended by itself', async (t) => {
        const underTest = await openFor(t, open);
        await start(underTest);
        await underTest.crash();
        const daemon = await start(underTest);
        assert.equal(daemon.cold, true);
        assert.equal(await healthOf(daemon.url), 200);
        assert.equal(underTest.starts(), 2);
        assert.equal(underTest.running(), 1);
      });
    }
  });

  describe('the fingerprint', () => {
    test('stays the same for members outside of the specification, and differs for another specification', async (t) => {
      const { provider, machine, changed } = await openFor(t, open);
      const { spec } = machine;
      const same = { ...machine, idleSeconds: 7, updatedAt: 5, createdAt: 6, spec: structuredClone(spec) };
      assert.equal(provider.fingerprint(same as typeof machine), provider.fingerprint(machine));
      assert.notEqual(provider.fingerprint(changed), provider.fingerprint(machine));
    });

    test('does not contain the token', async (t) => {
      const { provider, machine } = await openFor(t, open);
      assert.ok(!provider.fingerprint(machine).includes(machine.token));
    });
  });
}

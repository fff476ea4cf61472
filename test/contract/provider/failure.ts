import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { eventually } from '../../support/eventually.ts';
import type { OpenProvider, Traits } from './provider-under-test.ts';
import { advancing, openFor, patient, rejectionOf, start } from './under-test.ts';

export function failureContract(open: OpenProvider, { starts, shared }: Traits): void {
  describe('a failing start', () => {
    test('rejects as unavailable, with the text of the component that failed', async (t) => {
      const underTest = await openFor(t, open);
      underTest.failNext('the model key is missing');
      const error = await rejectionOf(start(underTest));
      assert.ok(error instanceof ReveilleError, String(error));
      assert.equal(error.code, 'unavailable');
      assert.match(error.message, starts ? /the model key is missing/ : /\/healthz answered 500/);
      if (starts) assert.equal(underTest.running(), 0);
    });

    test('repeats no secret from any source, neither in its error nor in a log', async (t) => {
      const underTest = await openFor(t, open);
      underTest.failNext(`refused: ${underTest.canaries.join(' ')}`);
      const error = await rejectionOf(start(underTest));
      const { logged, canaries } = underTest;
      const everything = `${error.message} ${String(error.cause)} ${JSON.stringify(error)} ${logged()}`;
      for (const canary of canaries) assert.ok(!everything.includes(canary), `${canary} in ${everything}`);
    });
  });

  if (shared) {
    test('a start of a machine without any answer gives up in time, with a reason', async (t) => {
      const underTest = await openFor(t, open);
      const release = underTest.hang!();
      const error = await rejectionOf(advancing(underTest, start(underTest), 1000));
      assert.ok(error instanceof ReveilleError && error.code === 'unavailable', String(error));
      assert.match(error.message, /cannot be reached: no answer within \d+ ms$/);
      release();
      assert.equal((await start(underTest)).cold, true);
    });
  }

  describe('an aborted start', () => {
    test('does nothing before it began and rejects with the reason', async (t) => {
      const { provider, machine, starts: count } = await openFor(t, open);
      const reason = new Error('not wanted any more');
      assert.equal(await rejectionOf(provider.start(machine, AbortSignal.abort(reason), () => {})), reason);
      assert.equal(count(), 0);
    });

    if (starts) {
      test('stops its machine while it waits for the daemon, and rejects with the reason', async (t) => {
        const underTest = await openFor(t, open);
        underTest.setHealthy(false);
        const abort = new AbortController();
        const states: string[] = [];
        const starting = underTest.provider.start(underTest.machine, abort.signal, (text) => states.push(text));
        await eventually('it waits', () => states.some((text) => /healthz/.test(text)));
        assert.equal(underTest.running(), 1);
        const reason = new Error('not wanted any more');
        abort.abort(reason);
        assert.equal(await rejectionOf(starting), reason);
        assert.equal(underTest.running(), 0);
        underTest.setHealthy(true);
        assert.equal((await start(underTest)).cold, true);
      });
    }

    test('rejects with the reason at once while no answer arrives', async (t) => {
      const underTest = await openFor(t, open);
      if (!underTest.hang) return;
      const release = underTest.hang();
      const abort = new AbortController();
      const starting = underTest.provider.start(underTest.machine, abort.signal, () => {});
      setImmediate(() => abort.abort(new Error('not wanted any more')));
      assert.equal((await rejectionOf(starting)).message, 'not wanted any more');
      release();
      assert.equal((await underTest.provider.start(underTest.machine, patient(), () => {})).gone.aborted, false);
    });
  });
}

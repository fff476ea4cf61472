import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { OpenProvider } from './provider-under-test.ts';
import { openFor, patient, rejectionOf } from './under-test.ts';

export function foreignMachineContract(open: OpenProvider): void {
  test("another provider's machine is refused", async (t) => {
    const { provider, machine } = await openFor(t, open);
    const foreign =
      machine.provider === 'http'
        ? { ...machine, provider: 'process' as const, spec: { command: ['agent'] } }
        : { ...machine, provider: 'http' as const, spec: { url: 'http://127.0.0.1:9' } };
    const error = await rejectionOf(provider.start(foreign, patient(), () => {}));
    assert.ok(error instanceof ReveilleError && error.code === 'internal', String(error));
    assert.throws(() => provider.fingerprint(foreign), /was passed to provider/);
  });
}

/** The contract of the provider port, applied to any implementation. */
import { describe } from 'node:test';
import { failureContract } from './failure.ts';
import { foreignMachineContract } from './foreign-machines.ts';
import type { OpenProvider, Traits } from './provider-under-test.ts';
import { recoveryContract } from './recovery.ts';
import { startContract } from './start.ts';
import { stopContract } from './stop.ts';

/**
 * Registers the whole contract as tests.
 *
 * @param name of the provider
 * @param open makes a new provider with a machine of its own for each test
 */
export function describeProvider(name: string, traits: Traits, open: OpenProvider): void {
  describe(`provider ${name}`, () => {
    startContract(open, traits);
    failureContract(open, traits);
    foreignMachineContract(open);
    if (traits.starts) {
      stopContract(open, traits);
      recoveryContract(open);
    }
  });
}

/**
 * Defects added on purpose, to prove that the simulation finds them: each must be found within a few dozen seeds
 * (`mutants.test.ts`). `npm run simulate -- --mutant NAME` activates one.
 */
import type { Mutant } from './mutant.ts';
import { SETTLEMENT_MUTANTS } from './settlement-mutants.ts';
import { STORE_MUTANTS } from './store-mutants.ts';
import { WAKER_MUTANTS } from './waker-mutants.ts';

export const MUTANTS: Readonly<Record<string, Mutant>> = {
  ...STORE_MUTANTS,
  ...SETTLEMENT_MUTANTS,
  ...WAKER_MUTANTS,
  forgetful: { defect: 'agents run a turn again when its wake is repeated', forgetful: true },
};

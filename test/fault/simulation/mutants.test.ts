import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MUTANTS } from './mutants.ts';
import { drawScenario } from './scenario.ts';
import { simulate } from './simulate.ts';

/**
 * A defect that does not show in so many worlds in which it can show at all would not be found by looking a little
 * longer.
 */
const PATIENCE = 40;

describe('a simulation finds', () => {
  for (const [name, mutant] of Object.entries(MUTANTS)) {
    test(`${name}: ${mutant.defect}`, async (t) => {
      let lived = 0;
      for (let seed = 1; lived < PATIENCE; seed++) {
        if (mutant.shows && !mutant.shows(drawScenario(seed))) continue;
        lived++;
        const { violations } = await simulate({ seed, mutant });
        if (violations.length === 0) continue;
        t.diagnostic(`world ${lived}, seed ${seed}: ${violations[0]}`);
        return;
      }
      assert.fail(`not found in ${PATIENCE} worlds`);
    });
  }
});

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { MUTANTS } from './mutants.ts';
import { drawScenario } from './scenario.ts';
import { simulate } from './simulate.ts';

/** Maximum number of suitable worlds without a finding: a longer search would not help. */
const PATIENCE = 40;
/** Short worlds, each with the defects that it shows first. */
const SHORT: Readonly<Record<number, readonly string[]>> = {
  19: ['wedged-series'],
  20: ['ignores-fence', 'delivers-failures'],
  22: ['fast-clock', 'ignores-gone', 'calls-unknown-delivered'],
  27: ['loses-outcomes', 'shows-strangers', 'obeys-strangers', 'forgetful'],
  32: ['sleepy', 'stale-writes'],
  40: ['one-at-a-time'],
  45: ['acknowledges-early', 'ignores-keys', 'unfair-claims', 'silent-misses'],
  47: ['forgets-cancel', 'trims-messages'],
  48: ['claims-twice', 'cancel-only-said'],
  50: ['hasty'],
  55: ['early-by-one', 'drifting-series'],
  63: ['forgets-after-failure', 'endless-ladder'],
};

function* seeds(defect: string): Generator<number> {
  const short = Object.keys(SHORT).map(Number);
  const first = short.find((seed) => SHORT[seed]?.includes(defect));
  const soon = [...(first === undefined ? [] : [first]), ...short.filter((seed) => seed !== first)];
  yield* soon;
  for (let seed = 1; ; seed++) if (!soon.includes(seed)) yield seed;
}

describe('a simulation finds', () => {
  const { stackTraceLimit } = Error;
  // Without this, a tenth of the time goes into the stacks of expected errors.
  before(() => {
    Error.stackTraceLimit = 0;
  });
  after(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });

  for (const [name, mutant] of Object.entries(MUTANTS)) {
    test(`${name}: ${mutant.defect}`, async (t) => {
      let runs = 0;
      for (const seed of seeds(name)) {
        if (mutant.shows && !mutant.shows(drawScenario(seed))) continue;
        if (++runs > PATIENCE) break;
        const { violations } = await simulate({ seed, mutant });
        if (violations.length === 0) continue;
        t.diagnostic(`world ${runs}, seed ${seed}: ${violations[0]}`);
        return;
      }
      assert.fail(`not found in ${PATIENCE} worlds`);
    });
  }
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

const MIB = 1024 * 1024;
/** A quarter of V8's own bound. */
const BOUND_MIB = 16;

/** Makes objects of which many survive collections, a little at a time as the requests of a daemon do; says the most. */
const PROGRAM = `
import { setImmediate } from 'node:timers/promises';
import { boundYoungGeneration, youngGenerationBytes } from ${JSON.stringify(import.meta.resolve('./young-generation.ts'))};
const kept = [];
let most = 0;
async function churn(rounds, until) {
  for (let round = 0; round < rounds && !until(); round++) {
    for (let made = 0; made < 2_000; made++) kept[(round * 2_000 + made) % 60_000] = { round, pair: [made, round] };
    most = Math.max(most, youngGenerationBytes());
    await setImmediate();
  }
}
boundYoungGeneration(${BOUND_MIB});
await churn(20_000, () => most > ${(BOUND_MIB / 2) * MIB});
// As much again would let it double twice.
await churn(1_000, () => false);
console.log(most);
`;

test('The young generation grows to the bound that it is given, and stays there', () => {
  const most = Number(execFileSync(process.execPath, ['--input-type=module', '--eval', PROGRAM], { encoding: 'utf8' }));
  assert.ok(most > (BOUND_MIB / 2) * MIB, `it came to ${most} bytes`);
  assert.ok(most <= BOUND_MIB * MIB, `it was at ${most} bytes`);
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

const MIB = 1024 * 1024;
/** A quarter of V8's default limit. */
const BOUND_MIB = 16;

/**
 * Creates objects of which many survive collections, in small steps like a daemon's requests; prints the maximum size.
 */
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
// Another MiB would allow two more doublings.
await churn(1_000, () => false);
console.log(most);
`;

test('the young generation grows to its limit and no further', () => {
  const most = Number(execFileSync(process.execPath, ['--input-type=module', '--eval', PROGRAM], { encoding: 'utf8' }));
  assert.ok(most > (BOUND_MIB / 2) * MIB, `it reached ${most} bytes`);
  assert.ok(most <= BOUND_MIB * MIB, `it reached ${most} bytes`);
});

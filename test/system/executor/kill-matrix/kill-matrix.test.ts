import assert from 'node:assert/strict';
import { test } from 'node:test';
import { campaign } from './campaign.ts';
import { KILL_POINTS, nameOf } from './kill-point.ts';

/** The most critical steps; `main.ts` runs the whole matrix. */
const NARROW =
  /^(?:(?:calling|sent|answered) (?:ledger\/)?transfer|stored call\.started|signing call\.finished|\w+ status|signing call\.reconciled)$/;

test('killed around its calls, the executor makes no transfer twice, loses no money and records only real successes', async () => {
  const points = KILL_POINTS.filter((point) => NARROW.test(nameOf(point)));
  const { transfers, kills, missed, statuses } = await campaign(points, 8);
  assert.equal(transfers, points.length * 8);
  assert.deepEqual(missed, []);
  assert.equal(kills, points.length);
  // Both outcomes occur: one that can be looked up is determined, and another is reported as unknown.
  assert.ok((statuses.unknown ?? 0) > 0 && (statuses.completed ?? 0) > 0);
});

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { StoreKind } from '../../support/cluster/cluster.ts';
import { rounds, seedOf } from '../../support/random/random.ts';
import { runCampaign } from './campaign.ts';
import type { Fault } from './fault.ts';
import { kill } from './faults/kill.ts';
import { postgres } from './faults/postgres.ts';
import { wasJudged } from './report.ts';
import { headline } from './summary.ts';

async function survives(t: TestContext, fault: Fault, store: StoreKind): Promise<void> {
  const seed = seedOf(t);
  const extent = { strikes: rounds(3, 6), strikingMs: rounds(7000, 15_000), recoveringMs: 0, drainMs: 60_000 };
  const outcome = await runCampaign({ fault, store, seed, extent });
  t.diagnostic(`seed ${seed} · ${headline(outcome)}`);
  assert.ok(wasJudged(outcome));
  assert.deepEqual(outcome.violations, []);
  assert.ok(outcome.alarms > 0 && outcome.strikes.length > 0);
}

// In parallel: most of the time is spent waiting for the retry ladder.
describe('while processes are killed', { concurrency: true }, () => {
  test('kill -9 of chronosd, router and neo at random moments loses no alarm and gives one turn each', (t) =>
    survives(t, kill, 'sqlite'));

  test('with replicas on PostgreSQL, which is interrupted too, the same holds', (t) => {
    const either: Fault = {
      ...kill,
      strike: (scene) => (scene.round % 3 === 2 ? postgres : kill).strike(scene),
    };
    return survives(t, either, 'postgres');
  });
});

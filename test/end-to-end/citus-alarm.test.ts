import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { reshard } from '../../src/chronos/store/sharding/reshard.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import { CitusCluster, noCitus } from '../support/postgres/citus.ts';
import { COMPILED, LEAN } from '../support/quick-start.ts';
import { atEnd } from '../support/temporary.ts';
import { assertInOrder, openChronosdWithRouter, USER } from './chronosd-with-router.ts';

const NEO = fileURLToPath(new URL('../../src/agents/neo/testing/neo-process.fixture.ts', import.meta.url));

test('on Citus an alarm fires, wakes a sleeping Neo, and its turn is reported', { skip: noCitus() }, async (t) => {
  const cluster = await CitusCluster.start();
  atEnd(t, () => cluster.close());
  await reshard({ uri: cluster.uri, buckets: 8, citus: true, clock: systemClock, log: silentLogger });
  const settings = { CHRONOS_POSTGRES_URI: cluster.uri, CHRONOS_ENROLLMENT: 'tofu' };
  const daemons = await openChronosdWithRouter(t, process.env, settings);
  const env = { ...COMPILED, NEO_DATA_DIR: join(daemons.folder, 'neo') };
  await daemons.put(USER, { provider: 'process', spec: { command: [process.execPath, ...LEAN, NEO], env } });
  const fire = await daemons.finished(await daemons.setAlarm());
  assert.equal(fire.outcome, 'delivered');
  assert.equal(fire.turn?.ok, true);
  assertInOrder(fire);
  const { rows } = await cluster.run(`SELECT count(*)::int AS stages FROM fire_receipts`);
  assert.deepEqual(rows, [{ stages: 2 }]);
});

/**
 * Creates, claims and completes alarms until it is killed. Prints the id of each alarm when its creation was acknowledged, in
 * lines of JSON.
 */

import { openSqliteStore } from '../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../src/clock/clock.ts';
import { silentLogger } from '../../src/log/log.ts';
import { alarmDue, claim, delivered, NO_LIMIT, NOW } from './fixtures.ts';

const [path, owner] = process.argv.slice(2) as [string, string];
const store = openSqliteStore({ path, clock: systemClock, log: silentLogger });

async function createOne(round: number, n: number): Promise<void> {
  const { alarm } = alarmDue(NOW);
  // Ids of different processes must differ.
  const id = `${alarm.id.slice(0, -12)}${process.pid.toString(16).padStart(6, '0')}${alarm.id.slice(-6)}`;
  const entry = alarmDue(NOW + round, { id, owner, wakeMessage: `round ${round}, number ${n}` });
  await store.create(entry, NO_LIMIT);
  process.stdout.write(`${JSON.stringify({ created: id })}\n`);
}

for (let round = 0; ; round++) {
  const creates = Array.from({ length: 1 + (round % 8) }, (_, n) => createOne(round, n));
  const claims = await claim(store, { now: NOW + round, limit: 3 });
  const results = await store.complete(claims.map(delivered));
  for (const [n, result] of results.entries()) {
    if (result === 'applied') process.stdout.write(`${JSON.stringify({ completed: claims[n]!.alarm.id })}\n`);
  }
  await Promise.all(creates);
}

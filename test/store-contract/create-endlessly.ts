/**
 * Creates, claims and completes an owner's alarms until it is killed. Prints a line of JSON when a creation or an outcome was
 * acknowledged.
 */

import { openSqliteStore } from '../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../src/clock/clock.ts';
import { silentLogger } from '../../src/log/log.ts';
import { alarmDue, claim, delivered, NO_LIMIT, NOW } from './fixtures.ts';

const [path, owner] = process.argv.slice(2) as [string, string];
const store = openSqliteStore({ path, clock: systemClock, log: silentLogger });

async function createOne(round: number, n: number): Promise<void> {
  const entry = alarmDue(NOW + round, { owner, wakeMessage: `round ${round}, number ${n}` });
  await store.create(entry, NO_LIMIT);
  process.stdout.write(`${JSON.stringify({ created: entry.alarm.id })}\n`);
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

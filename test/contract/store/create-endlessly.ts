/**
 * Creates, claims and completes alarms until it is killed. Prints a line of JSON when a creation or an outcome was
 * acknowledged.
 */
import { v7 as uuidv7 } from 'uuid';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { alarmDue, claim, delivered, NO_LIMIT, NOW } from './fixtures.ts';

const store = openSqliteStore({ path: process.argv[2]!, clock: systemClock, log: silentLogger });
const acknowledge = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);

async function createOne(round: number, n: number): Promise<void> {
  const entry = alarmDue(NOW + round, { id: uuidv7(), wakeMessage: `round ${round}, number ${n}` });
  await store.create(entry, NO_LIMIT);
  acknowledge({ created: entry.alarm.id });
}

for (let round = 0; ; round++) {
  const creates = Array.from({ length: 1 + (round % 8) }, (_, n) => createOne(round, n));
  const claims = await claim(store, { now: NOW + round, limit: 3 });
  const results = await store.complete(claims.map(delivered));
  for (const [n, result] of results.entries()) {
    if (result === 'applied') acknowledge({ completed: claims[n]!.alarm.id });
  }
  await Promise.all(creates);
}

/** Creates alarms until the disk refuses one, and prints the outcome as JSON. */

import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { ADA, alarmDue, NO_LIMIT, NOW } from './fixtures.ts';

const store = openSqliteStore({ path: process.argv[2]!, clock: systemClock, log: silentLogger });
const codeOf = (error: unknown) => (error instanceof ReveilleError ? error.code : String(error));

const acknowledged: string[] = [];
let refused: string | undefined;
let code: string | undefined;
while (code === undefined) {
  const entry = alarmDue(NOW, { wakeMessage: 'w'.repeat(60_000) });
  try {
    await store.create(entry, NO_LIMIT);
    acknowledged.push(entry.alarm.id);
  } catch (error) {
    refused = entry.alarm.id;
    code = codeOf(error);
  }
}
// After a refused create, a few single pages may still fit.
let pinged: string | undefined;
while (pinged === undefined) pinged = await store.ping().then(() => undefined, codeOf);
const readable = (await store.list(ADA, { limit: 1000 })).length;
console.log(JSON.stringify({ acknowledged, refused, code, pinged, readable }));
await store.close().catch(() => undefined);

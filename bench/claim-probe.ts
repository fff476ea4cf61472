/**
 * Duration of one claim: opens the store as chronosd does, claims due occurrences in batches of 16, completes each and
 * reports the durations. It is its own process, so that nothing else uses its event loop.
 */
import { join } from 'node:path';
import { settleDelivered } from '../src/chronos/alarm/settlement.ts';
import { openSqliteStore } from '../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../src/chronos/store/store.ts';
import { systemClock } from '../src/kit/clock/clock.ts';
import { silentLogger } from '../src/kit/log/log.ts';
import { percentile } from './statistics.ts';
import type { DataLocation } from './systems/system.ts';

const BATCH = 16;
const WARMUP_CLAIMS = 20;

async function openStore(location: DataLocation): Promise<AlarmStore> {
  if ('folder' in location)
    return openSqliteStore({ path: join(location.folder, 'chronos.db'), clock: systemClock, log: silentLogger });
  const { openPostgresStore } = await import('../src/chronos/store/postgres/store.ts');
  return openPostgresStore({ uri: location.uri, clock: systemClock, log: silentLogger });
}

/** Claims one batch and completes it. Returns the duration of the claim, or `undefined` if nothing was due. */
async function claimOnce(store: AlarmStore): Promise<number | undefined> {
  const now = Date.now();
  const startedAt = performance.now();
  const claims = await store.claim({
    now,
    limit: BATCH,
    perOwner: BATCH,
    inFlight: new Map(),
  });
  const took = performance.now() - startedAt;
  if (claims.length === 0) return undefined;
  await store.complete(
    claims.map(({ alarm, occurrence }) => ({
      key: { owner: alarm.owner, alarmId: alarm.id, fireId: occurrence.fireId, fence: occurrence.fence },
      attempt: null,
      settle: (state) => settleDelivered(state, occurrence.fireId, now),
    })),
  );
  return took;
}

const store = await openStore(JSON.parse(process.argv[2]!) as DataLocation);
const times: number[] = [];
for (let claim = 0; ; claim++) {
  const took = await claimOnce(store);
  if (took === undefined) break;
  if (claim >= WARMUP_CLAIMS) times.push(took);
}
await store.close();
const sorted = Float64Array.from(times).sort();
process.stdout.write(`${JSON.stringify({ p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) })}\n`);

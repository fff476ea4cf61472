/** SQLite stores in separate folders. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { StoreUnderTest } from './store-under-test.ts';

export async function openSqliteUnderTest(): Promise<StoreUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-store-'));
  const open = () => openSqliteStore({ path: join(folder, 'chronos.db'), clock: systemClock, log: silentLogger });
  let store = open();
  // Closing ends no claim: to the next process it is the same as a death.
  const reopen = async () => {
    await store.close();
    store = open();
    return store;
  };
  return {
    store,
    reopen,
    die: reopen,
    async close() {
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A SQLite file and a PostgreSQL database to move it into. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { abandon } from '../../../src/chronos/store/transfer/abandon.ts';
import { type MoveResult, move } from '../../../src/chronos/store/transfer/move.ts';
import type { Report } from '../../../src/chronos/store/transfer/progress.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { PostgresServer } from '../../support/postgres/server.ts';

/** Text is ordered by a language's rules unless the store says otherwise, as it is on most servers. */
const CLAUSES = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";

const shared = { clock: systemClock, log: silentLogger };

type Owner = { after(cleanup: () => unknown): void };

export const openSqlite = (path: string): AlarmStore => openSqliteStore({ path, ...shared });
export const openPostgres = (uri: string): Promise<AlarmStore> => openPostgresStore({ uri, poolSize: 2, ...shared });

/** Does something with a store and closes it. */
export async function using<T>(store: AlarmStore, work: (store: AlarmStore) => Promise<T>): Promise<T> {
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

export type Workbench = {
  path: string;
  uri: string;
  database: string;
  move(report?: Report): Promise<MoveResult>;
  abandon(options?: { discard?: boolean; to?: string | undefined }): ReturnType<typeof abandon>;
};

/** A file that does not exist yet, and an empty database. */
export async function workbench(t: Owner, server: PostgresServer): Promise<Workbench> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-transfer-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const database = await server.createDatabase(CLAUSES);
  t.after(() => server.dropDatabase(database).catch(() => undefined));
  const path = join(folder, 'chronos.db');
  const uri = server.uri(database);
  return {
    path,
    uri,
    database,
    move: (report) => move({ from: path, to: uri, ...shared, ...(report && { report }) }),
    abandon: (options = {}) => abandon({ from: path, to: uri, discard: false, ...options, ...shared }),
  };
}

/** The same after `fillIn` has filled the file. */
export async function filledWorkbench(
  t: Owner,
  server: PostgresServer,
  fillIn: (store: AlarmStore) => Promise<void>,
): Promise<Workbench> {
  const bench = await workbench(t, server);
  await using(openSqlite(bench.path), fillIn);
  return bench;
}

/** A SQLite file and a PostgreSQL database as its destination. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
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

/** The rules of a language order text unless the store says otherwise, as on most servers. */
const CLAUSES = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";

const shared = { clock: systemClock, log: silentLogger };

type Owner = { after(cleanup: () => unknown): void };

export const openSqlite = (path: string): AlarmStore => openSqliteStore({ path, ...shared });
export const openPostgres = (uri: string): Promise<AlarmStore> => openPostgresStore({ uri, poolSize: 2, ...shared });

/** Runs a function on a store and closes it. */
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

/** The database of a server with tables and no rows, as a template for others. */
const templates = new Map<PostgresServer, Promise<string>>();

/** The first result for each key. */
function onceFor<K, T>(made: Map<K, T>, key: K, make: (key: K) => T): T {
  const value = made.get(key) ?? make(key);
  made.set(key, value);
  return value;
}

async function templateOf(server: PostgresServer): Promise<string> {
  const database = await server.createDatabase(CLAUSES);
  await (await openPostgres(server.uri(database))).close();
  return database;
}

/**
 * A file that does not exist yet, and an empty database.
 *
 * @param withTables whether the database has its tables already
 */
export async function workbench(t: Owner, server: PostgresServer, withTables = false): Promise<Workbench> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-transfer-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  // It is removed with the server.
  const template = withTables ? await onceFor(templates, server, templateOf) : undefined;
  const database = await server.createDatabase(template === undefined ? CLAUSES : `TEMPLATE ${template}`);
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

type Filling = (store: AlarmStore) => Promise<void>;

/** A file for each fill function: filled once, and copied from then on. */
const filled = new Map<Filling, Promise<string>>();

async function fileOf(fillIn: Filling): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-filled-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'chronos.db');
  await using(openSqlite(path), fillIn);
  return path;
}

/** The same with a filled file; the same function gives equal content. */
export async function filledWorkbench(t: Owner, server: PostgresServer, fillIn: Filling): Promise<Workbench> {
  const bench = await workbench(t, server, true);
  copyFileSync(await onceFor(filled, fillIn, fileOf), bench.path);
  return bench;
}

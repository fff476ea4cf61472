/** Checks of the data: the database files, and PostgreSQL. Nothing is opened for writing. */
import { accessSync, constants, existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { parseChronosConfig } from '../../chronos/config.ts';
import { parseAddress, withoutPassword } from '../../chronos/store/postgres/address.ts';
import { refuseDeparted } from '../../chronos/store/sqlite/departure.ts';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { DATABASES, databasePath } from '../home/databases.ts';
import { brokenBy, type Check, orUndefined, STAND_INS } from './check.ts';

const CONNECT_MS = 3000;
const BUSY_MS = 1000;

function postgresUri({ settings }: CliContext): string | undefined {
  return orUndefined(() => parseChronosConfig({ ...STAND_INS, ...settings }))?.CHRONOS_POSTGRES_URI;
}

/** The check that a start makes before it opens a file, and write permission. */
function inspectFile(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('unavailable', `${path} cannot be used by this user: ${why}`, { cause });
  }
  inspectDatabase(path, BUSY_MS);
}

function withDatabase<T>(path: string, read: (db: DatabaseSync) => T): T | undefined {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** After a move to PostgreSQL, a daemon on the file would not fire its alarms. */
function checkDeparture(path: string): void {
  try {
    withDatabase(path, (db) => refuseDeparted(db, path));
  } catch (error) {
    // A file of an older version has no such table, and was never moved.
    if (error instanceof ReveilleError || !/no such table/.test(String(error))) throw error;
  }
}

/** The existing SQLite files of this installation. */
export function checkStores(context: CliContext): Check[] {
  const name = 'databases';
  const there = DATABASES.map((known) => databasePath(context.settings, known)).filter((path) => existsSync(path));
  const onPostgres = postgresUri(context) !== undefined;
  const wrong = there.flatMap((path): Check[] => {
    try {
      inspectFile(path);
      if (path.endsWith('chronos.db') && !onPostgres) checkDeparture(path);
      return [];
    } catch (error) {
      if (!(error instanceof ReveilleError)) return [{ name, status: 'broken', detail: `${path}: ${String(error)}` }];
      return [brokenBy(name, error)];
    }
  });
  if (wrong.length > 0) return wrong;
  if (there.length === 0) return [{ name, status: 'note', detail: 'none yet; reveille up creates them' }];
  return [{ name, status: 'ok', detail: `${there.length} files, none damaged` }];
}

/** Whether a writable server is reachable; `undefined` when the alarms are in a file. */
export async function checkPostgres(context: CliContext): Promise<Check | undefined> {
  const name = 'PostgreSQL';
  const uri = postgresUri(context);
  if (uri === undefined) return undefined;
  const { default: pg } = await import('pg');
  const failures: string[] = [];
  for (const { name: server, connection } of parseAddress(uri)) {
    const client = new pg.Client({ ...connection, connectionTimeoutMillis: CONNECT_MS, query_timeout: CONNECT_MS });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS standby');
      if (!rows[0]?.standby) return { name, status: 'ok', detail: `${server} takes writes` };
      failures.push(`${server} is a standby`);
    } catch (error) {
      failures.push(`${server}: ${error instanceof Error ? error.message || error.name : String(error)}`);
    } finally {
      void client.end().catch(() => {});
    }
  }
  const remedy = `start it, or correct CHRONOS_POSTGRES_URI (${withoutPassword(uri)})`;
  return { name, status: 'broken', detail: `no writable server: ${failures.join('; ')}`, remedy };
}

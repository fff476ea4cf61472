/** Reads a store without chronosd and without writing: its SQLite file or its PostgreSQL database. */
import type { DatabaseLog } from './history.ts';
import { readSqlite } from './read-sqlite.ts';

/** Facts that the reader cannot know: see {@link DatabaseLog}. */
export type ReadMoment = { readAt?: number; wholeSince?: number };

/**
 * Reads a store.
 *
 * @param database a PostgreSQL URI, or the path of a SQLite file
 * @throws ReveilleError `invalid_request` with one sentence that states the error and the remedy
 */
export async function readDatabase(database: string, { readAt, wholeSince }: ReadMoment = {}): Promise<DatabaseLog> {
  const isUri = /^postgres(ql)?:\/\//i.test(database);
  // The client library takes a while to load, and a file needs none.
  const { now, ...rest } = isUri
    ? await (await import('./read-postgres.ts')).readPostgres(database)
    : readSqlite(database);
  return { ...rest, readAt: readAt ?? now, wholeSince: wholeSince ?? null };
}

/** Reads a SQLite store. */
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { AuditEntry } from './history.ts';
import { notAStore, QUERIES, type Snapshot, type TableQuery, unreadable } from './snapshot.ts';

const TABLES = ['alarms', 'progress', 'occurrences', 'fire_attempts'];

function tablesOf(db: DatabaseSync): Set<string> {
  return new Set(
    db
      .prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
      .all()
      .map(({ name }) => name as string),
  );
}

function rowsOf<T>(db: DatabaseSync, { table, columns }: TableQuery): T[] {
  return db.prepare(`SELECT ${columns} FROM ${table}`).all() as unknown as T[];
}

function auditOf(db: DatabaseSync): AuditEntry[] {
  const rows = db.prepare('SELECT seq, "at", "table", before, after FROM checker_audit ORDER BY seq').all();
  return rows.map(({ seq, at, table, before, after }) => {
    const image = (text: unknown) => (typeof text === 'string' ? JSON.parse(text) : null);
    return { seq, at, table, transaction: null, before: image(before), after: image(after) } as AuditEntry;
  });
}

/** Reads everything in one transaction; its chronosd may be running. */
export function readSqlite(path: string): Snapshot {
  let db: DatabaseSync | undefined;
  try {
    if (!statSync(path).isFile()) throw unreadable(path, 'is not a file; name the chronos.db inside the data folder');
    db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
    db.exec('BEGIN');
    const tables = tablesOf(db);
    const missing = TABLES.filter((table) => !tables.has(table));
    if (missing.length > 0) throw notAStore(path, missing);
    return {
      now: systemClock.now(),
      alarms: rowsOf(db, QUERIES.alarms),
      occurrences: rowsOf(db, QUERIES.occurrences),
      attempts: rowsOf(db, QUERIES.attempts),
      audit: tables.has('checker_audit') ? auditOf(db) : null,
    };
  } catch (cause) {
    if (cause instanceof ReveilleError) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw unreadable(path, 'cannot be read: there is no such file; name a chronos.db', cause);
    throw unreadable(
      path,
      `cannot be read as a chronos store (${message}); name the chronos.db of this version`,
      cause,
    );
  } finally {
    db?.close();
  }
}

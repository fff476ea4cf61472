/** Schema migrations: numbered `NNNN-name.sql` files, applied once, in order. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Clock } from '../clock/clock.ts';
import { isDamage } from './sqlite-error.ts';

/** One migration file. `sha256` is computed with `\n` line ends, so that a checkout cannot change it. */
export type Migration = { version: number; name: string; sql: string; sha256: string };

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/**
 * Reads a folder of migrations, in order. Files without the ending `.sql` are ignored.
 *
 * @throws ReveilleError `internal` if a name is malformed, a number is missing or duplicated, or there is no file
 */
export function readMigrations(folder: URL | string): Migration[] {
  const path = folder instanceof URL ? fileURLToPath(folder) : folder;
  const files = readdirSync(path)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  if (files.length === 0) throw new ReveilleError('internal', `${path} contains no migrations`, { retryable: false });
  return files.map((file, index) => {
    const match = FILE_NAME.exec(file);
    const wanted = String(index + 1).padStart(4, '0');
    if (match?.[1] !== wanted) {
      const message = `migrations must be numbered without gaps: expected ${wanted}-<name>.sql in ${path}, found ${file}`;
      throw new ReveilleError('internal', message, { retryable: false });
    }
    const sql = readFileSync(join(path, file), 'utf8').replaceAll('\r\n', '\n');
    return { version: index + 1, name: match[2]!, sql, sha256: createHash('sha256').update(sql).digest('hex') };
  });
}

type AppliedMigration = { version: number; name: string; sha256: string };

/** The applied migrations of a database, oldest first; empty for a new database. */
function readLedger(db: DatabaseSync, path: string): AppliedMigration[] {
  const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all() as { name: string }[];
  if (tables.length === 0) return [];
  if (!tables.some(({ name }) => name === 'schema_migrations')) {
    throw new ReveilleError('conflict', `${path} is a database of another program; choose another data folder`);
  }
  return db.prepare('SELECT version, name, sha256 FROM schema_migrations ORDER BY version').all() as AppliedMigration[];
}

/** Refuses a database whose history differs from the migrations. */
function checkHistory(applied: readonly AppliedMigration[], migrations: readonly Migration[], path: string): void {
  const newest = applied.at(-1)?.version ?? 0;
  if (newest > migrations.length) {
    const message = `${path} was written by a newer Reveille (schema ${newest}, this one knows ${migrations.length}); start that version or a later one`;
    throw new ReveilleError('conflict', message);
  }
  applied.forEach((past, index) => {
    const migration = migrations[index];
    if (past.version === index + 1 && past.sha256 === migration?.sha256) return;
    const message = `${path} has applied migration ${past.version} (${past.name}) with other contents than this Reveille has; start the version that wrote it`;
    throw new ReveilleError('conflict', message);
  });
}

function applyOne(db: DatabaseSync, migration: Migration, path: string, clock: Clock): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have applied it meanwhile.
    if (db.prepare('SELECT 1 FROM schema_migrations WHERE version = ?').get(migration.version) !== undefined) {
      db.exec('COMMIT');
      return;
    }
    db.exec(migration.sql);
    if (!db.isTransaction) throw new Error('the file ends its transaction; remove its COMMIT or ROLLBACK');
    db.prepare('INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)').run(
      migration.version,
      migration.name,
      migration.sha256,
      formatInstant(clock.now()),
    );
    db.exec('COMMIT');
  } catch (cause) {
    if (db.isTransaction) db.exec('ROLLBACK');
    if (isDamage(cause)) throw cause;
    throw new ReveilleError(
      'internal',
      `migration ${migration.version} (${migration.name}) of ${path} failed: ${thrownText(cause)}`,
      {
        retryable: false,
        cause,
      },
    );
  }
}

/**
 * Applies the missing migrations in order, each file in its own transaction.
 *
 * @param path names the database in messages
 * @throws ReveilleError `conflict` if the database is newer, has another history, or belongs to another program;
 * `internal` if a file fails
 */
export function migrate(db: DatabaseSync, migrations: readonly Migration[], path: string, clock: Clock): void {
  const applied = readLedger(db, path);
  checkHistory(applied, migrations, path);
  if (applied.length === migrations.length) return;
  db.exec(`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      version    INTEGER PRIMARY KEY,
      name       TEXT NOT NULL,
      sha256     TEXT NOT NULL,
      applied_at TEXT NOT NULL
    ) STRICT`);
  for (const migration of migrations.slice(applied.length)) applyOne(db, migration, path, clock);
}

/** Opens a SQLite file so that acknowledged writes survive a power failure, and leaves a damaged file unchanged. */
import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import { createPrivateFile, ownFile } from './file-owner.ts';
import { migrate, readMigrations } from './migrations.ts';
import { isDamage, SQLITE, sqliteCode, storageError } from './sqlite-error.ts';

/** An open database. `path` is its real path. */
export type SqliteFile = {
  readonly db: DatabaseSync;
  readonly path: string;
  /** Closes the database and releases its ownership; may be called twice. */
  close(): void;
};

export type OpenDatabaseOptions = {
  /** The database file. It and its folder are created (0600, 0700) if missing. */
  path: string;
  /** The folder of numbered `.sql` files. */
  migrations: URL | string;
  clock: Clock;
  /** `exclusive`: this process owns the file until it closes it or ends. `shared`: no ownership is taken or checked. */
  lock: 'exclusive' | 'shared';
  /** How long a statement waits for another connection's lock. Default 5000. */
  busyTimeoutMs?: number;
  /** Page size of a new file, a power of two. Default 4096. An existing file keeps its own. */
  pageBytes?: number;
};

/**
 * Files up to this size are checked completely on every start, which takes a fraction of a second. Larger ones are not,
 * because a start after a crash must not read gigabytes; SQLite still reports damage in the pages that it reads.
 */
const CHECKED_BYTES = 16 * 1024 * 1024;

function damaged(path: string, cause: unknown): ReveilleError {
  const why = thrownText(cause);
  const message = `${path} is damaged (${why}); it was left untouched. Restore it from a backup, or move it away to start empty`;
  return new ReveilleError('unavailable', message, { retryable: false, cause });
}

/**
 * Checks for damage with a read-only connection. A writing connection could already move a write-ahead log into the
 * file.
 *
 * @throws ReveilleError `unavailable` (not retryable) if the file is damaged
 */
export function inspectDatabase(path: string, busyTimeoutMs: number): void {
  if (!existsSync(path)) return;
  const { size } = statSync(path);
  if (size === 0) return;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    if (size > CHECKED_BYTES) return;
    const finding = db.prepare('PRAGMA quick_check(1)').get() as { quick_check: string };
    if (finding.quick_check !== 'ok') throw damaged(path, new Error(finding.quick_check));
  } catch (thrown) {
    if (thrown instanceof ReveilleError) throw thrown;
    if (isDamage(thrown)) throw damaged(path, thrown);
    // The writing connection handles other errors, such as a rollback journal that a read-only one may not replay.
  } finally {
    db?.close();
  }
}

function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}

/** Pause between two attempts to switch the journal mode. */
const SWITCH_RETRY_MS = 5;

/**
 * Switches a new file to a write-ahead log. If another process does the same, both hold a lock that the other needs,
 * and SQLite refuses at once despite its timeout. This function therefore waits itself.
 */
function switchToLog(db: DatabaseSync, busyTimeoutMs: number): void {
  db.exec('PRAGMA busy_timeout = 0');
  for (let waitedMs = 0; ; waitedMs += SWITCH_RETRY_MS) {
    try {
      db.exec(`PRAGMA journal_mode = WAL; PRAGMA busy_timeout = ${busyTimeoutMs}`);
      return;
    } catch (thrown) {
      if (sqliteCode(thrown) !== SQLITE.BUSY || waitedMs >= busyTimeoutMs) throw thrown;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SWITCH_RETRY_MS);
    }
  }
}

/** Sets the pragmas for durability and reads them back, because SQLite ignores a pragma that it cannot apply. */
function configure(db: DatabaseSync, path: string, busyTimeoutMs: number): void {
  switchToLog(db, busyTimeoutMs);
  db.exec(`
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    -- macOS acknowledges a plain fsync before the data is on disk.
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    -- Truncates the log file after a burst.
    PRAGMA journal_size_limit = 67108864;
  `);
  const wanted = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1, trusted_schema: 0 };
  for (const [name, value] of Object.entries(wanted)) {
    const got = pragma(db, name);
    if (got === value) continue;
    const message = `${path} cannot be opened durably: SQLite keeps ${name} at ${got} where ${value} is needed; use a local disk`;
    throw new ReveilleError('unavailable', message, { retryable: false });
  }
}

/** The path with every symbolic link resolved, so that two names of one file get one lock. */
function realPathOf(path: string): string {
  const absolute = resolve(path);
  mkdirSync(dirname(absolute), { recursive: true, mode: 0o700 });
  return existsSync(absolute) ? realpathSync(absolute) : join(realpathSync(dirname(absolute)), basename(absolute));
}

function openAndMigrate(path: string, options: OpenDatabaseOptions): DatabaseSync {
  const migrations = readMigrations(options.migrations);
  const busyTimeoutMs = options.busyTimeoutMs ?? 5000;
  inspectDatabase(path, busyTimeoutMs);
  createPrivateFile(path);
  const db = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    // The page size is fixed with the first page, which the switch to a log writes.
    if (options.pageBytes !== undefined) db.exec(`PRAGMA page_size = ${options.pageBytes}`);
    configure(db, path, busyTimeoutMs);
    migrate(db, migrations, path, options.clock);
    return db;
  } catch (thrown) {
    db.close();
    throw isDamage(thrown) ? damaged(path, thrown) : thrown;
  }
}

/**
 * Opens or creates a database in WAL mode with `synchronous = FULL`, and applies its migrations.
 *
 * Not for network file systems: neither WAL nor the lock works across machines.
 *
 * @throws ReveilleError `unavailable` (retryable) if another process owns the file. `unavailable` if the file is damaged
 *   (it is not changed), if the disk refuses, or if a pragma has no effect. `conflict` if the file belongs to a newer
 *   version or another program. `internal` if a migration is wrong.
 */
export function openDatabase(options: OpenDatabaseOptions): SqliteFile {
  let release: (() => void) | undefined;
  try {
    const path = realPathOf(options.path);
    if (options.lock === 'exclusive') release = ownFile(path);
    const db = openAndMigrate(path, options);
    const close = () => {
      if (db.isOpen) db.close();
      release?.();
    };
    return { db, path, close };
  } catch (thrown) {
    release?.();
    throw openingError(options.path, thrown);
  }
}

/** Adds the path to an error, because system and SQLite errors do not always contain it. */
function openingError(path: string, thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  const known = storageError(thrown);
  if (known.code === 'internal' && !(thrown instanceof Error && 'syscall' in thrown)) return known;
  return new ReveilleError('unavailable', `${path} cannot be opened: ${thrownText(thrown)}`, { cause: thrown });
}

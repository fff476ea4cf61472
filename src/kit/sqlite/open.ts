/** Opening a SQLite file so that what it acknowledges survives a power cut, and so that a damaged one is left alone. */
import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import { createPrivateFile, ownFile } from './file-owner.ts';
import { migrate, readMigrations } from './migrations.ts';
import { isDamage, SQLITE, sqliteCode, storageError } from './sqlite-error.ts';

/** An open database. `path` is its real path. */
export type SqliteFile = {
  readonly db: DatabaseSync;
  readonly path: string;
  /** Closes the database and gives up its ownership; harmless when called twice. */
  close(): void;
};

export type OpenDatabaseOptions = {
  /** The database file; it and its folder are made (0600, 0700) when missing. */
  path: string;
  /** The folder of numbered `.sql` files. */
  migrations: URL | string;
  clock: Clock;
  /**
   * `exclusive`: this process owns the file until it closes it or ends. `shared`: no ownership is taken or looked at.
   */
  lock: 'exclusive' | 'shared';
  /** How long a statement waits for another connection's lock; 5000 unless told. */
  busyTimeoutMs?: number;
  /** The size of a page of a new file, a power of two; 4096 unless told. A file that is there keeps its own. */
  pageBytes?: number;
};

/**
 * Files up to this size are read through on every start, which takes a fraction of a second. Larger ones are not: a
 * start after a crash must not wait for gigabytes, and SQLite reports damage in the pages it reads anyway.
 */
const CHECKED_BYTES = 16 * 1024 * 1024;

function damaged(path: string, cause: unknown): ReveilleError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `${path} is damaged (${why}); it was left untouched. Restore it from a backup, or move it away to start empty`;
  return new ReveilleError('unavailable', message, { retryable: false, cause });
}

/**
 * Looks for damage through a read-only connection: opening for writing could already move a write-ahead log into the
 * file.
 *
 * @throws ReveilleError `unavailable` (not retryable) when the file is damaged
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
    // Anything else, such as a roll-back journal that a read-only connection may not replay, is the writer's to settle.
  } finally {
    db?.close();
  }
}

function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}

/** From one attempt to switch a file to the next. */
const SWITCH_AGAIN_MS = 5;

/**
 * Switches a new file to a write-ahead log. Beside another process that does the same SQLite refuses at once, whatever
 * its timeout: both hold a lock, and neither can have the other's. So the waiting is done here.
 */
function switchToLog(db: DatabaseSync, busyTimeoutMs: number): void {
  db.exec('PRAGMA busy_timeout = 0');
  for (let waitedMs = 0; ; waitedMs += SWITCH_AGAIN_MS) {
    try {
      db.exec(`PRAGMA journal_mode = WAL; PRAGMA busy_timeout = ${busyTimeoutMs}`);
      return;
    } catch (thrown) {
      if (sqliteCode(thrown) !== SQLITE.BUSY || waitedMs >= busyTimeoutMs) throw thrown;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SWITCH_AGAIN_MS);
    }
  }
}

/** Sets what durability rests on and reads it back: SQLite ignores a pragma that it cannot follow. */
function configure(db: DatabaseSync, path: string, busyTimeoutMs: number): void {
  switchToLog(db, busyTimeoutMs);
  db.exec(`
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    -- macOS acknowledges a plain fsync before the disk has the bytes.
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    -- A burst must not leave a huge log file behind for ever.
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
    // SQLite keeps to it from the first page on, which the switch to a log writes.
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
 * Opens (or makes) a database in WAL mode with `synchronous = FULL` and brings its schema up to date.
 *
 * Not for network file systems: neither WAL nor the lock works across machines.
 *
 * @throws ReveilleError `unavailable` when another process owns the file (retryable), when it is damaged (its bytes are
 *   left as they are), when the disk refuses, or when a pragma does not hold; `conflict` when the file belongs to a
 *   newer version or to something else; `internal` when a migration is wrong
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

/** Says which file it was about: system and SQLite errors do not always name it. */
function openingError(path: string, thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  const known = storageError(thrown);
  if (known.code === 'internal' && !(thrown instanceof Error && 'syscall' in thrown)) return known;
  return new ReveilleError('unavailable', `${path} cannot be opened: ${why}`, { cause: thrown });
}

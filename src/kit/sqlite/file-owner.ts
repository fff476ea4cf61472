/**
 * One process per database file, held by the kernel.
 *
 * Beside `x.db` lies `x.db.lock`, an empty SQLite file on which an exclusive transaction stays open for as long as the
 * owner lives. Nothing is ever written to it, so it cannot be damaged; the lock is an operating-system file lock, so it
 * is gone with the process however that ends, and a file left behind blocks nobody. `x.db.pid` says who the owner is;
 * it is only read to word the refusal and decides nothing.
 *
 * The lock stands beside the database and not on it, so that `sqlite3`, a backup or `reveille doctor` can still read.
 */
import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../wire/errors.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';

/** Creates an empty file only its owner can read; leaves an existing one alone. */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
  }
}

function takeLock(lockPath: string): DatabaseSync {
  const lock = new DatabaseSync(lockPath, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (thrown) {
    lock.close();
    throw thrown;
  }
}

/** Another process owns the file. */
export class FileInUse extends ReveilleError {
  /** The owner, as far as it is known. */
  readonly pid: number | undefined;

  constructor(path: string, pid: number | undefined) {
    const who = pid === undefined ? 'another process' : `process ${pid}`;
    super('unavailable', `${path} is in use by ${who}; stop it first, or choose another data folder for this one`);
    this.pid = pid;
  }
}

/** The process that says it owns the file; it may be gone. */
function readOwner(path: string): number | undefined {
  try {
    const digits = /^\d+$/.exec(readFileSync(`${path}.pid`, 'utf8').trim())?.[0];
    return digits === undefined ? undefined : Number(digits);
  } catch {
    // The owner has not written its number yet, or runs as somebody else.
    return undefined;
  }
}

/** The process that most probably owns the file at present, for a remark: only {@link ownFile} finds out. */
export function likelyOwner(path: string): number | undefined {
  const pid = readOwner(path);
  if (pid === undefined) return undefined;
  try {
    process.kill(pid, 0);
    return pid;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM' ? pid : undefined;
  }
}

function inUse(path: string): ReveilleError {
  const owner = readOwner(path);
  if (owner === process.pid) {
    return new ReveilleError('unavailable', `${path} is already open in this process (${owner})`);
  }
  return new FileInUse(path, owner);
}

/**
 * Makes this process the only owner of a database file.
 *
 * @param path the database's real path, so that two names of one file meet
 * @returns gives the ownership up; harmless when called twice
 * @throws ReveilleError `unavailable` (retryable) naming the process that owns the file, this one included
 */
export function ownFile(path: string): () => void {
  const lockPath = `${path}.lock`;
  createPrivateFile(lockPath);
  let lock: DatabaseSync;
  try {
    lock = takeLock(lockPath);
  } catch (thrown) {
    if (sqliteCode(thrown) === SQLITE.BUSY) throw inUse(path);
    if (sqliteCode(thrown) !== SQLITE.NOTADB) throw thrown;
    // Somebody wrote into the lock file. No owner can hold a file that SQLite cannot read, so it may be emptied.
    truncateSync(lockPath, 0);
    try {
      lock = takeLock(lockPath);
    } catch (again) {
      throw sqliteCode(again) === SQLITE.BUSY ? inUse(path) : again;
    }
  }
  let owned = true;
  const release = () => {
    if (!owned) return;
    owned = false;
    rmSync(`${path}.pid`, { force: true });
    lock.close();
  };
  try {
    writeFileSync(`${path}.pid`, `${process.pid}\n`, { mode: 0o600 });
  } catch (thrown) {
    release();
    throw thrown;
  }
  return release;
}

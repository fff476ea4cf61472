/**
 * Exclusive ownership of a database file by one process, enforced by the kernel.
 *
 * `x.db.lock` beside `x.db` is an empty SQLite file with an open exclusive transaction for the owner's lifetime.
 * Nothing is written to it, so it cannot be damaged. The lock is an operating-system file lock: it ends with the
 * process, and a leftover file blocks no other process. `x.db.pid` contains the owner's process id; it is used for the
 * error message only.
 *
 * The lock is not on the database itself, so that `sqlite3`, a backup or `reveille doctor` can still read it.
 */
import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { ReveilleError, systemCodeOf } from '../../wire/errors.ts';
import { SQLITE, sqliteCode } from './sqlite-error.ts';

/** Creates an empty file that only its owner can read; an existing one stays unchanged. */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (thrown) {
    if (systemCodeOf(thrown) !== 'EEXIST') throw thrown;
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
  /** The owner, if known. */
  readonly pid: number | undefined;

  constructor(path: string, pid: number | undefined) {
    const who = pid === undefined ? 'another process' : `process ${pid}`;
    super('unavailable', `${path} is in use by ${who}; stop it first, or choose another data folder for this one`);
    this.pid = pid;
  }
}

/** The recorded owner of the file, which may have ended. */
function readOwner(path: string): number | undefined {
  try {
    const digits = /^\d+$/.exec(readFileSync(`${path}.pid`, 'utf8').trim())?.[0];
    return digits === undefined ? undefined : Number(digits);
  } catch {
    // The owner has not written its process id yet, or runs as another user.
    return undefined;
  }
}

/** Whether a process with this id exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return systemCodeOf(thrown) === 'EPERM';
  }
}

/** The file's probable owner, for messages; only {@link ownFile} is reliable. */
export function likelyOwner(path: string): number | undefined {
  const pid = readOwner(path);
  return pid !== undefined && isAlive(pid) ? pid : undefined;
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
 * @param path the database's real path, so that two names of one file are recognised
 * @returns releases the ownership; may be called twice
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
    // Another program wrote into the lock file. A file that SQLite cannot read has no owner, so it may be emptied.
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

/** Translates SQLite's errors into Reveille's. */
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';

/** Primary result codes (https://www.sqlite.org/rescode.html) that Reveille handles. */
export const SQLITE = {
  BUSY: 5,
  NOMEM: 7,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  CONSTRAINT: 19,
  NOTADB: 26,
} as const;

const DAMAGE: ReadonlySet<number> = new Set([SQLITE.CORRUPT, SQLITE.NOTADB]);
const STORAGE: ReadonlySet<number> = new Set([
  SQLITE.BUSY,
  SQLITE.NOMEM,
  SQLITE.READONLY,
  SQLITE.IOERR,
  SQLITE.FULL,
  SQLITE.CANTOPEN,
]);

/** The primary result code of an error that SQLite threw, or `undefined` for any other value. */
export function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('errcode' in thrown) || typeof thrown.errcode !== 'number') return undefined;
  return thrown.errcode & 0xff;
}

/** Whether SQLite found the file damaged, or not a database. */
export function isDamage(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code !== undefined && DAMAGE.has(code);
}

/**
 * Translates the error of a statement, a `BEGIN` or a `COMMIT`. Full disks, I/O errors and locks become `unavailable`
 * (retryable), a damaged file `unavailable` (not retryable). A {@link ReveilleError} is returned unchanged; all others
 * become `internal`.
 */
export function storageError(thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  const code = sqliteCode(thrown);
  if (code === undefined) return toReveilleError(thrown);
  const reason = (thrown as Error).message;
  if (DAMAGE.has(code)) {
    const message = `the database file is damaged (${reason}); stop the process and restore the file from a backup`;
    return new ReveilleError('unavailable', message, { retryable: false, cause: thrown });
  }
  if (STORAGE.has(code)) {
    return new ReveilleError('unavailable', `nothing was stored: ${reason}; try again later`, { cause: thrown });
  }
  return toReveilleError(thrown);
}

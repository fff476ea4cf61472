/** What SQLite says went wrong, in the house's words. */
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';

/** Primary result codes (https://www.sqlite.org/rescode.html) that the house reacts to. */
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

/** Whether SQLite found that the file is damaged or is no database at all. */
export function isDamage(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code !== undefined && DAMAGE.has(code);
}

/**
 * Translates what a statement, a `BEGIN` or a `COMMIT` threw. Full disks, I/O errors and locks become `unavailable`
 * (retryable), a damaged file `unavailable` (not retryable); a {@link ReveilleError} comes back as it is and everything
 * else becomes `internal`.
 */
export function storageError(thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  const code = sqliteCode(thrown);
  if (code === undefined) return toReveilleError(thrown);
  const said = (thrown as Error).message;
  if (DAMAGE.has(code)) {
    const message = `the database file is damaged (${said}); stop the process and restore the file from a backup`;
    return new ReveilleError('unavailable', message, { retryable: false, cause: thrown });
  }
  if (STORAGE.has(code)) {
    return new ReveilleError('unavailable', `nothing was stored: ${said}; try again later`, { cause: thrown });
  }
  return toReveilleError(thrown);
}

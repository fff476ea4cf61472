/** Translates errors of PostgreSQL, and of the connection to it, to errors of chronos. */
import { ReveilleError, toReveilleError } from '../../../wire/errors.ts';

/** SQLSTATE codes (PostgreSQL manual, appendix A) that the store handles by name. */
export const SQLSTATE = {
  UNIQUE_VIOLATION: '23505',
  READ_ONLY: '25006',
  SERIALIZATION_FAILURE: '40001',
  DEADLOCK: '40P01',
  TOO_MANY_CONNECTIONS: '53300',
  LOCK_NOT_AVAILABLE: '55P03',
  INSUFFICIENT_PRIVILEGE: '42501',
  DUPLICATE_TABLE: '42P07',
  UNDEFINED_TABLE: '42P01',
} as const;

/** The SQLSTATE of a server's error; `undefined` for any other value. */
export function sqlState(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !('severity' in thrown) || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}

/**
 * Whether an immediate retry of the transaction may succeed, because it conflicted with another one. ON CONFLICT names
 * one unique index. When two transactions add the same row at once, the later one may conflict at a second index; on a
 * retry it finds the row.
 */
export function isConflict(thrown: unknown): boolean {
  const code = sqlState(thrown);
  return code === SQLSTATE.SERIALIZATION_FAILURE || code === SQLSTATE.DEADLOCK || code === SQLSTATE.UNIQUE_VIOLATION;
}

/**
 * Whether the connection is unusable: it was cut, does not answer, or its server is stopping or accepts no writes. All
 * errors that are not answers of the server count.
 */
export function isConnectionLost(thrown: unknown): boolean {
  if (thrown instanceof ReveilleError) return false;
  const code = sqlState(thrown);
  if (code === undefined) return true;
  // An error of the server about its connection to another one (a worker of Citus) does not mean this connection is
  // lost.
  return code === SQLSTATE.READ_ONLY || code === '25P03' || isFatal(thrown);
}

function isFatal(thrown: unknown): boolean {
  const { severity } = thrown as { severity?: unknown };
  return severity === 'FATAL' || severity === 'PANIC';
}

type Verdict = { retryable: boolean; remedy: string };

const LATER: Verdict = { retryable: true, remedy: 'try again later' };

/** Classes and codes of errors that pass, or that an operator can remedy. */
const VERDICTS: [codes: RegExp, verdict: Verdict][] = [
  [/^(08|57P|58)/, LATER],
  [/^53100$/, { retryable: true, remedy: 'free some disk space on the database server' }],
  [/^53300$/, { retryable: true, remedy: 'raise max_connections of the server, or run fewer replicas' }],
  [/^53/, LATER],
  [/^25006$/, { retryable: true, remedy: 'the server accepts no writes any more; searching for the one that does' }],
  [/^25P03$/, LATER],
  [/^(40001|40P01|55P03)$/, { retryable: true, remedy: 'too many conflicting changes; try again' }],
  [/^57014$/, { retryable: true, remedy: 'the statement took too long; try again later' }],
  [
    /^28/,
    { retryable: false, remedy: 'check user and password in CHRONOS_POSTGRES_URI, and pg_hba.conf of the server' },
  ],
  [/^3D000$/, { retryable: false, remedy: 'create the database, or name another one in CHRONOS_POSTGRES_URI' }],
  [/^42501$/, { retryable: false, remedy: 'grant the user of CHRONOS_POSTGRES_URI the missing rights' }],
  [/^XX00[12]$/, { retryable: false, remedy: 'the database is damaged; restore it from a backup' }],
];

/**
 * The text of an error, for messages and the log. The errors themselves are not logged, because the library attaches
 * whole connections to some. A host with several addresses fails once for each; the aggregate error has no text of its
 * own.
 */
export function errorText(thrown: unknown): string {
  if (thrown instanceof AggregateError) return [...new Set(thrown.errors.map(errorText))].join(', ');
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

/**
 * Translates an error of a connection or a statement. A lost connection, or a server that stops, is full or busy,
 * becomes `unavailable` (retryable). A problem that an operator must remedy becomes `unavailable` (not retryable). A
 * {@link ReveilleError} stays unchanged, and everything else becomes `internal`.
 */
export function storeError(thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  const text = errorText(thrown);
  const code = sqlState(thrown);
  if (code === undefined) {
    if (!(thrown instanceof Error) || thrown instanceof TypeError || thrown instanceof RangeError)
      return toReveilleError(thrown);
    return new ReveilleError('unavailable', `PostgreSQL cannot be reached (${text}); try again later`, {
      cause: thrown,
    });
  }
  const verdict = VERDICTS.find(([codes]) => codes.test(code))?.[1];
  if (!verdict) return toReveilleError(thrown);
  const message = `PostgreSQL cannot do this now (${text}); ${verdict.remedy}`;
  return new ReveilleError('unavailable', message, { retryable: verdict.retryable, cause: thrown });
}

/** What PostgreSQL, or the way to it, says went wrong, in the house's words. */
import { ReveilleError, toReveilleError } from '../../../wire/errors.ts';

/** SQLSTATE codes (PostgreSQL manual, appendix A) that the store reacts to by name. */
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

/** The SQLSTATE of an error that the server sent; `undefined` for any other value. */
export function sqlState(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !('severity' in thrown) || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}

/**
 * Whether the same transaction, run again at once, may succeed: it met another one. ON CONFLICT names one unique index;
 * where two transactions add the same row at the same instant, the later one may meet the other at a second index, and
 * finds the row when it is run again.
 */
export function isConflict(thrown: unknown): boolean {
  const code = sqlState(thrown);
  return code === SQLSTATE.SERIALIZATION_FAILURE || code === SQLSTATE.DEADLOCK || code === SQLSTATE.UNIQUE_VIOLATION;
}

/**
 * Whether the connection is of no more use: it was cut, it does not answer, or its server is stopping or takes no
 * writes (any more). Everything that is not an answer of the server counts.
 */
export function isConnectionLost(thrown: unknown): boolean {
  if (thrown instanceof ReveilleError) return false;
  const code = sqlState(thrown);
  if (code === undefined) return true;
  // What a server tells of its way to another one (a worker of Citus) is no loss of the way to it.
  return code === SQLSTATE.READ_ONLY || code === '25P03' || isFatal(thrown);
}

function isFatal(thrown: unknown): boolean {
  const { severity } = thrown as { severity?: unknown };
  return severity === 'FATAL' || severity === 'PANIC';
}

type Verdict = { retryable: boolean; remedy: string };

const LATER: Verdict = { retryable: true, remedy: 'try again later' };

/** Classes and codes after which the store works again by itself, or once its operator has done something. */
const VERDICTS: [codes: RegExp, verdict: Verdict][] = [
  [/^(08|57P|58)/, LATER],
  [/^53100$/, { retryable: true, remedy: 'free some disk space on the database server' }],
  [/^53300$/, { retryable: true, remedy: 'raise max_connections of the server, or run fewer replicas' }],
  [/^53/, LATER],
  [/^25006$/, { retryable: true, remedy: 'the server takes no writes any more; looking for the one that does' }],
  [/^25P03$/, LATER],
  [/^(40001|40P01|55P03)$/, { retryable: true, remedy: 'too many changes met each other; try again' }],
  [/^57014$/, { retryable: true, remedy: 'the statement took too long; try again later' }],
  [
    /^28/,
    { retryable: false, remedy: 'check user and password in CHRONOS_POSTGRES_URI, and pg_hba.conf of the server' },
  ],
  [/^3D000$/, { retryable: false, remedy: 'create the database, or name another one in CHRONOS_POSTGRES_URI' }],
  [/^42501$/, { retryable: false, remedy: 'grant the user of CHRONOS_POSTGRES_URI what it lacks' }],
  [/^XX00[12]$/, { retryable: false, remedy: 'the database is damaged; restore it from a backup' }],
];

/**
 * What an error says, for messages and the log. (The errors themselves are not logged: the library hangs whole
 * connections on some.) A host with several addresses fails once for each, and the error that holds them all says
 * nothing itself.
 */
export function sayingOf(thrown: unknown): string {
  if (thrown instanceof AggregateError) return [...new Set(thrown.errors.map(sayingOf))].join(', ');
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

/**
 * Translates what a connection or a statement threw. A lost connection, a server that stops, is full or busy becomes
 * `unavailable` (retryable), what an operator has to mend `unavailable` (not retryable); a {@link ReveilleError} comes
 * back as it is and everything else becomes `internal`.
 */
export function storeError(thrown: unknown): ReveilleError {
  if (thrown instanceof ReveilleError) return thrown;
  const said = sayingOf(thrown);
  const code = sqlState(thrown);
  if (code === undefined) {
    if (!(thrown instanceof Error) || thrown instanceof TypeError || thrown instanceof RangeError)
      return toReveilleError(thrown);
    return new ReveilleError('unavailable', `PostgreSQL cannot be reached (${said}); try again later`, {
      cause: thrown,
    });
  }
  const verdict = VERDICTS.find(([codes]) => codes.test(code))?.[1];
  if (!verdict) return toReveilleError(thrown);
  const message = `PostgreSQL cannot do this now (${said}); ${verdict.remedy}`;
  return new ReveilleError('unavailable', message, { retryable: verdict.retryable, cause: thrown });
}

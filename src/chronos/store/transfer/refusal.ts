/** Why the database does not take what it is sent. */
import { ReveilleError } from '../../../wire/errors.ts';
import { SQLSTATE, sayingOf, sqlState, storeError } from '../postgres/postgres-error.ts';
import { keyOf, type MovingTable, type Values } from './tables.ts';

const NUL_IN_TEXT = /^22(021|P05)$/;
const BYTE_COLUMNS: ReadonlySet<string> = new Set(['wake_message', 'last_error', 'error']);

/** Another process is in charge of the move. */
export function takenOver(name: string): ReveilleError {
  return new ReveilleError(
    'conflict',
    `another process moves alarms into ${name}, or gave this move up; let it finish, then run this again`,
  );
}

/** Why a batch was not taken. */
export function refusalOf(table: MovingTable, rows: readonly Values[], thrown: unknown): ReveilleError {
  const code = sqlState(thrown);
  if (code === SQLSTATE.UNIQUE_VIOLATION)
    return new ReveilleError(
      'conflict',
      `the database holds ${table.name} that this move did not bring (${sayingOf(thrown)}); give the move up with "reveille migrate --abandon" and move into an empty database`,
      { cause: thrown },
    );
  if (code === undefined || !/^2[23]/.test(code)) return storeError(thrown);
  const where = NUL_IN_TEXT.test(code) ? findNul(table, rows) : undefined;
  return new ReveilleError(
    'conflict',
    `PostgreSQL cannot keep ${where ?? `a row of ${table.name}`} (${sayingOf(thrown)}); correct it in the SQLite file, or stay with that by "reveille migrate --abandon"`,
    { cause: thrown },
  );
}

/** Which value holds U+0000, in words; only columns of bytes take that. */
function findNul(table: MovingTable, rows: readonly Values[]): string | undefined {
  const names = table.columns.split(', ');
  for (const row of rows) {
    const at = row.findIndex(
      (value, index) => typeof value === 'string' && value.includes('\0') && !BYTE_COLUMNS.has(names[index]!),
    );
    if (at >= 0) return `the ${names[at]} of ${JSON.stringify(keyOf(table, row))} in ${table.name}, which holds U+0000`;
  }
  return undefined;
}

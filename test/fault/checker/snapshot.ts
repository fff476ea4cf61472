/** The contents of a store, the same for both engines. */
import type { Alarm, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import {
  ALARM_COLUMNS,
  ATTEMPT_COLUMNS,
  type Columns,
  OCCURRENCE_COLUMNS,
} from '../../../src/chronos/store/columns.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { AuditEntry } from './history.ts';

/** A table read as the domain's objects. The two stores name their columns alike. */
export type TableQuery = { table: 'alarms' | 'occurrences' | 'fire_attempts'; columns: string };

function selected<T>(columns: Columns<T>): string {
  return Object.entries<Columns<T>[keyof Columns<T>]>(columns)
    .map(([member, { name }]) => `${name} AS "${member}"`)
    .join(', ');
}

export const QUERIES = {
  alarms: { table: 'alarms', columns: selected(ALARM_COLUMNS) },
  occurrences: { table: 'occurrences', columns: selected(OCCURRENCE_COLUMNS) },
  attempts: { table: 'fire_attempts', columns: selected(ATTEMPT_COLUMNS) },
} as const satisfies Record<string, TableQuery>;

/** The result of both readers. */
export type Snapshot = {
  /** The database's clock; for SQLite, which has none, this machine's. */
  now: number;
  alarms: Alarm[];
  occurrences: Occurrence[];
  attempts: Attempt[];
  audit: AuditEntry[] | null;
};

/** One sentence about an unreadable database. */
export function unreadable(name: string, what: string, cause?: unknown): ReveilleError {
  return new ReveilleError('invalid_request', `${name} ${what}`, { cause });
}

/** One sentence about a database of another program. */
export function notAStore(name: string, missing: readonly string[], cause?: unknown): ReveilleError {
  return unreadable(
    name,
    `is not a chronos store: it lacks ${missing.join(', ')}; name the chronos.db of a data folder, or chronosd's database URI`,
    cause,
  );
}

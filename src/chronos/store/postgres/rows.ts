/** Converts between rows and domain objects. Statements, reading and binding follow the lists of `columns.ts`. */
import type { Alarm, AlarmState } from '../../alarm/alarm.ts';
import {
  AGENT_KEY_COLUMNS,
  ALARM_COLUMNS,
  ATTEMPT_COLUMNS,
  type Columns,
  type ColumnType,
  IDENTITY,
  type Member,
  OCCURRENCE_COLUMNS,
  OWNER_COLUMNS,
  TURN_REPORT_COLUMNS,
} from '../columns.ts';
import type { Row } from './statement.ts';

/**
 * An array literal of PostgreSQL (manual, 8.15.2). The client library's own conversion takes twice the time, which is a
 * large part of a batch's cost.
 */
function arrayLiteral<T>(type: ColumnType, items: readonly T[], pick: (item: T) => unknown): string {
  let literal = '{';
  for (let index = 0; index < items.length; index++) {
    if (index > 0) literal += ',';
    const value = pick(items[index]!);
    if (value === null || value === undefined) literal += 'NULL';
    else if (typeof value !== 'string') literal += type === 'switch' ? Number(value) : String(value);
    else if (type === 'bytes') literal += `"\\\\x${Buffer.from(value, 'utf8').toString('hex')}"`;
    else literal += /["\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`;
  }
  return `${literal}}`;
}

/** The mapping of an object to its columns. */
export class Shape<T> {
  readonly members: readonly Member<T>[];
  readonly #columns: Columns<T>;
  readonly #switches: readonly Member<T>[];

  constructor(columns: Columns<T>) {
    this.#columns = columns;
    this.members = Object.keys(columns) as Member<T>[];
    this.#switches = this.members.filter((member) => columns[member].type === 'switch');
  }

  name(member: Member<T>): string {
    return this.#columns[member].name;
  }

  /** Comma-separated column names, for SELECT, INSERT and RETURNING. */
  list(table?: string, members: readonly Member<T>[] = this.members): string {
    return members.map((member) => (table ? `${table}.${this.name(member)}` : this.name(member))).join(', ');
  }

  /** `column = source.column`, for UPDATE. */
  assignments(source: string, members: readonly Member<T>[]): string {
    return members.map((member) => `${this.name(member)} = ${source}.${this.name(member)}`).join(', ');
  }

  /** Array parameters from number `first` on, one for each member, for `unnest`. */
  arrays(first: number, members: readonly Member<T>[] = this.members): string {
    return members.map((member, index) => `$${first + index}::${this.#sqlType(member)}[]`).join(', ');
  }

  /** The values for {@link arrays}. */
  bind(objects: readonly T[], members: readonly Member<T>[] = this.members): string[] {
    return members.map((member) => {
      const { type } = this.#columns[member];
      return arrayLiteral(type, objects, (object) => object[member]);
    });
  }

  /** Parameters from number `first` on, one for each member. */
  scalars(first: number): string {
    return this.members.map((member, index) => `$${first + index}::${this.#sqlType(member)}`).join(', ');
  }

  /** The values for {@link scalars}. */
  bindOne(object: T): unknown[] {
    return this.members.map((member) => {
      const value = object[member];
      const { type } = this.#columns[member];
      if (type === 'switch') return Number(value);
      return type === 'bytes' && typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
    });
  }

  /** Creates the object from the columns of {@link list}, starting at index `from` of a row. */
  read(row: Row, from = 0): T {
    const object: Record<string, unknown> = {};
    for (let index = 0; index < this.members.length; index++) {
      const value = row[from + index];
      object[this.members[index]!] = value instanceof Buffer ? value.toString('utf8') : value;
    }
    for (const member of this.#switches) object[member] = object[member] !== 0;
    return object as T;
  }

  #sqlType(member: Member<T>): string {
    const { type } = this.#columns[member];
    if (type === 'switch') return 'bigint';
    return type === 'bytes' ? 'bytea' : type;
  }
}

export const ALARM = new Shape(ALARM_COLUMNS);

/** Members that a settled attempt may change. */
export const PROGRESS = [
  'status',
  'failureCount',
  'lastError',
  'updatedAt',
  'lastFiredAt',
  'fireCount',
  'scheduledFires',
] as const satisfies Member<Alarm>[];

/** Members that an edit may change. */
export const CHANGEABLE: readonly Member<Alarm>[] = ALARM.members.filter(
  (member) => !(IDENTITY as readonly string[]).includes(member),
);

export const OCCURRENCE = new Shape(OCCURRENCE_COLUMNS);

export const ATTEMPT = new Shape(ATTEMPT_COLUMNS);

export const TURN_REPORT = new Shape(TURN_REPORT_COLUMNS);

export const AGENT_KEY = new Shape(AGENT_KEY_COLUMNS);

export const OWNER = new Shape(OWNER_COLUMNS);

/** An alarm's state with the revision that it was read at. */
export type Versioned = { revision: number; state: AlarmState };

/**
 * The columns of a {@link Versioned} of the table `alarms AS a`, in the bucket $1. One statement reads the alarm and
 * its pending occurrences, so both have the same snapshot.
 */
export const STATE_COLUMNS = `a.revision, ${ALARM.list('a')}, (
    SELECT json_agg(json_build_array(${OCCURRENCE.list('o')}) ORDER BY o.fire_id)
    FROM occurrences AS o WHERE o.bucket = $1 AND o.owner = a.owner AND o.alarm_id = a.id
  )`;

export function readState(row: Row): Versioned {
  const occurrences = (row[ALARM.members.length + 1] ?? []) as Row[];
  return {
    revision: row[0] as number,
    state: { alarm: ALARM.read(row, 1), occurrences: occurrences.map((columns) => OCCURRENCE.read(columns)) },
  };
}

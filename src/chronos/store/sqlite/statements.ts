/** Prepares statements. Rows are read as arrays: node:sqlite creates them in half the time that objects take. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { Columns, Member } from '../columns.ts';

/**
 * A bound limit. SQLite plans a statement again each time a bare `LIMIT ?` is bound, which takes longer than most
 * statements. An expression keeps the plan.
 */
export const LIMIT = 'LIMIT ? + 0';

/** The mapping of an object to its columns. */
export type RowShape<T> = {
  /** The columns in the order that {@link read} expects, for a SELECT or RETURNING. */
  readonly columns: string;
  /** Creates the object from a row selected with {@link columns}. */
  read(row: readonly SQLOutputValue[]): T;
};

export function shapeOf<T>(columns: Columns<T>): RowShape<T> {
  const members = Object.keys(columns) as Member<T>[];
  const switches = members.filter((member) => columns[member].type === 'switch');
  return {
    columns: members.map((member) => columns[member].name).join(', '),
    read(row) {
      const object: Partial<Record<Member<T>, SQLOutputValue | boolean>> = {};
      for (let index = 0; index < members.length; index++) object[members[index]!] = row[index]!;
      for (const member of switches) object[member] = object[member] !== 0;
      return object as T;
    },
  };
}

type Storable<T> = { [Member in keyof T]: SQLInputValue | boolean };

/** A prepared query. */
export type Query<T> = {
  get(...parameters: SQLInputValue[]): T | undefined;
  all(...parameters: SQLInputValue[]): T[];
};

/** Prepares a query; `read` converts its rows. */
export function prepareQuery<T>(db: DatabaseSync, sql: string, read: (row: readonly SQLOutputValue[]) => T): Query<T> {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return {
    get(...parameters) {
      const row = statement.get(...parameters) as SQLOutputValue[] | undefined;
      return row && read(row);
    },
    all(...parameters) {
      return (statement.all(...parameters) as unknown as SQLOutputValue[][]).map(read);
    },
  };
}

/** The values of some members, in order, to bind to a statement. */
export function valuesOf<T extends Storable<T>>(object: T, members: readonly Member<T>[]): SQLInputValue[] {
  return members.map((member) => {
    const value = object[member] as SQLInputValue | boolean;
    return typeof value === 'boolean' ? Number(value) : value;
  });
}

/** Prepares the INSERT of some members of an object; it returns the row number. */
export function prepareInsert<T extends Storable<T>>(
  db: DatabaseSync,
  table: string,
  columns: Columns<T>,
  members: readonly Member<T>[] = Object.keys(columns) as Member<T>[],
): (object: T) => number {
  const names = members.map((member) => columns[member].name);
  const statement = db.prepare(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
  );
  return (object) => Number(statement.run(...valuesOf(object, members)).lastInsertRowid);
}

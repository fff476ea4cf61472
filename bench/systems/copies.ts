/**
 * Bulk loading of Reveille's stores: SQL that copies one alarm, which was set through the HTTP API. Everything except
 * owner and due time stays as chronosd wrote it, so the loaded rows equal rows of chronosd. Pure.
 */
import { idPrefix, OWNERS, type Series } from '../series.ts';

/** A range of copies: numbers `from` to `until - 1`, each due at the result of an SQL expression over `i`. */
export type Copies = { series: number; from: number; until: number; owners: number; due: string };

export function copiesOf(series: Series): Copies {
  const due = `${series.firstDue} + (i * ${series.spanMs}) / ${series.count}`;
  return { series: series.number, from: 0, until: series.count, owners: series.owners ?? OWNERS, due };
}

/** Alarms that wait during a measurement: due in arbitrary order over a month, a thousand per owner. */
export const PENDING_SERIES = 0xfff;
const DAY_MS = 24 * 3600 * 1000;
const MULTIPLIER = 2_654_435_761;

export function pendingCopies(from: number, until: number, now: number): Copies {
  const due = `${now + DAY_MS} + (i * ${MULTIPLIER}) % ${30 * DAY_MS}`;
  return { series: PENDING_SERIES, from, until, owners: Math.max(1, Math.ceil(until / 1000)), due };
}

/** The same expressions in the dialects of both databases. */
export type Dialect = {
  /** A CTE named `numbers` with the column `i` over [from, until). */
  numbers(from: number, until: number): string;
  /** `i` as twelve hex digits. */
  hex: string;
  /** `i` modulo the number of owners, as five digits. */
  ownerDigits(owners: number): string;
};

export const SQLITE: Dialect = {
  numbers: (from, until) =>
    `WITH RECURSIVE numbers (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < ${until})`,
  hex: "printf('%012x', i)",
  ownerDigits: (owners) => `printf('%05d', i % ${owners})`,
};

export const POSTGRES: Dialect = {
  numbers: (from, until) =>
    `WITH numbers AS (SELECT i FROM generate_series(${from}::bigint, ${until - 1}::bigint) AS i)`,
  hex: "lpad(to_hex(i), 12, '0')",
  ownerDigits: (owners) => `lpad((i % ${owners})::text, 5, '0')`,
};

/**
 * The statement that copies the seed's row of one table.
 *
 * @param columns the table's columns, without columns that the database fills itself
 * @param own columns with another value than the seed's, as SQL over `i`
 * @param seed condition of the row to copy
 */
export function copyRows(
  dialect: Dialect,
  {
    table,
    columns,
    own,
    seed,
  }: { table: string; columns: readonly string[]; own: Record<string, string>; seed: string },
  copies: Copies,
): string {
  const values = columns.map((column) => own[column] ?? `seed.${column}`);
  return `${dialect.numbers(copies.from, copies.until)}
    INSERT INTO ${table} (${columns.join(', ')})
    SELECT ${values.join(', ')} FROM numbers CROSS JOIN (SELECT * FROM ${table} WHERE ${seed}) AS seed
    WHERE true ORDER BY i`;
}

/** Values that make a copy another alarm of another owner, for each of these columns that a table has. */
export function identityOf(dialect: Dialect, copies: Copies): Record<string, string> {
  const owner = `'user-' || ${dialect.ownerDigits(copies.owners)}`;
  const id = `'${idPrefix(copies.series)}' || ${dialect.hex}`;
  const due = `(${copies.due})`;
  return {
    owner,
    id,
    alarm_id: id,
    fire_id: `${id} || '@' || ${due}`,
    delay_seconds: 'NULL',
    fire_at: due,
    scheduled_for: due,
    nominal: due,
    due_at: due,
  };
}

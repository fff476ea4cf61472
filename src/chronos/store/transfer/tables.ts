/**
 * The tables that move, and how a row of each stands in SQLite and in PostgreSQL. What is derived from other rows moves
 * as well, so that it need not be worked out again; challenges that wait for their answer live two minutes and stay
 * behind.
 */
import { AGENT_KEY, ALARM, ATTEMPT, OCCURRENCE, OWNER, RECEIPT, type Shape } from '../postgres/rows.ts';

/** A row's values in the order of its table's columns; texts are strings whichever side they come from. */
export type Values = readonly unknown[];

/** A table that moves. */
export type MovingTable = {
  /** Its name on both sides. */
  name: 'alarms' | 'occurrences' | 'fire_attempts' | 'fire_receipts' | 'agent_keys' | 'owners';
  /** The names of its columns, with commas between them. */
  columns: string;
  /** SQLite: what to select, from where, and the table that has a row for each. */
  source: { columns: string; from: string; rows: string };
  /** PostgreSQL: columns that only it has, and what they begin with. */
  extra: { columns: string; values: string };
  /** The columns of the key, in its order, and where they stand in a row. */
  key: { columns: string; at: readonly number[] };
  /** Array parameters from number `first` on, and their values for some rows. */
  arrays(first: number): string;
  bind(rows: readonly Values[]): string[];
};

type Plan<T> = {
  name: MovingTable['name'];
  shape: Shape<T>;
  key: readonly (keyof T & string)[];
  from?: string;
  rows?: string;
  /** What SQLite calls a column. */
  renamed?: readonly [here: string, inSqlite: string];
  extra?: MovingTable['extra'];
};

const NOTHING = { columns: '', values: '' };

function table<T>({ name, shape, key, from = name, rows = name, renamed, extra = NOTHING }: Plan<T>): MovingTable {
  const columns = shape.list();
  return {
    name,
    columns,
    source: { columns: renamed ? columns.replace(...renamed) : columns, from, rows },
    extra,
    key: { columns: shape.list(undefined, key), at: key.map((member) => shape.members.indexOf(member)) },
    arrays: (first) => shape.arrays(first),
    bind: (rows) => shape.bind(rows.map((row) => shape.read(row))),
  };
}

/** In the order in which they move. */
export const MOVING_TABLES: readonly MovingTable[] = [
  table({
    name: 'alarms',
    shape: ALARM,
    key: ['owner', 'id'],
    from: 'alarms CROSS JOIN alarm_texts USING (seq)',
    extra: { columns: 'revision, ', values: '0, ' },
  }),
  table({
    name: 'occurrences',
    shape: OCCURRENCE,
    key: ['owner', 'alarmId', 'fireId'],
    rows: 'owed',
    extra: { columns: 'alarm_revision, ', values: '0, ' },
  }),
  table({
    name: 'fire_attempts',
    shape: ATTEMPT,
    key: ['owner', 'alarmId', 'startedAt', 'fireId', 'attempt'],
    rows: 'ledger',
  }),
  table({
    name: 'fire_receipts',
    shape: RECEIPT,
    key: ['owner', 'alarmId', 'fireId', 'stage'],
  }),
  table({
    name: 'agent_keys',
    shape: AGENT_KEY,
    key: ['owner', 'publicKey'],
    // What it decides, which of two first keys is let in, is decided for an owner who has one.
    extra: { columns: 'pinned, ', values: 'false, ' },
  }),
  // SQLite's count is exact, PostgreSQL's a bound: the one is a good beginning for the other.
  table({ name: 'owners', shape: OWNER, key: ['owner'], renamed: ['open_at_most', 'open_alarms'] }),
];

/** What a row hashes and compares as: the same text for the same values, whichever side they were read from. */
export function canonical(row: Values): string {
  return JSON.stringify(row);
}

/** The values of a row's key. */
export function keyOf({ key }: MovingTable, row: Values): unknown[] {
  return key.at.map((index) => row[index]);
}

/** Whose row it is: every key begins with that. */
export function ownerOf({ key }: MovingTable, row: Values): string {
  return row[key.at[0]!] as string;
}

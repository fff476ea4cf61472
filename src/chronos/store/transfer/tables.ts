/**
 * The tables that move, and the mapping of their rows between SQLite and PostgreSQL. Alarms, occurrences and attempts are
 * views on both sides, each over its own tables. Derived rows move as well, so that they need not be recomputed. Pending challenges live two minutes and are not moved.
 */
import { ATTEMPT_COLUMNS, OCCURRENCE_COLUMNS } from '../columns.ts';
import { AGENT_KEY, ALARM, CALENDAR_FEED, EVENT, OWNER, Shape, TURN_REPORT } from '../postgres/rows.ts';

/** A row's values in the order of its table's columns; texts are strings on both sides. */
export type Values = readonly unknown[];

/** A table that moves. */
export type MovingTable = {
  /** Its name on both sides. */
  name:
    | 'alarms'
    | 'occurrences'
    | 'fire_attempts'
    | 'fire_receipts'
    | 'events'
    | 'agent_keys'
    | 'calendar_feeds'
    | 'owners';
  /** Comma-separated names of its columns. */
  columns: string;
  /** Names of the columns that PostgreSQL stores as bytes. */
  bytes: ReadonlySet<string>;
  /** SQLite: what to select, from where, and what to count in the tables themselves. */
  source: { columns: string; from: string; rows: string };
  /** PostgreSQL: columns that only its table has, and their initial values. */
  extra: { columns: string; values: string };
  /** The key columns in order, and their indexes in a row. */
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
  /** A column with another name in SQLite. */
  renamed?: readonly [here: string, inSqlite: string];
  extra?: MovingTable['extra'];
};

const NOTHING = { columns: '', values: '' };

function table<T>({
  name,
  shape,
  key,
  from = name,
  rows = `${name} NOT INDEXED`,
  renamed,
  extra = NOTHING,
}: Plan<T>): MovingTable {
  const columns = shape.list();
  return {
    name,
    columns,
    bytes: new Set(shape.byteColumns()),
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
    rows: 'definitions NOT INDEXED',
  }),
  table({
    name: 'occurrences',
    shape: new Shape(OCCURRENCE_COLUMNS),
    key: ['owner', 'alarmId', 'fireId'],
    rows: `(SELECT alarm FROM progress NOT INDEXED WHERE scheduled_for IS NOT NULL
      UNION ALL SELECT alarm FROM triggers NOT INDEXED)`,
  }),
  table({
    name: 'fire_attempts',
    shape: new Shape(ATTEMPT_COLUMNS),
    key: ['owner', 'alarmId', 'startedAt', 'fireId', 'attempt'],
    rows: `(SELECT alarm FROM ledger NOT INDEXED
      UNION ALL SELECT alarm FROM progress NOT INDEXED WHERE last_attempt IS NOT NULL)`,
  }),
  table({
    name: 'fire_receipts',
    shape: TURN_REPORT,
    key: ['owner', 'alarmId', 'fireId', 'stage'],
  }),
  table({
    name: 'events',
    shape: EVENT,
    key: ['owner', 'alarmId', 'id'],
    from: 'alarm_events',
  }),
  table({
    name: 'agent_keys',
    shape: AGENT_KEY,
    key: ['owner', 'publicKey'],
    // The column decides between two first keys, and these owners already have one.
    extra: { columns: 'pinned, ', values: 'false, ' },
  }),
  table({ name: 'calendar_feeds', shape: CALENDAR_FEED, key: ['owner', 'id'] }),
  // SQLite's count is exact, PostgreSQL's is an upper bound: the exact count is a valid initial value.
  table({ name: 'owners', shape: OWNER, key: ['owner'], renamed: ['open_at_most', 'open_alarms'] }),
];

/** The form of a row for hashing and comparing: equal values give equal text, from either side. */
export function canonical(row: Values): string {
  return JSON.stringify(row);
}

/** The values of a row's key. */
export function keyOf({ key }: MovingTable, row: Values): unknown[] {
  return key.at.map((index) => row[index]);
}

/** The values of a row's key as parameters for PostgreSQL. */
export function keyParameters(table: MovingTable, row: Values): unknown[] {
  const names = table.key.columns.split(', ');
  return keyOf(table, row).map((value, index) =>
    table.bytes.has(names[index]!) ? Buffer.from(value as string, 'utf8') : value,
  );
}

/** The owner of a row: every key begins with it. */
export function ownerOf({ key }: MovingTable, row: Values): string {
  return row[key.at[0]!] as string;
}

/** The statements for the database that alarms move into. */
import { NO_PROCESS } from '../postgres/replicas.ts';
import { DEFINITION, LAST, OWED, PROGRESS, RECORD } from '../postgres/rows.ts';
import { type Statement, statement } from '../postgres/statement.ts';
import { MOVING_TABLES, type MovingTable } from './tables.ts';

/** Rows per page when the copy is read. An alarm has up to 128 KiB of text. */
export const PAGE = 500;

/** Closes a database that nothing was ever moved into. */
export const BEGIN = statement(
  'transfer_begin',
  `
  INSERT INTO arrivals (only_one, source, transfer, state, holder, step, progress, since)
  VALUES (1, $1, $2, 'arriving', $3, 0, '{}', $4)
  ON CONFLICT DO NOTHING`,
);

/** Replaces an abandoned move with a new one. */
export const RESTART = statement(
  'transfer_restart',
  `
  UPDATE arrivals SET transfer = $1, state = 'arriving', holder = $2, step = 0, progress = '{}', since = $3
  WHERE transfer = $4 AND state = $5 AND step = $6`,
);

/** Makes another process the holder of the move. */
export const TAKE = statement(
  'transfer_take',
  `UPDATE arrivals SET holder = $1 WHERE transfer = $2 AND state = 'arriving'`,
);

/** Opens the database: the copy is complete. */
export const OPEN = statement(
  'transfer_open',
  `UPDATE arrivals SET state = 'arrived', since = $1 WHERE transfer = $2 AND state = 'arriving' AND holder = $3`,
);

/** Closes a database that is in use, or opens it again. */
export const TURN = statement(
  'transfer_turn',
  'UPDATE arrivals SET state = $1, since = $2 WHERE transfer = $3 AND state = $4',
);

/** Deletes a move that has copied nothing yet. */
export const WITHDRAW = statement(
  'transfer_withdraw',
  `DELETE FROM arrivals WHERE transfer = $1 AND state = 'arriving' AND step = 0 AND holder = $2`,
);

/** If the address gives connections their own application name, chronosd's connections have it as well. */
export const REPLICAS = statement(
  'transfer_replicas',
  `
  SELECT count(*) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name IN ($1, NULLIF(current_setting('application_name'), $2))`,
);

/**
 * Whether a database with the tables contains data. Tables of an earlier Reveille have no turn reports, no events and no
 * calendar feeds, but these exist only with alarms or keys.
 */
export const ANYTHING = statement(
  'transfer_anything',
  `SELECT ${MOVING_TABLES.filter(({ name }) => !['fire_receipts', 'events', 'calendar_feeds'].includes(name))
    .map(({ name }) => `EXISTS (SELECT 1 FROM ${name})`)
    .join(' OR ')}`,
);

/** No process of the database has made a claim of the file: it is ended there. */
const HOLDER = `CASE WHEN moved.claimed_at IS NOT NULL THEN ${NO_PROCESS} END`;

/** Stores the rows of `moved` in the tables that a view shows; it follows their definition in a WITH clause. */
const PUT_INTO_TABLES: Partial<Record<MovingTable['name'], string>> = {
  alarms: `defined AS (
      INSERT INTO definitions (bucket, edition, held_key, ${DEFINITION.list()})
      SELECT bucket, 0, CASE WHEN status <> 'cancelled' THEN idempotency_key END, ${DEFINITION.list()} FROM moved
    ), stored AS (
      INSERT INTO progress (bucket, owner, alarm_id, trigger_at, triggers, edition, revision, ${PROGRESS.list()})
      SELECT bucket, owner, id, 0, 0, 0, 0, ${PROGRESS.list()} FROM moved
    )`,
  occurrences: `triggered AS (
      INSERT INTO progress (bucket, owner, alarm_id, trigger_at, triggers, edition, revision, holder, ${OWED.list()})
      SELECT bucket, owner, alarm_id, scheduled_for, 0, 0, 0, ${HOLDER}, ${OWED.list()} FROM moved WHERE source = 'trigger'
    ), counts AS (
      SELECT bucket, owner, alarm_id, count(*) FILTER (WHERE source = 'trigger') AS triggers
      FROM moved GROUP BY bucket, owner, alarm_id
    ), stored AS (
      UPDATE progress AS p SET triggers = p.triggers + c.triggers,
        holder = CASE WHEN moved.source IS NULL THEN p.holder ELSE ${HOLDER} END,
        ${OWED.members
          .map((member) => OWED.name(member))
          .map((name) => `${name} = CASE WHEN moved.source IS NULL THEN p.${name} ELSE moved.${name} END`)
          .join(', ')}
      FROM counts AS c LEFT JOIN moved
        ON moved.bucket = c.bucket AND moved.owner = c.owner AND moved.alarm_id = c.alarm_id AND moved.source = 'schedule'
      WHERE p.bucket = c.bucket AND p.owner = c.owner AND p.alarm_id = c.alarm_id AND p.trigger_at = 0
    )`,
  // They arrive in the order in which they began: the last one of an alarm takes the place of those before.
  fire_attempts: `ranked AS (
      SELECT *, row_number() OVER (
        PARTITION BY bucket, owner, alarm_id ORDER BY started_at DESC, scheduled_for DESC, attempt DESC) AS place FROM moved
    ), replaced AS (
      INSERT INTO ledger (bucket, owner, alarm_id, ${RECORD.list()})
      SELECT bucket, owner, alarm_id, ${RECORD.list()} FROM ranked WHERE place > 1
      UNION ALL
      SELECT p.bucket, p.owner, p.alarm_id, ${LAST.list('p')} FROM ranked AS r JOIN progress AS p
        ON p.bucket = r.bucket AND p.owner = r.owner AND p.alarm_id = r.alarm_id AND p.trigger_at = 0
      WHERE r.place = 1 AND p.last_attempt IS NOT NULL
    ), stored AS (
      UPDATE progress AS p SET ${LAST.members.map((member) => `${LAST.name(member)} = r.${RECORD.name(member)}`).join(', ')}
      FROM ranked AS r
      WHERE r.place = 1 AND p.bucket = r.bucket AND p.owner = r.owner AND p.alarm_id = r.alarm_id AND p.trigger_at = 0
    )`,
};

/**
 * Stores a batch together with its progress and returns a row for each of its rows. Nothing is written when another
 * process has taken the move over.
 */
export function put({ name, extra, columns, arrays }: MovingTable): Statement {
  const store =
    PUT_INTO_TABLES[name] ??
    `stored AS (
      INSERT INTO ${name} (bucket, ${extra.columns}${columns}) SELECT bucket, ${extra.values}${columns} FROM moved
    )`;
  return statement(
    `transfer_put_${name}`,
    `
    WITH taken AS (
      UPDATE arrivals SET step = step + 1, progress = $1
      WHERE transfer = $2 AND state = 'arriving' AND holder = $3 AND step = $4
      RETURNING 1
    ), moved AS (
      SELECT moved.* FROM taken CROSS JOIN unnest($5::bigint[], ${arrays(6)}) AS moved (bucket, ${columns})
    ), ${store}
    SELECT 1 FROM moved`,
  );
}

/** The two parts of the view of attempts: each has an index for the order of the key. */
const LEDGER_PARTS = [
  "(SELECT *, alarm_id || '@' || scheduled_for AS fire_id FROM ledger) AS replaced",
  `(SELECT bucket, owner, alarm_id, alarm_id || '@' || last_scheduled_for AS fire_id,
      ${LAST.members.map((member) => `${LAST.name(member)} AS ${RECORD.name(member)}`).join(', ')}
    FROM progress WHERE last_attempt IS NOT NULL) AS last`,
];

/**
 * The first rows of a table, or the rows after a key. The order is that of the key without the bucket: with one bucket
 * an index has it; with several, each page is sorted.
 */
export function page({ name, columns, key }: MovingTable, behind: boolean, buckets: number): Statement {
  const parameters = key.at.map((_, index) => `$${index + 1}`).join(', ');
  const conditions = [
    ...(buckets === 1 ? ['bucket = 0'] : []),
    ...(behind ? [`(${key.columns}) > (${parameters})`] : []),
  ];
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
  const part = (from: string) => `SELECT ${columns} FROM ${from} ${where} ORDER BY ${key.columns} LIMIT ${PAGE}`;
  return statement(
    `transfer_page_${name}_${behind ? 'on' : 'first'}`,
    name === 'fire_attempts'
      ? `SELECT ${columns} FROM ((${LEDGER_PARTS.map(part).join(') UNION ALL (')})) AS page ORDER BY ${key.columns} LIMIT ${PAGE}`
      : part(name),
  );
}

/** Statistics of the tables that the views join: without them a page could read all rows for each of its rows. */
export const ANALYZE = ['definitions', 'progress', 'ledger'].map((name) =>
  statement(`transfer_analyze_${name}`, `ANALYZE ${name}`),
);

export function count(name: MovingTable['name']): Statement {
  return statement(`transfer_count_${name}`, `SELECT count(*) FROM ${name}`);
}

export function clear(name: MovingTable['name']): Statement {
  const stored = { alarms: 'definitions', occurrences: 'progress', fire_attempts: 'ledger' }[name as string] ?? name;
  return statement(`transfer_clear_${name}`, `DELETE FROM ${stored}`);
}

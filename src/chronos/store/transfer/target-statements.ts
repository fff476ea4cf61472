/** The statements for the database that alarms move into. */
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
 * Whether a database with the tables contains data. Tables of an earlier Reveille have no turn reports, but turn
 * reports exist only with alarms.
 */
export const ANYTHING = statement(
  'transfer_anything',
  `SELECT ${MOVING_TABLES.filter(({ name }) => name !== 'fire_receipts')
    .map(({ name }) => `EXISTS (SELECT 1 FROM ${name})`)
    .join(' OR ')}`,
);

/** A batch together with its progress. Nothing is written when another process has taken the move over. */
export function put({ name, extra, columns, arrays }: MovingTable): Statement {
  return statement(
    `transfer_put_${name}`,
    `
    WITH taken AS (
      UPDATE arrivals SET step = step + 1, progress = $1
      WHERE transfer = $2 AND state = 'arriving' AND holder = $3 AND step = $4
      RETURNING 1
    )
    INSERT INTO ${name} (bucket, ${extra.columns}${columns})
    SELECT bucket, ${extra.values}${columns}
    FROM taken CROSS JOIN unnest($5::bigint[], ${arrays(6)}) AS moved (bucket, ${columns})`,
  );
}

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
  return statement(
    `transfer_page_${name}_${behind ? 'on' : 'first'}`,
    `SELECT ${columns} FROM ${name} ${where} ORDER BY ${key.columns} LIMIT ${PAGE}`,
  );
}

export function count(name: MovingTable['name']): Statement {
  return statement(`transfer_count_${name}`, `SELECT count(*) FROM ${name}`);
}

export function clear(name: MovingTable['name']): Statement {
  return statement(`transfer_clear_${name}`, `DELETE FROM ${name}`);
}

/** What the database that alarms move into is told and asked. */
import { type Statement, statement } from '../postgres/statement.ts';
import { MOVING_TABLES, type MovingTable } from './tables.ts';

/** Rows of one page when the copy is read back. An alarm has up to 128 KiB of text. */
export const PAGE = 500;

/** Closes a database that nothing was ever moved into. */
export const BEGIN = statement(
  'transfer_begin',
  `
  INSERT INTO arrivals (only_one, source, transfer, state, holder, step, progress, since)
  VALUES (1, $1, $2, 'arriving', $3, 0, '{}', $4)
  ON CONFLICT DO NOTHING`,
);

/** Puts a new move in the place of one that was given up. */
export const RESTART = statement(
  'transfer_restart',
  `
  UPDATE arrivals SET transfer = $1, state = 'arriving', holder = $2, step = 0, progress = '{}', since = $3
  WHERE transfer = $4 AND state = $5 AND step = $6`,
);

/** Puts another process in charge. */
export const TAKE = statement(
  'transfer_take',
  `UPDATE arrivals SET holder = $1 WHERE transfer = $2 AND state = 'arriving'`,
);

/** Opens the database: the copy is whole. */
export const OPEN = statement(
  'transfer_open',
  `UPDATE arrivals SET state = 'arrived', since = $1 WHERE transfer = $2 AND state = 'arriving' AND holder = $3`,
);

/** Closes a database that is in use, or opens it again. */
export const TURN = statement(
  'transfer_turn',
  'UPDATE arrivals SET state = $1, since = $2 WHERE transfer = $3 AND state = $4',
);

/** Forgets a move that has brought nothing yet. */
export const WITHDRAW = statement(
  'transfer_withdraw',
  `DELETE FROM arrivals WHERE transfer = $1 AND state = 'arriving' AND step = 0 AND holder = $2`,
);

/** Where the address gives connections a name of its own, chronosd's have that as well. */
export const REPLICAS = statement(
  'transfer_replicas',
  `
  SELECT count(*) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name IN ($1, NULLIF(current_setting('application_name'), $2))`,
);

/**
 * Whether anything is kept in a database that has the tables, those of an earlier Reveille perhaps: it has none for
 * receipts, of which there are none without alarms.
 */
export const ANYTHING = statement(
  'transfer_anything',
  `SELECT ${MOVING_TABLES.filter(({ name }) => name !== 'fire_receipts')
    .map(({ name }) => `EXISTS (SELECT 1 FROM ${name})`)
    .join(' OR ')}`,
);

/** A batch and the progress that it makes, or neither: neither when another process has come in between. */
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
 * The first rows of a table, or those behind a key. The order is that of the key without the bucket: with one bucket an
 * index has it; with several, each page is sorted anew.
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

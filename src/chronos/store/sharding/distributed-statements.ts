/**
 * Statements for tables that Citus distributes over servers. Citus runs a statement on one server only when it names
 * the bucket, has no INSERT in its WITH, and inserts by VALUES.
 */
import type { DistributedStatements } from '../postgres/buckets.ts';
import { ATTEMPT, TURN_REPORT } from '../postgres/rows.ts';
import { statement } from '../postgres/statement.ts';
import { NEW_STAGES } from '../postgres/turn-reports.ts';
import { writersOf } from '../postgres/write.ts';

export const DISTRIBUTED: DistributedStatements = {
  writers: {
    ...writersOf('_apart', false),
    ledger: {
      statement: statement(
        'insert_attempts',
        `INSERT INTO fire_attempts (bucket, ${ATTEMPT.list()}) SELECT $1, * FROM unnest(${ATTEMPT.arrays(2)})`,
      ),
      values: ({ ledger }) => ATTEMPT.bind(ledger),
    },
  },
  recordTurnReport: statement(
    'record_receipt',
    `INSERT INTO fire_receipts (bucket, ${TURN_REPORT.list()}) VALUES ($1, ${TURN_REPORT.scalars(2)}) ${NEW_STAGES} RETURNING stage`,
  ),
};

/**
 * The table `receipts` of a SQLite file: an outbox of turn reports, written in the transaction that updates a turn. Its
 * owner's migration creates it.
 *
 * ```sql
 * CREATE TABLE receipts (
 *   id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT NOT NULL, fire_id TEXT NOT NULL, stage TEXT NOT NULL,
 *   at INTEGER NOT NULL, outcome TEXT, error TEXT, turn_id TEXT, conversation_id TEXT, retry_at INTEGER, reply TEXT,
 *   UNIQUE (user_id, fire_id, stage)
 * ) STRICT;
 * ```
 */
import type { DatabaseSync } from 'node:sqlite';
import { TURN_REPLY_MAX_CHARACTERS, type TurnReport } from '../wire/turn-report.ts';
import type { WaitingTurnReport } from './turn-report-sender.ts';

const COLUMNS = 'user_id, fire_id, stage, at, outcome, error, turn_id, conversation_id, retry_at, reply';

type Row = {
  id: number;
  user_id: string;
  fire_id: string;
  stage: TurnReport['stage'];
  at: number;
  outcome: TurnReport['outcome'];
  error: string | null;
  turn_id: string | null;
  conversation_id: string | null;
  retry_at: number | null;
  reply: string | null;
};

function waitingOf(row: Row): WaitingTurnReport {
  const { stage, at, outcome, error, reply } = row;
  const about = { turnId: row.turn_id, conversationId: row.conversation_id };
  const report = { ...about, stage, at, outcome, error, retryAt: row.retry_at, reply };
  return { id: row.id, userId: row.user_id, fireId: row.fire_id, report };
}

/**
 * Creates the table's operations on an open connection. Write operations must run inside a transaction of its owner.
 */
export function turnReportTable(db: DatabaseSync) {
  const put = db.prepare(`
    INSERT INTO receipts (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (user_id, fire_id, stage) DO NOTHING`);
  // The newer report gets a new row: the one being posted is removed by its id, and the removal must not affect the
  // newer one.
  const outdated = db.prepare(`DELETE FROM receipts WHERE user_id = ? AND fire_id = ? AND stage = 'turn_waits'`);
  const waiting = db.prepare(`SELECT id, ${COLUMNS} FROM receipts WHERE id > ? ORDER BY id LIMIT ?`);
  const remove = db.prepare('DELETE FROM receipts WHERE id = ?');

  return {
    /**
     * Adds a report, unless the same stage of the same fire is already waiting. For a turn that waits again, the latest
     * report replaces the previous one; the end of the turn removes it.
     */
    put(userId: string, fireId: string, report: TurnReport): void {
      const { stage, at, outcome, error, turnId, conversationId, retryAt, reply } = report;
      if (stage !== 'turn_started') outdated.run(userId, fireId);
      const kept = reply?.slice(0, TURN_REPLY_MAX_CHARACTERS).toWellFormed() ?? null;
      put.run(userId, fireId, stage, at, outcome, error, turnId, conversationId, retryAt, kept);
    },

    waiting: ({ after, limit }: { after: number; limit: number }): WaitingTurnReport[] =>
      (waiting.all(after, limit) as Row[]).map(waitingOf),

    remove(ids: readonly number[]): void {
      for (const id of ids) remove.run(id);
    },
  };
}

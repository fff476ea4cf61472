/** The `spends` table: amounts that calls have moved or may have moved. Every method is synchronous. */
import type { DatabaseSync } from 'node:sqlite';
import type { Spend } from '../policy/policy.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, recordOf } from '../receipt/chain-state.ts';

/** Policies count calendar days; two days of history cover a day in any time zone. */
const COUNTED_MS = 48 * 60 * 60 * 1000;
/** Rows are kept much longer: a clock that was ahead for a while must not delete amounts of today. */
const KEPT_MS = 400 * 24 * 60 * 60 * 1000;

export function spendTable(db: DatabaseSync) {
  const insert = db.prepare(`
    INSERT INTO spends (intent_id, node_id, user_id, tool, value, currency, at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (intent_id, node_id) DO UPDATE SET at = excluded.at`);
  const remove = db.prepare('DELETE FROM spends WHERE intent_id = ? AND node_id = ?');
  const deleteOld = db.prepare('DELETE FROM spends WHERE user_id = ? AND at < ?');
  const of = db.prepare('SELECT tool, value, currency, at FROM spends WHERE user_id = ? AND at >= ? ORDER BY at');

  return {
    /** Amounts that this user's calls have moved in the last 48 hours. */
    of: (user: string, now: number): Spend[] => of.all(user, now - COUNTED_MS) as Spend[],

    /**
     * Records one envelope; `state` is the intent before it. A call counts from its start, unless it certainly failed.
     */
    record(state: ChainState, { kind, body }: ReceiptEntry, now: number): void {
      const { intent_id: intentId, principal } = state.accepted;
      if (kind === 'call.started') {
        const amount = recordOf(state, body.node_id).decided?.amount;
        if (amount === undefined) return;
        deleteOld.run(principal.user, now - KEPT_MS);
        insert.run(intentId, body.node_id, principal.user, body.call.tool, amount.value, amount.currency, now);
      } else if (kind === 'call.finished' || kind === 'call.reconciled') {
        if (body.status === 'failed' || body.status === 'not_run') remove.run(intentId, body.node_id);
      }
    },
  };
}

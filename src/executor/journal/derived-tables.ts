/**
 * Tables that derive from the chains and are written in the transactions of their envelopes: `errands`, the executor's
 * outbox, and `spends`.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import type { OutboxStore } from '../../kit/outbox/outbox.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { OutboxMessage } from '../outbox/outbox.ts';
import type { Spend } from '../policy/policy.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, isEnd, openGates, recordOf } from '../receipt/chain-state.ts';

function messageOf(row: Record<string, SQLOutputValue>): OutboxMessage {
  return {
    id: row.id as string,
    kind: row.kind as OutboxMessage['kind'],
    user: row.user_id as string,
    intentId: row.intent_id as string,
    nodeId: (row.node_id as string | null) ?? undefined,
    conversationId: (row.conversation_id as string | null) ?? undefined,
    attempts: row.attempts as number,
  };
}

/** The `errands` table: a message is inserted in the transaction that causes it. */
export function outboxTable(db: DatabaseSync, writes: GroupCommit, clock: Clock) {
  const insert = db.prepare(`
    INSERT INTO errands (id, kind, user_id, intent_id, node_id, conversation_id, due_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING`);
  const due = db.prepare(`SELECT * FROM errands WHERE state = 'waiting' AND due_at <= ? ORDER BY due_at LIMIT ?`);
  const next = db.prepare(`SELECT min(due_at) AS at FROM errands WHERE state = 'waiting'`);
  const end = db.prepare(
    `UPDATE errands SET state = ?, error = ?, attempts = attempts + 1 WHERE id = ? AND state = 'waiting'`,
  );
  const postpone = db.prepare(`
    UPDATE errands SET due_at = ?, error = ?, attempts = attempts + 1 WHERE id = ? AND state = 'waiting'`);
  const dropPending = db.prepare(`
    UPDATE errands SET state = 'dropped', error = 'the question does not wait any more'
    WHERE intent_id = ? AND node_id = ? AND kind = 'notify' AND state = 'waiting'`);
  const listeners = new Set<() => void>();

  function notify(state: ChainState, nodeId: string, times: number): boolean {
    const { intent_id: intentId, principal } = state.accepted;
    const id = `notify-${intentId}-${nodeId}-${times}`;
    return insert.run(id, 'notify', principal.user, intentId, nodeId, null, clock.now()).changes > 0;
  }

  function wake(state: ChainState): boolean {
    const { intent_id: intentId, principal } = state.accepted;
    if (state.parkedIn === undefined) return false;
    const id = `wake-${intentId}`;
    return insert.run(id, 'wake', principal.user, intentId, null, state.parkedIn, clock.now()).changes > 0;
  }

  const messages: Required<OutboxStore<OutboxMessage>> = {
    due: (now, limit) => due.all(now, limit).map(messageOf),
    nextDue: () => (next.get()?.at as number | null) ?? undefined,
    done: (id) => writes.runNow(() => void end.run('done', null, id)),
    later: (id, at, error) => writes.runNow(() => void postpone.run(at, error, id)),
    drop: (id, reason) => writes.runNow(() => void end.run('dropped', reason, id)),
    onNew(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };

  return {
    messages,

    /** Notifies the listeners of a new message, once it is on disk. */
    notifyListeners(): void {
      for (const listener of [...listeners]) listener();
    },

    /**
     * Inserts the messages that an envelope causes.
     *
     * @param state the intent including the envelope
     * @returns whether there is a new message
     */
    record(state: ChainState, { kind, body }: ReceiptEntry): boolean {
      const { intent_id: intentId, principal } = state.accepted;
      const isUnattended = principal.origin === 'chronos' || state.parkedIn !== undefined;
      if (kind === 'gate.asked')
        return isUnattended && notify(state, body.node_id, recordOf(state, body.node_id).gate!.times);
      if (kind === 'gate.answered' || kind === 'gate.expired') {
        dropPending.run(intentId, body.node_id);
        return false;
      }
      if (kind === 'intent.parked') {
        const waiting = openGates(state).map(({ nodeId, gate }) => notify(state, nodeId, gate.times));
        return waiting.includes(true);
      }
      return (isEnd(kind) || kind === 'intent.clarify') && wake(state);
    },
  };
}

/** Policies count calendar days; two days of history cover a day in any time zone. */
const COUNTED_MS = 48 * 60 * 60 * 1000;
/** Rows are kept much longer: a clock that was ahead for a while must not delete amounts of today. */
const KEPT_MS = 400 * 24 * 60 * 60 * 1000;

/** The `spends` table: amounts that calls have moved or may have moved. Every method is synchronous. */
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

/** The `intents` table: one row for each intent. Every method is one statement and synchronous. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { ContextPiece, IntentStatus } from '../../wire/executor.ts';
import type { ChainHead } from '../receipt/chain.ts';

export type IntentRow = {
  readonly seq: number;
  readonly id: string;
  readonly user: string;
  /** Until it is compiled. */
  readonly context: readonly ContextPiece[] | undefined;
  readonly head: ChainHead;
  readonly escalateStarted: boolean;
  readonly createdAt: number;
};

export type Standing = {
  readonly status: IntentStatus;
  readonly isOver: boolean;
  readonly head: ChainHead;
  readonly escalateStarted: boolean;
  readonly keepsContext: boolean;
};

type Row = Record<string, SQLOutputValue>;

function contextOf(text: string | null): readonly ContextPiece[] | undefined {
  if (text === null) return undefined;
  try {
    return JSON.parse(text) as ContextPiece[];
  } catch {
    // Somebody changed it: it will not have the hash that the first envelope says.
    return undefined;
  }
}

function rowOf(row: Row): IntentRow {
  return {
    seq: row.seq as number,
    id: row.id as string,
    user: row.user_id as string,
    context: contextOf(row.context as string | null),
    head: { seq: row.head_seq as number, hash: row.head_hash as string },
    escalateStarted: row.escalate_started === 1,
    createdAt: row.created_at as number,
  };
}

export function intentTable(db: DatabaseSync) {
  const insert = db.prepare(`
    INSERT INTO intents (id, user_id, idempotency_key, context, status, is_over, head_seq, head_hash, escalate_started, created_at)
    VALUES (?, ?, ?, ?, 'drafting', 0, ?, ?, 0, ?)`);
  const byId = db.prepare('SELECT * FROM intents WHERE id = ?');
  const byKey = db.prepare('SELECT id FROM intents WHERE user_id = ? AND idempotency_key = ?');
  const stand = db.prepare(`
    UPDATE intents SET status = ?, is_over = ?, head_seq = ?, head_hash = ?, escalate_started = max(escalate_started, ?),
                       context = CASE WHEN ? THEN context END
    WHERE id = ?`);
  const open = db.prepare('SELECT id, user_id FROM intents WHERE is_over = 0 ORDER BY seq');
  const openOf = db.prepare(`
    SELECT count(*) AS intents, coalesce(sum(octet_length(context)), 0) AS context_bytes
    FROM intents WHERE user_id = ? AND is_over = 0`);
  const newest = db.prepare('SELECT id FROM intents WHERE user_id = ? ORDER BY seq DESC LIMIT ?');
  const newestWith = db.prepare('SELECT id FROM intents WHERE user_id = ? AND status = ? ORDER BY seq DESC LIMIT ?');

  return {
    insert(intent: {
      readonly id: string;
      readonly user: string;
      readonly idempotencyKey: string | undefined;
      readonly context: readonly ContextPiece[] | undefined;
      readonly head: ChainHead;
      readonly createdAt: number;
    }): void {
      const { id, user, idempotencyKey, context, head, createdAt } = intent;
      const pieces = context === undefined ? null : JSON.stringify(context);
      insert.run(id, user, idempotencyKey ?? null, pieces, head.seq, head.hash, createdAt);
    },

    get(id: string): IntentRow | undefined {
      const row = byId.get(id);
      return row && rowOf(row);
    },

    idOf: (user: string, key: string) => byKey.get(user, key)?.id as string | undefined,

    stand(id: string, { status, isOver, head, escalateStarted, keepsContext }: Standing): void {
      stand.run(status, Number(isOver), head.seq, head.hash, Number(escalateStarted), Number(keepsContext), id);
    },

    /** Those that are not over, in order of acceptance. */
    open: () => open.all().map((row) => ({ id: row.id as string, user: row.user_id as string })),

    /** How many of the user's are not over, and how much conversation is kept for them. */
    openOf(user: string): { intents: number; contextBytes: number } {
      const row = openOf.get(user)!;
      return { intents: row.intents as number, contextBytes: row.context_bytes as number };
    },

    newest(user: string, limit: number, status: IntentStatus | undefined): string[] {
      const rows = status === undefined ? newest.all(user, limit) : newestWith.all(user, status, limit);
      return rows.map(({ id }) => id as string);
    },
  };
}

/**
 * The `turns` table. Every method is one synchronous statement; writes must run inside a transaction of the
 * connection's group commit.
 */
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { NewTurn, Outcome, Turn } from '../turn.ts';

type Row = Record<string, SQLOutputValue>;

/** SQLite's NULL is an absent member. */
function member<Name extends string, Value>(name: Name, value: Value | null): { [N in Name]?: Value } {
  return (value === null ? {} : { [name]: value }) as { [N in Name]?: Value };
}

/** The columns are typed by the schema (STRICT tables); the casts below rely on this. */
function turnOf(row: Row): Turn {
  return {
    seq: row.seq as number,
    id: row.id as string,
    conversationId: row.conversation_id as string,
    origin: row.origin as Turn['origin'],
    ...member('alarmId', row.alarm_id as string | null),
    ...member('fireId', row.fire_id as string | null),
    ...member('scheduledFor', row.scheduled_for as number | null),
    ...member('missedCount', row.missed_count as number | null),
    ...member('lateBecause', row.late_because as NonNullable<Turn['lateBecause']> | null),
    ...member('label', row.label as string | null),
    ...member('setAt', row.set_at as number | null),
    ...member('setBy', row.set_by as string | null),
    message: row.message as string,
    ...member('payload', row.payload as string | null),
    ...member('userId', row.user_id as string | null),
    status: row.status as Turn['status'],
    attempts: row.attempts as number,
    ...member('reply', row.reply as string | null),
    ...member('error', row.error as string | null),
    ...member('model', row.model as string | null),
    createdAt: row.created_at as number,
    ...member('startedAt', row.started_at as number | null),
    ...member('finishedAt', row.finished_at as number | null),
    ...member('retryAt', row.retry_at as number | null),
    retries: row.retries as number,
  };
}

function one(statement: StatementSync, ...values: (string | number | null)[]): Turn | undefined {
  const row = statement.get(...values);
  return row === undefined ? undefined : turnOf(row);
}

/** Makes the table's operations over an open connection. */
export function turnTable(db: DatabaseSync) {
  const insert = db.prepare(`
    INSERT INTO turns (id, conversation_id, origin, alarm_id, fire_id, scheduled_for, missed_count, label, set_at,
                       set_by, late_because, message, payload, user_id, status, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?)
    RETURNING *`);
  const byFire = db.prepare('SELECT * FROM turns WHERE fire_id = ?');
  // '@' precedes the time in a derived fire id, and 'A' comes right after it.
  const byName = db.prepare(`
    SELECT * FROM turns WHERE fire_id > :name || '@' AND fire_id < :name || 'A' AND created_at > :since
    ORDER BY created_at DESC LIMIT 1`);
  const byId = db.prepare('SELECT * FROM turns WHERE id = ? AND conversation_id = ?');
  const begin = db.prepare(`
    UPDATE turns SET status = 'running', attempts = attempts + 1, started_at = ?, error = NULL
    WHERE seq = (
      SELECT seq FROM turns WHERE status = 'queued' AND retry_at IS NULL AND conversation_id = ? ORDER BY seq LIMIT 1)
    RETURNING *`);
  // The attempt guards against a late end of a turn that has been begun again since.
  const finish = db.prepare(`
    UPDATE turns SET status = ?, reply = ?, error = ?, model = ?, finished_at = ?
    WHERE id = ? AND status = 'running' AND attempts = ?
    RETURNING *`);
  const park = db.prepare(`
    UPDATE turns SET status = 'queued', retry_at = ?, retries = retries + 1, error = ?, model = ?
    WHERE id = ? AND status = 'running' AND attempts = ?
    RETURNING *`);
  const release = db.prepare(`
    UPDATE turns SET retry_at = NULL WHERE status = 'queued' AND retry_at IS NOT NULL AND retry_at <= ?
    RETURNING conversation_id AS id`);
  const nextRetry = db.prepare(`
    SELECT retry_at AS at FROM turns WHERE status = 'queued' AND retry_at IS NOT NULL ORDER BY retry_at LIMIT 1`);
  const endQueued = db.prepare(`
    UPDATE turns SET status = 'failed', error = ?, finished_at = ?
    WHERE id = ? AND status = 'queued'
    RETURNING *`);
  const byOwnId = db.prepare('SELECT * FROM turns WHERE id = ?');
  const queued = db.prepare(`
    SELECT * FROM turns WHERE status = 'queued' AND retry_at IS NULL AND conversation_id = ? AND seq > ?
    ORDER BY seq LIMIT ?`);
  const putBack = db.prepare(`UPDATE turns SET status = 'queued' WHERE id = ? AND status = 'running' RETURNING *`);
  const interrupt = db.prepare(`
    UPDATE turns SET status = 'interrupted', error = ?, finished_at = ?
    WHERE id = ? AND status = 'running'
    RETURNING *`);
  const running = db.prepare(`SELECT * FROM turns WHERE status = 'running' ORDER BY seq`);
  const waiting = db.prepare(`
    SELECT conversation_id AS id, count(*) AS turns FROM turns
    WHERE status = 'queued' AND retry_at IS NULL GROUP BY conversation_id ORDER BY min(seq)`);
  const anyQueued = db.prepare(`
    SELECT 1 FROM turns WHERE status = 'queued' AND retry_at IS NULL AND conversation_id = ? LIMIT 1`);
  const newestDone = db.prepare(`SELECT * FROM turns WHERE status = 'done' ORDER BY seq DESC LIMIT ?`);
  // Other turns ran before a retried turn, which has to see their answers.
  const before = db.prepare(`
    SELECT * FROM turns WHERE conversation_id = ?1 AND (seq < ?2 OR (seq > ?2 AND finished_at IS NOT NULL))
    ORDER BY seq DESC LIMIT ?3`);
  const after = db.prepare('SELECT * FROM turns WHERE conversation_id = ? AND seq > ? ORDER BY seq');

  return {
    /** Stores a turn as `queued`. The caller has checked its `fire_id` in the same transaction. */
    insert(turn: NewTurn): Turn {
      return one(
        insert,
        turn.id,
        turn.conversationId,
        turn.origin,
        turn.alarmId ?? null,
        turn.fireId ?? null,
        turn.scheduledFor ?? null,
        turn.missedCount ?? null,
        turn.label ?? null,
        turn.setAt ?? null,
        turn.setBy ?? null,
        turn.lateBecause ?? null,
        turn.message,
        turn.payload ?? null,
        turn.userId ?? null,
        turn.createdAt,
      )!;
    },

    get: (id: string, conversationId: string) => one(byId, id, conversationId),

    /** The existing turn of a wake. */
    repeatedBy({ fireId, repeats }: NewTurn): Turn | undefined {
      if (fireId === undefined) return undefined;
      if (!repeats) return one(byFire, fireId);
      const { name, since } = repeats;
      const row = byName.get({ name, since });
      return row === undefined ? undefined : turnOf(row);
    },

    /**
     * Moves the conversation's oldest `queued` turn to `running` and counts the attempt; `undefined` when none waits.
     */
    beginNext: (conversationId: string, now: number) => one(begin, now, conversationId),

    /** Ends a running turn; `undefined` when this attempt no longer runs. */
    finish(turn: Turn, outcome: Outcome, now: number): Turn | undefined {
      const error = outcome.status === 'failed' ? outcome.error : null;
      return one(finish, outcome.status, outcome.reply ?? null, error, outcome.model, now, turn.id, turn.attempts);
    },

    /** A running turn waits for its retry; `undefined` when this attempt no longer runs. */
    park: (turn: Turn, { error, model, at }: { error: string; model: string; at: number }) =>
      one(park, at, error, model, turn.id, turn.attempts),

    /** Makes turns ready whose retry time has come. @returns the conversation of each turn */
    release: (now: number): string[] => release.all(now).map(({ id }) => id as string),

    /** The time of the next retry. */
    nextRetry: () => nextRetry.get()?.at as number | undefined,

    /** Ends a turn that has not begun; `undefined` when it has, or does not exist. */
    endQueued: (id: string, error: string, now: number) => one(endQueued, error, now, id),

    byId: (id: string) => one(byOwnId, id),

    /** Waiting turns of a conversation after a position in the order, oldest first. */
    queuedAfter: (conversationId: string, seq: number, limit: number): Turn[] =>
      queued.all(conversationId, seq, limit).map(turnOf),

    /** A running turn waits again, in its old place; the attempt stays counted. */
    putBack: (id: string) => one(putBack, id),

    /** Gives a running turn up. */
    interrupt: (id: string, error: string, now: number) => one(interrupt, error, now, id),

    running: (): Turn[] => running.all().map(turnOf),

    /** Conversations with turns that may begin, in the order of the oldest such turn, with their number. */
    waiting: () => waiting.all() as { id: string; turns: number }[],

    hasQueued: (conversationId: string) => anyQueued.get(conversationId) !== undefined,

    /** The done turns of all conversations that were accepted last, oldest first. */
    newestDone: (limit: number): Turn[] => newestDone.all(limit).map(turnOf).reverse(),

    /** The newest turns of a conversation that were accepted before one of its turns, or ended before it began. */
    before: (conversationId: string, seq: number, limit: number): Turn[] =>
      before.all(conversationId, seq, limit).map(turnOf).reverse(),

    /** A conversation's turns after a position in the order, oldest first, read one by one. */
    *after(conversationId: string, seq: number): Generator<Turn> {
      for (const row of after.iterate(conversationId, seq)) yield turnOf(row);
    },
  };
}

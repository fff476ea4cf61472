/**
 * The `turns` table. Every method is one synchronous statement; writes must run inside a transaction of the
 * connection's group commit. Each database with the table creates it with its own migrations.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { TurnUsage } from '../wire/usage.ts';
import type { TurnTerms } from '../wire/wake.ts';
import type { NewTurn, Turn } from './turn.ts';

type Row = Record<string, SQLOutputValue>;

/** The columns that an accepted turn can have. */
const ACCEPTED = [
  ...['id', 'user_id', 'conversation_id', 'origin', 'alarm_id', 'fire_id', 'named', 'preset', 'scheduled_for'],
  ...['missed_count', 'late_because', 'label', 'set_at', 'set_by', 'terms', 'message', 'payload', 'status', 'handle'],
  ...['created_at', 'started_at', 'finished_at'],
];

const COLUMNS = [
  ...ACCEPTED,
  ...['seq', 'attempts', 'retries', 'retry_at', 'waits', 'session', 'spawn_id', 'pid', 'birth', 'reply', 'error'],
  ...['model', 'usage'],
];

/** `fire_id` is the member `fireId`. */
const memberOf = (column: string) => column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** The columns of a turn for {@link turnOf}. */
export const TURN_COLUMNS = COLUMNS.map((column) => `${column} AS ${memberOf(column)}`).join(', ');

const present = (row: Row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));

/**
 * The column `terms` also has members of the turn that few turns have: what the alarm's check said, the authors of
 * its texts, the sender of a message of another agent, and the trace.
 */
function readTerms(text: string): Pick<Turn, 'terms' | 'check' | 'textBy' | 'sentBy' | 'traceparent'> {
  const {
    check,
    text_by: textBy,
    sent_by: sentBy,
    traceparent,
    ...terms
  } = JSON.parse(text) as TurnTerms &
    Pick<Turn, 'check' | 'traceparent'> & { sent_by?: string; text_by?: Turn['textBy'] };
  return {
    ...(Object.keys(terms).length > 0 && { terms }),
    ...(check && { check }),
    ...(textBy && { textBy }),
    ...(sentBy !== undefined && { sentBy }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/**
 * The turn of a row; SQLite's NULL is an absent member. The columns are typed by the schema (STRICT tables), which the
 * cast relies on.
 */
export function turnOf({ named, pid, birth, terms, usage, ...members }: Row): Turn {
  return {
    ...present(members),
    ...(named === null ? {} : { named: named === 1 }),
    ...(typeof terms === 'string' ? readTerms(terms) : {}),
    ...(typeof usage === 'string' ? { usage: JSON.parse(usage) } : {}),
    ...(pid === null || birth === null ? {} : { born: { pid, birth } }),
  } as Turn;
}

const usageColumn = (usage: TurnUsage | undefined) => (usage === undefined ? null : JSON.stringify(usage));

/** A turn with the members that are set before its first attempt. */
export type AcceptedTurn = NewTurn & Partial<Pick<Turn, 'status' | 'handle' | 'startedAt' | 'finishedAt'>>;

/** What the queue needs of an unfinished turn. */
export type UnfinishedTurn = Pick<
  Turn,
  'seq' | 'id' | 'userId' | 'conversationId' | 'preset' | 'status' | 'retryAt' | 'waits'
>;

/** The final state of a turn. */
export type Ending = {
  readonly status: 'accepted' | 'done' | 'failed' | 'unknown' | 'interrupted';
  readonly reply?: string | undefined;
  readonly error?: string | undefined;
  readonly model?: string | undefined;
  readonly usage?: TurnUsage | undefined;
  readonly session?: string | undefined;
  /** The agent's own count of its whole conversation, where it has one. */
  readonly sessionUsage?: TurnUsage | undefined;
  readonly cwd?: string | undefined;
  /** When it began, if no report of its start was stored yet. */
  readonly began?: number | undefined;
};

/**
 * Makes the table's operations over an open connection.
 *
 * @param perUser whether fire ids of different users are different fires
 */
export function turnTable(db: DatabaseSync, { perUser }: { perUser: boolean }) {
  const statement = (sql: string) => {
    const prepared = db.prepare(sql);
    return (values: Record<string, SQLInputValue> = {}): Turn | undefined => {
      const row = prepared.get(values);
      return row === undefined ? undefined : turnOf(row);
    };
  };
  const update = (set: string, where: string) =>
    statement(`UPDATE turns SET ${set} WHERE id = :id AND ${where} RETURNING ${TURN_COLUMNS}`);

  const insert = statement(`
    INSERT INTO turns (${ACCEPTED.join(', ')}) VALUES (${ACCEPTED.map((column) => `:${column}`).join(', ')})
    RETURNING ${TURN_COLUMNS}`);
  const byId = statement(`SELECT ${TURN_COLUMNS} FROM turns WHERE id = :id`);
  const byFire = statement(`
    SELECT ${TURN_COLUMNS} FROM turns WHERE fire_id = :fireId ${perUser ? 'AND user_id = :userId' : ''}`);
  // '@' precedes the time in a derived fire id, and 'A' comes right after it.
  const byName = statement(`
    SELECT ${TURN_COLUMNS} FROM turns
    WHERE fire_id > :name || '@' AND fire_id < :name || 'A' AND created_at > :since
    ORDER BY created_at DESC LIMIT 1`);
  const unfinished = db.prepare(`
    SELECT seq, id, user_id AS userId, conversation_id AS conversationId, preset, status, retry_at AS retryAt, waits
    FROM turns WHERE status IN ('queued', 'running') AND seq > ? ORDER BY seq`);
  const begin = update(
    `status = 'running', attempts = attempts + 1, retry_at = NULL, waits = NULL, error = NULL, session = :session,
     handle = NULL, spawn_id = :spawnId, pid = NULL, birth = NULL, started_at = :now`,
    `status IN ('queued', 'running')`,
  );
  const recordProcess = db.prepare('UPDATE turns SET pid = :pid, birth = :birth WHERE id = :id');
  const name = db.prepare('UPDATE turns SET session = coalesce(:session, session), handle = :handle WHERE id = :id');
  const requeue = update(
    `status = 'queued', attempts = :attempts, retry_at = :retryAt, waits = :why, started_at = NULL, spawn_id = NULL,
     pid = NULL, birth = NULL`,
    `status IN ('queued', 'running')`,
  );
  const park = update(
    `status = 'queued', retry_at = :retryAt, retries = retries + 1, error = :error, model = :model,
     usage = :usage`,
    `status = 'running'`,
  );
  const putBack = update(`status = 'queued'`, `status = 'running'`);
  const finish = update(
    `status = :status, reply = :reply, error = :error, model = coalesce(:model, model),
     usage = coalesce(:usage, usage),
     session = coalesce(:session, session), finished_at = :now, retry_at = NULL, waits = NULL, pid = NULL, birth = NULL`,
    'status = :from',
  );

  const ofFire = (fireId: string, userId: string | undefined) =>
    byFire(perUser ? { fireId, userId: userId ?? null } : { fireId });

  return {
    /** Stores a turn, `queued` by default. The caller has checked its fire in the same transaction. */
    insert(turn: AcceptedTurn): Turn {
      const { check, textBy, sentBy, traceparent, terms } = turn;
      const members: Record<string, unknown> = { status: 'queued', ...turn };
      if (check || textBy || sentBy !== undefined || traceparent !== undefined)
        members.terms = { ...terms, check, text_by: textBy, sent_by: sentBy, traceparent };
      const value = (given: unknown) => {
        if (typeof given === 'boolean') return Number(given);
        return typeof given === 'object' ? given && JSON.stringify(given) : ((given ?? null) as SQLInputValue);
      };
      return insert(Object.fromEntries(ACCEPTED.map((column) => [column, value(members[memberOf(column)])])))!;
    },

    get: (id: string) => byId({ id }),
    ofFire,

    /** The existing turn of a wake. */
    repeatedBy({ fireId, userId, repeats }: NewTurn): Turn | undefined {
      if (fireId === undefined) return undefined;
      return repeats ? byName(repeats) : ofFire(fireId, userId);
    },

    /** Queued and running turns after a position in the order, oldest first. */
    unfinished: (after: number): UnfinishedTurn[] => unfinished.all(after).map((row) => present(row) as UnfinishedTurn),

    /** Counts an attempt of an unfinished turn; `undefined` when it has ended. */
    begin: (id: string, { session, spawnId, now }: { session: string | undefined; spawnId: string; now: number }) =>
      begin({ id, session: session ?? null, spawnId, now }),

    recordProcess: (id: string, pid: number, birth: string) => void recordProcess.run({ id, pid, birth }),

    /** The agent's name of the turn, and of its conversation if it has one by now. */
    name: (id: string, { session, handle }: { session?: string; handle?: string }) =>
      void name.run({ id, session: session ?? null, handle: handle ?? null }),

    /** An attempt certainly did not start: the turn waits, and blocks its conversation. */
    requeue: (id: string, attempts: number, at: number, why: string) => requeue({ id, attempts, retryAt: at, why }),

    /** An attempt failed temporarily: the turn waits, and later ones may overtake it. */
    park: (id: string, { error, model, usage, at }: Pick<Ending, 'model' | 'usage'> & { error: string; at: number }) =>
      park({ id, error, model: model ?? null, usage: usageColumn(usage), retryAt: at }),

    /** A running turn waits again, in its old place; the attempt stays counted. */
    putBack: (id: string) => putBack({ id }),

    /** Ends a turn that still has the given status; otherwise `undefined`. */
    finish: ({ id, status: from }: Turn, { status, reply, error, model, usage, session }: Ending, now: number) =>
      finish({
        ...{ id, from, status, now },
        reply: reply ?? null,
        error: error ?? null,
        model: model ?? null,
        usage: usageColumn(usage),
        session: session ?? null,
      }),
  };
}

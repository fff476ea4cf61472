/**
 * The turns and conversations of agents without a daemon, in SQLite. The file contains their messages, so only its
 * owner can read it (0600).
 */
import { join } from 'node:path';
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import type { ReceiptOutbox } from '../../kit/outbox/receipt-sender.ts';
import { receiptTable } from '../../kit/outbox/receipt-table.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../../kit/sqlite/open.ts';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isOccurrence } from '../../wire/fire-id.ts';
import type { MachineTurnStatus } from '../../wire/machine-turn.ts';
import type { TurnReport } from '../../wire/receipt.ts';
import type { Turn, TurnStage } from './turn.ts';

export type Row = Record<string, SQLOutputValue>;

const text = (value: SQLOutputValue | undefined) => (value === null ? undefined : (value as string));
const number = (value: SQLOutputValue | undefined) => (value === null ? undefined : (value as number));

function turnOfRow(row: Row): Turn {
  const pid = number(row.pid);
  const birth = text(row.birth);
  return {
    id: row.id as string,
    userId: row.user_id as string,
    fireId: row.fire_id as string,
    // The column is older than wakes without an alarm: they have an empty text in it.
    alarmId: (row.alarm_id as string) || undefined,
    conversationId: row.conversation_id as string,
    named: row.named === 1,
    preset: row.preset as string,
    message: row.message as string,
    payload: text(row.payload),
    scheduledFor: row.scheduled_for as number,
    missedCount: row.missed_count as number,
    label: text(row.label),
    setAt: number(row.set_at),
    setBy: text(row.set_by),
    lateBecause: text(row.late_because) as Turn['lateBecause'],
    status: row.status as MachineTurnStatus,
    attempts: row.attempts as number,
    notBefore: number(row.not_before),
    waits: text(row.waits),
    session: text(row.session),
    handle: text(row.handle),
    spawnId: text(row.spawn_id),
    born: pid === undefined || birth === undefined ? undefined : { pid, birth },
    reply: text(row.reply),
    error: text(row.error),
    acceptedAt: row.accepted_at as number,
    startedAt: number(row.started_at),
    finishedAt: number(row.finished_at),
  };
}

/** The final outcome of a turn. */
export type Ending = {
  status: Extract<MachineTurnStatus, 'accepted' | 'done' | 'failed' | 'unknown'>;
  reply?: string | undefined;
  error?: string | undefined;
  /** When it began, if that is certain. */
  began?: number | undefined;
  at: number;
};

type TurnFilter = {
  userId: string;
  conversationId?: string | undefined;
  fireId?: string | undefined;
  status?: MachineTurnStatus | undefined;
  /** Only turns that were accepted before the one with this number. */
  before?: number | undefined;
  limit: number;
};

export class TurnStore {
  readonly conversations: Conversations;
  readonly #file: SqliteFile;
  readonly #commits: GroupCommit;
  readonly #insert: StatementSync;
  readonly #get: StatementSync;
  readonly #ofFire: StatementSync;
  readonly #unfinished: StatementSync;
  readonly #begin: StatementSync;
  readonly #recordProcess: StatementSync;
  readonly #handle: StatementSync;
  readonly #requeue: StatementSync;
  readonly #finish: StatementSync;
  readonly #list: StatementSync;
  readonly #counts: StatementSync;
  readonly #prune: StatementSync;
  readonly #reports: ReturnType<typeof receiptTable>;
  readonly #onReportStored: (() => void) | undefined;
  /** Reports that chronosd has not received yet. */
  readonly outbox: ReceiptOutbox = {
    waiting: (page) => this.#reports.waiting(page),
    remove: (ids) => this.#commits.run(() => this.#reports.remove(ids)),
  };

  /**
   * Opens and locks the store of a data folder until it is closed.
   *
   * @param onReportStored called when a report has become durable; without it none are stored
   * @throws ReveilleError as `openDatabase`
   */
  constructor(dataDir: string, clock: Clock, onReportStored?: () => void) {
    this.#onReportStored = onReportStored;
    this.#file = openDatabase({
      path: join(dataDir, 'turns.db'),
      migrations: new URL('./migrations', import.meta.url),
      clock,
      lock: 'exclusive',
    });
    const { db } = this.#file;
    this.#commits = new GroupCommit(db);
    this.conversations = new Conversations(db);
    this.#reports = receiptTable(db);
    this.#insert = db.prepare(`
      INSERT INTO turns (id, user_id, fire_id, alarm_id, conversation_id, named, preset, message, payload, scheduled_for,
        missed_count, label, set_at, set_by, late_because, status, handle, accepted_at, started_at, finished_at)
      VALUES (:id, :userId, :fireId, :alarmId, :conversationId, :named, :preset, :message, :payload, :scheduledFor,
        :missedCount, :label, :setAt, :setBy, :lateBecause, :status, :handle, :acceptedAt, :startedAt, :finishedAt)`);
    this.#get = db.prepare('SELECT * FROM turns WHERE id = ?');
    this.#ofFire = db.prepare('SELECT * FROM turns WHERE user_id = ? AND fire_id = ?');
    this.#unfinished = db.prepare(`SELECT * FROM turns WHERE status IN ('queued', 'running') ORDER BY seq`);
    this.#begin = db.prepare(`
      UPDATE turns
      SET status = 'running', attempts = attempts + 1, not_before = NULL, waits = NULL, session = :session, handle = NULL,
        spawn_id = :spawnId, pid = NULL, birth = NULL, started_at = :now
      WHERE id = :id AND status IN ('queued', 'running')`);
    this.#recordProcess = db.prepare('UPDATE turns SET pid = :pid, birth = :birth WHERE id = :id');
    this.#handle = db.prepare(
      'UPDATE turns SET session = coalesce(:session, session), handle = :handle WHERE id = :id',
    );
    this.#requeue = db.prepare(`
      UPDATE turns
      SET status = 'queued', attempts = :attempts, not_before = :notBefore, waits = :why, started_at = NULL, spawn_id = NULL, pid = NULL, birth = NULL
      WHERE id = :id AND status IN ('queued', 'running')`);
    this.#finish = db.prepare(`
      UPDATE turns
      SET status = :status, reply = :reply, error = :error, session = coalesce(:session, session), finished_at = :at,
        not_before = NULL, waits = NULL, pid = NULL, birth = NULL
      WHERE id = :id AND status IN ('queued', 'running')`);
    this.#list = db.prepare(`
      SELECT * FROM turns
      WHERE user_id = :userId
        AND (:conversationId IS NULL OR conversation_id = :conversationId)
        AND (:fireId IS NULL OR fire_id = :fireId)
        AND (:status IS NULL OR status = :status)
        AND (:before IS NULL OR seq < :before)
      ORDER BY seq DESC
      LIMIT :limit`);
    this.#counts = db.prepare('SELECT status, count(*) AS turns FROM turns WHERE user_id = ? GROUP BY status');
    this.#prune = db.prepare('DELETE FROM turns WHERE finished_at < ?');
  }

  /**
   * Stores a turn, unless its fire has one already. Resolves when that is on disk.
   *
   * @throws ReveilleError `unavailable` when it could not be stored
   */
  accept(turn: Turn): Promise<{ turn: Turn; deduped: boolean }> {
    return this.#commits.run(() => {
      const known = this.ofFire(turn.userId, turn.fireId);
      if (known) return { turn: known, deduped: true };
      const { id, userId, fireId, alarmId, conversationId, preset, message, scheduledFor, missedCount, status } = turn;
      this.#insert.run({
        ...{ id, userId, fireId, conversationId, preset, message, scheduledFor, missedCount, status },
        alarmId: alarmId ?? '',
        named: turn.named ? 1 : 0,
        payload: turn.payload ?? null,
        label: turn.label ?? null,
        setAt: turn.setAt ?? null,
        setBy: turn.setBy ?? null,
        lateBecause: turn.lateBecause ?? null,
        handle: turn.handle ?? null,
        acceptedAt: turn.acceptedAt,
        startedAt: turn.startedAt ?? null,
        finishedAt: turn.finishedAt ?? null,
      });
      return { turn, deduped: false };
    });
  }

  get(id: string): Turn | undefined {
    return this.#read(() => [this.#get.get(id)])[0];
  }

  ofFire(userId: string, fireId: string): Turn | undefined {
    return this.#read(() => [this.#ofFire.get(userId, fireId)])[0];
  }

  /** In the order of acceptance. */
  unfinished(): Turn[] {
    return this.#read(() => this.#unfinished.all());
  }

  /** Call it before any action of an attempt. Rejects with `internal` when the turn has ended. */
  begin(id: string, attempt: { session: string | undefined; spawnId: string; now: number }): Promise<void> {
    const { session, spawnId, now } = attempt;
    return this.#commits.run(() => {
      const { changes } = this.#begin.run({ id, session: session ?? null, spawnId, now });
      if (Number(changes) !== 1) throw new ReveilleError('internal', `the turn ${id} has ended and cannot be begun`);
    });
  }

  /**
   * Call it right after the fork, in the same turn of the event loop. Until then only the environment identifies the
   * process.
   */
  recordProcess(id: string, pid: number, birth: string): void {
    this.#commits.runNow(() => this.#recordProcess.run({ id, pid, birth }));
  }

  /** The target's name of the turn, and of its conversation if it has one by now. */
  name(id: string, { session, handle }: { session?: string; handle?: string }): Promise<void> {
    return this.#commits.run(() => void this.#handle.run({ id, session: session ?? null, handle: handle ?? null }));
  }

  /** For an attempt that certainly did not start. */
  requeue({ id, attempts }: Turn, notBefore: number, why: string): Promise<void> {
    return this.#commits.run(() => void this.#requeue.run({ id, attempts, notBefore, why }));
  }

  /** Ends a turn and stores the session of its conversation from now on, in one transaction. */
  async finish(turn: Turn, ending: Ending, session: string | undefined, cwd: string | undefined): Promise<void> {
    const { status, reply, error, at } = ending;
    await this.#commits.run(() => {
      const { changes } = this.#finish.run({
        ...{ id: turn.id, status, at },
        reply: reply ?? null,
        error: error ?? null,
        session: session ?? null,
      });
      if (session !== undefined) this.conversations.put(turn, { session, cwd }, at);
      if (Number(changes) === 1) this.#report(turn, ending);
    });
    this.#onReportStored?.();
  }

  /** Stores the report that a turn has begun, if reports are stored; resolves when it is on disk. */
  async reportStart(stage: TurnStage): Promise<void> {
    if (!this.#onReportStored || !isOccurrence(stage.fire_id)) return;
    const { user_id, fire_id, turn_id, conversation_id, at } = stage;
    await this.#commits.run(() =>
      this.#reports.put(user_id, fire_id, startOf({ id: turn_id, conversationId: conversation_id }, at)),
    );
    this.#onReportStored();
  }

  /** Puts the reports of an ended turn into the outbox, inside the transaction that ends it. */
  #report(turn: Turn, { status, reply, error, began, at }: Ending): void {
    if (!this.#onReportStored || !isOccurrence(turn.fireId) || status === 'accepted') return;
    if (began !== undefined) this.#reports.put(turn.userId, turn.fireId, startOf(turn, began));
    const about = { turnId: turn.id, conversationId: turn.conversationId };
    const outcome = status === 'done' ? 'ok' : status;
    this.#reports.put(turn.userId, turn.fireId, {
      ...about,
      stage: 'turn_finished',
      at,
      outcome,
      error: error ?? null,
      retryAt: null,
      reply: reply ?? null,
    });
  }

  /** From now on the conversation has this session, or none. */
  keepSession(turn: Turn, session: string | undefined, cwd: string | undefined, at: number): Promise<void> {
    return this.#commits.run(() => this.conversations.put(turn, { session, cwd }, at));
  }

  /** Newest first, each with its number in the order of acceptance. */
  list(filter: TurnFilter): { turn: Turn; seq: number }[] {
    const { userId, conversationId, fireId, status, before, limit } = filter;
    try {
      const rows = this.#list.all({
        ...{ userId, limit },
        conversationId: conversationId ?? null,
        fireId: fireId ?? null,
        status: status ?? null,
        before: before ?? null,
      });
      return rows.map((row) => ({ turn: turnOfRow(row), seq: row.seq as number }));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  counts(userId: string): Partial<Record<MachineTurnStatus, number>> {
    const rows = this.#counts.all(userId) as { status: MachineTurnStatus; turns: number }[];
    return Object.fromEntries(rows.map(({ status, turns }) => [status, turns]));
  }

  /** Deletes turns that ended before an instant. */
  prune(before: number): Promise<void> {
    return this.#commits.run(() => void this.#prune.run(before));
  }

  /** Writes what is queued, then closes the file. */
  async close(): Promise<void> {
    await this.#commits.drain();
    this.#file.close();
  }

  #read(query: () => (Row | undefined)[]): Turn[] {
    try {
      return query().flatMap((row) => (row === undefined ? [] : [turnOfRow(row)]));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }
}

function startOf({ id, conversationId }: Pick<Turn, 'id' | 'conversationId'>, at: number): TurnReport {
  const nothing = { outcome: null, error: null, retryAt: null, reply: null };
  return { stage: 'turn_started', at, ...nothing, turnId: id, conversationId };
}

type Key = Pick<Turn, 'userId' | 'conversationId' | 'preset'>;

/** `session`: none while the next turn must create one. */
export type Conversation = { session: string | undefined; cwd: string | undefined };

export class Conversations {
  readonly #get: StatementSync;
  readonly #put: StatementSync;

  constructor(db: DatabaseSync) {
    this.#get = db.prepare(`
      SELECT session, cwd FROM conversations
      WHERE user_id = :userId AND conversation_id = :conversationId AND preset = :preset`);
    // The folder of its first turn stays, because the session's files are there.
    this.#put = db.prepare(`
      INSERT INTO conversations (user_id, conversation_id, preset, session, cwd, created_at, updated_at)
      VALUES (:userId, :conversationId, :preset, :session, :cwd, :at, :at)
      ON CONFLICT DO UPDATE SET
        session = excluded.session,
        cwd = CASE WHEN conversations.session IS NULL OR conversations.cwd IS NULL THEN excluded.cwd ELSE conversations.cwd END,
        updated_at = excluded.updated_at`);
  }

  /** @throws ReveilleError `unavailable` when the file cannot be read */
  get({ userId, conversationId, preset }: Key): Conversation | undefined {
    try {
      const row = this.#get.get({ userId, conversationId, preset }) as
        | { session: string | null; cwd: string | null }
        | undefined;
      return row && { session: row.session ?? undefined, cwd: row.cwd ?? undefined };
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  /** Call it inside a transaction of the store. */
  put({ userId, conversationId, preset }: Key, { session, cwd }: Conversation, at: number): void {
    this.#put.run({ userId, conversationId, preset, session: session ?? null, cwd: cwd ?? null, at });
  }
}

/**
 * From rows to the domain's objects and back. Each object's columns are named once; statements, reading and binding all follow
 * that list.
 *
 * Rows are read as arrays: node:sqlite makes them in half the time that it takes for objects.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { Alarm, Attempt, Occurrence } from '../../alarm/alarm.ts';
import type { AgentKey } from '../store.ts';

/**
 * A bound limit. SQLite plans a statement anew each time that a bare `LIMIT ?` is bound, which takes longer than most of ours
 * take to run; an expression keeps the plan.
 */
export const LIMIT = 'LIMIT ? + 0';

type Storable<T> = { [Member in keyof T]: SQLInputValue };

/** How an object stands in its columns. */
export type RowShape<T> = {
  /** The columns in the order that {@link read} expects, for a SELECT or RETURNING. */
  readonly columns: string;
  /** Makes the object of a row selected with {@link columns}. */
  read(row: readonly SQLOutputValue[]): T;
};

type Member<T> = keyof T & string;

/** The column of every member. */
export const ALARM_COLUMNS: Record<Member<Alarm>, string> = {
  id: 'id',
  owner: 'owner',
  kind: 'kind',
  label: 'label',
  wakeMessage: 'wake_message',
  payload: 'payload',
  conversationId: 'conversation_id',
  idempotencyKey: 'idempotency_key',
  delaySeconds: 'delay_seconds',
  fireAt: 'fire_at',
  cronExpr: 'cron_expr',
  timezone: 'timezone',
  anchor: 'anchor',
  jitterSeconds: 'jitter_seconds',
  endsAt: 'ends_at',
  maxFires: 'max_fires',
  maxFailures: 'max_failures',
  maxLatenessSeconds: 'max_lateness_seconds',
  status: 'status',
  failureCount: 'failure_count',
  lastError: 'last_error',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
  lastFiredAt: 'last_fired_at',
  fireCount: 'fire_count',
  scheduledFires: 'scheduled_fires',
};

export const OCCURRENCE_COLUMNS: Record<Member<Occurrence>, string> = {
  fireId: 'fire_id',
  alarmId: 'alarm_id',
  owner: 'owner',
  source: 'source',
  scheduledFor: 'scheduled_for',
  nominal: 'nominal',
  dueAt: 'due_at',
  attempt: 'attempt',
  missedCount: 'missed_count',
  fence: 'fence',
  leaseUntil: 'lease_until',
  claimedAt: 'claimed_at',
};

export const ATTEMPT_COLUMNS: Record<Member<Attempt>, string> = {
  fireId: 'fire_id',
  alarmId: 'alarm_id',
  owner: 'owner',
  scheduledFor: 'scheduled_for',
  attempt: 'attempt',
  startedAt: 'started_at',
  finishedAt: 'finished_at',
  outcome: 'outcome',
  httpStatus: 'http_status',
  error: 'error',
  missedCount: 'missed_count',
};

export const AGENT_KEY_COLUMNS: Record<Member<AgentKey>, string> = {
  owner: 'owner',
  label: 'label',
  publicKey: 'public_key',
  source: 'source',
  enrolledAt: 'enrolled_at',
  revokedAt: 'revoked_at',
};

function shapeOf<T>(columns: Record<Member<T>, string>): RowShape<T> {
  const members = Object.keys(columns) as Member<T>[];
  return {
    columns: members.map((member) => columns[member]).join(', '),
    read(row) {
      const object: Partial<Record<Member<T>, SQLOutputValue>> = {};
      members.forEach((member, index) => {
        object[member] = row[index]!;
      });
      return object as T;
    },
  };
}

export const ALARM = shapeOf(ALARM_COLUMNS);
export const OCCURRENCE = shapeOf(OCCURRENCE_COLUMNS);
export const ATTEMPT = shapeOf(ATTEMPT_COLUMNS);
export const AGENT_KEY = shapeOf(AGENT_KEY_COLUMNS);

/** A prepared query. */
export type Query<T> = {
  get(...parameters: SQLInputValue[]): T | undefined;
  all(...parameters: SQLInputValue[]): T[];
};

/** Prepares a query whose rows `read` turns into what the caller wants. */
export function prepareQuery<T>(db: DatabaseSync, sql: string, read: (row: readonly SQLOutputValue[]) => T): Query<T> {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return {
    get(...parameters) {
      const row = statement.get(...parameters) as SQLOutputValue[] | undefined;
      return row && read(row);
    },
    all(...parameters) {
      return (statement.all(...parameters) as unknown as SQLOutputValue[][]).map(read);
    },
  };
}

/** The values of some members, in their order, to be bound to a statement. */
function valuesOf<T extends Storable<T>>(object: T, members: readonly Member<T>[]): SQLInputValue[] {
  return members.map((member) => object[member]);
}

/** Prepares the INSERT of some members of an object. */
export function prepareInsert<T extends Storable<T>>(
  db: DatabaseSync,
  table: string,
  columns: Record<Member<T>, string>,
  members: readonly Member<T>[] = Object.keys(columns) as Member<T>[],
): (object: T) => void {
  const names = members.map((member) => columns[member]);
  const statement = db.prepare(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
  );
  return (object) => {
    statement.run(...valuesOf(object, members));
  };
}

/**
 * Prepares the UPDATE of some members of an object.
 *
 * @param where the rest of the statement, whose parameters are the values of the members in `by`
 */
export function prepareUpdate<T extends Storable<T>>(
  db: DatabaseSync,
  table: string,
  columns: Record<Member<T>, string>,
  members: readonly Member<T>[],
  where: string,
  by: readonly Member<T>[],
): (object: T) => void {
  const assignments = members.map((member) => `${columns[member]} = ?`).join(', ');
  const statement = db.prepare(`UPDATE ${table} SET ${assignments} WHERE ${where}`);
  return (object) => {
    statement.run(...valuesOf(object, members), ...valuesOf(object, by));
  };
}

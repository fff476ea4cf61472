/**
 * From rows to the domain's objects and back: each object's columns are named once, and statements, reading and binding all
 * follow that list.
 */
import type { SQLOutputValue } from 'node:sqlite';
import type { Alarm, Attempt, Occurrence } from '../../alarm/alarm.ts';
import type { FireReceipt } from '../../alarm/course.ts';
import type { AgentKey } from '../store.ts';

/** How an object stands in its columns. */
export type RowShape<T> = {
  /** The columns in the order that {@link read} expects, for a SELECT or RETURNING. */
  readonly columns: string;
  /** Makes the object of a row selected with {@link columns}. */
  read(row: readonly SQLOutputValue[]): T;
};

/** A member that has a column. */
export type Member<T> = keyof T & string;

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
  urgent: 'urgent',
  setBy: 'set_by',
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
  heldReason: 'held_reason',
  heldUntil: 'held_until',
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
  machineReadyMs: 'machine_ready_ms',
};

export const RECEIPT_COLUMNS: Record<Member<FireReceipt>, string> = {
  owner: 'owner',
  alarmId: 'alarm_id',
  fireId: 'fire_id',
  stage: 'stage',
  at: 'at',
  outcome: 'outcome',
  error: 'error',
  turnId: 'turn_id',
  conversationId: 'conversation_id',
  recordedAt: 'recorded_at',
};

export const AGENT_KEY_COLUMNS: Record<Member<AgentKey>, string> = {
  owner: 'owner',
  label: 'label',
  publicKey: 'public_key',
  source: 'source',
  enrolledAt: 'enrolled_at',
  revokedAt: 'revoked_at',
};

/** @param switches members that are true or false; SQLite keeps them as 1 and 0 */
function shapeOf<T>(columns: Record<Member<T>, string>, switches: readonly Member<T>[] = []): RowShape<T> {
  const members = Object.keys(columns) as Member<T>[];
  return {
    columns: members.map((member) => columns[member]).join(', '),
    read(row) {
      const object: Partial<Record<Member<T>, SQLOutputValue | boolean>> = {};
      members.forEach((member, index) => {
        object[member] = row[index]!;
      });
      for (const member of switches) object[member] = object[member] !== 0;
      return object as T;
    },
  };
}

export const ALARM = shapeOf(ALARM_COLUMNS, ['urgent']);
export const OCCURRENCE = shapeOf(OCCURRENCE_COLUMNS);
export const ATTEMPT = shapeOf(ATTEMPT_COLUMNS);
export const RECEIPT = shapeOf(RECEIPT_COLUMNS);
export const AGENT_KEY = shapeOf(AGENT_KEY_COLUMNS);

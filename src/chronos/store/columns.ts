/**
 * The columns of each table, in both databases. Select, insert, update, read and move in SQLite and PostgreSQL follow
 * these lists.
 */
import type { Alarm, Attempt, Occurrence } from '../alarm/alarm.ts';
import type { FireReceipt } from '../alarm/course.ts';
import type { AgentKey } from './store.ts';

/**
 * The type in PostgreSQL. `bytes` is a text that may contain U+0000, which a text column cannot store: its UTF-8 form
 * is stored. `switch` is a boolean, stored as 1 and 0 in both databases.
 */
export type ColumnType = 'text' | 'bigint' | 'double precision' | 'boolean' | 'bytes' | 'switch';

type Column = { readonly name: string; readonly type: ColumnType };

/** A member that has a column. */
export type Member<T> = keyof T & string;

/** The column of every member. */
export type Columns<T> = Readonly<Record<Member<T>, Column>>;

const text = (name: string): Column => ({ name, type: 'text' });
const bigint = (name: string): Column => ({ name, type: 'bigint' });
const double = (name: string): Column => ({ name, type: 'double precision' });
const bytes = (name: string): Column => ({ name, type: 'bytes' });
const onOff = (name: string): Column => ({ name, type: 'switch' });

export const ALARM_COLUMNS: Columns<Alarm> = {
  id: text('id'),
  owner: text('owner'),
  kind: text('kind'),
  label: text('label'),
  wakeMessage: bytes('wake_message'),
  payload: text('payload'),
  conversationId: text('conversation_id'),
  idempotencyKey: text('idempotency_key'),
  delaySeconds: double('delay_seconds'),
  fireAt: bigint('fire_at'),
  cronExpr: text('cron_expr'),
  timezone: text('timezone'),
  anchor: bigint('anchor'),
  jitterSeconds: double('jitter_seconds'),
  endsAt: bigint('ends_at'),
  maxFires: bigint('max_fires'),
  maxFailures: bigint('max_failures'),
  maxLatenessSeconds: double('max_lateness_seconds'),
  urgent: onOff('urgent'),
  wakeComputer: onOff('wake_computer'),
  setBy: text('set_by'),
  status: text('status'),
  failureCount: bigint('failure_count'),
  lastError: bytes('last_error'),
  createdAt: bigint('created_at'),
  updatedAt: bigint('updated_at'),
  lastFiredAt: bigint('last_fired_at'),
  fireCount: bigint('fire_count'),
  scheduledFires: bigint('scheduled_fires'),
};

export const OCCURRENCE_COLUMNS: Columns<Occurrence> = {
  fireId: text('fire_id'),
  alarmId: text('alarm_id'),
  owner: text('owner'),
  source: text('source'),
  scheduledFor: bigint('scheduled_for'),
  nominal: bigint('nominal'),
  dueAt: bigint('due_at'),
  attempt: bigint('attempt'),
  missedCount: bigint('missed_count'),
  fence: bigint('fence'),
  leaseUntil: bigint('lease_until'),
  claimedAt: bigint('claimed_at'),
  heldReason: text('held_reason'),
  heldUntil: bigint('held_until'),
};

export const ATTEMPT_COLUMNS: Columns<Attempt> = {
  fireId: text('fire_id'),
  alarmId: text('alarm_id'),
  owner: text('owner'),
  scheduledFor: bigint('scheduled_for'),
  attempt: bigint('attempt'),
  startedAt: bigint('started_at'),
  finishedAt: bigint('finished_at'),
  outcome: text('outcome'),
  httpStatus: bigint('http_status'),
  error: bytes('error'),
  missedCount: bigint('missed_count'),
  machineReadyMs: bigint('machine_ready_ms'),
  lateBecause: text('late_because'),
};

export const TURN_REPORT_COLUMNS: Columns<FireReceipt> = {
  owner: text('owner'),
  alarmId: text('alarm_id'),
  fireId: text('fire_id'),
  stage: text('stage'),
  at: bigint('at'),
  outcome: text('outcome'),
  error: text('error'),
  turnId: text('turn_id'),
  conversationId: text('conversation_id'),
  recordedAt: bigint('recorded_at'),
  retryAt: bigint('retry_at'),
  reply: text('reply'),
};

export const AGENT_KEY_COLUMNS: Columns<AgentKey> = {
  owner: text('owner'),
  label: text('label'),
  publicKey: text('public_key'),
  source: text('source'),
  enrolledAt: bigint('enrolled_at'),
  revokedAt: bigint('revoked_at'),
};

/** Limits the number of open alarms of an owner, and the stored amount. */
export type OwnerRow = { owner: string; openAtMost: number; storedAlarms: number; storedBytes: number };

export const OWNER_COLUMNS: Columns<OwnerRow> = {
  owner: text('owner'),
  openAtMost: bigint('open_at_most'),
  storedAlarms: bigint('stored_alarms'),
  storedBytes: bigint('stored_bytes'),
};

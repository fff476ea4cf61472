/**
 * The columns of each table, in both databases. Select, insert, update, read and move in SQLite and PostgreSQL follow
 * these lists.
 */
import { COLUMN_FIELDS, type FieldType, fieldOf, memberOf } from '../../wire/alarm-fields.ts';
import type { Alarm, Attempt, Occurrence } from '../alarm/alarm.ts';
import type { StoredTurnReport } from '../alarm/fire-history.ts';
import type { StoredEvent } from './event-rows.ts';
import type { AgentKey, CalendarFeed } from './store.ts';

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
const bytes = (name: string): Column => ({ name, type: 'bytes' });

const TYPES: Readonly<Record<FieldType, ColumnType>> = {
  choice: 'text',
  text: 'text',
  string: 'text',
  message: 'bytes',
  identifier: 'text',
  json: 'text',
  instant: 'bigint',
  seconds: 'double precision',
  count: 'bigint',
  switch: 'switch',
  list: 'text',
  object: 'text',
  author: 'text',
};

export const ALARM_COLUMNS = Object.fromEntries(
  COLUMN_FIELDS.map((name) => [memberOf(name), { name, type: TYPES[fieldOf(name).type] }]),
) as Columns<Alarm>;

/** Members of an alarm that never change. */
export const IDENTITY = [
  'id',
  'owner',
  'kind',
  'idempotencyKey',
  'madeBy',
  'createdAt',
] as const satisfies Member<Alarm>[];

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
  claimedAt: bigint('claimed_at'),
  heldReason: text('held_reason'),
  heldUntil: bigint('held_until'),
  cause: text('cause'),
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
  cause: text('cause'),
};

export const TURN_REPORT_COLUMNS: Columns<StoredTurnReport> = {
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
  usage: text('usage'),
};

export const EVENT_COLUMNS: Columns<StoredEvent> = {
  owner: text('owner'),
  alarmId: text('alarm_id'),
  number: bigint('number'),
  id: bytes('id'),
  receivedAt: bigint('received_at'),
  data: bytes('data'),
  cause: text('cause'),
};

export const AGENT_KEY_COLUMNS: Columns<AgentKey> = {
  owner: text('owner'),
  label: text('label'),
  publicKey: text('public_key'),
  source: text('source'),
  enrolledAt: bigint('enrolled_at'),
  revokedAt: bigint('revoked_at'),
};

export const CALENDAR_FEED_COLUMNS: Columns<CalendarFeed> = {
  owner: text('owner'),
  id: text('id'),
  name: text('name'),
  digest: text('digest'),
  messages: { name: 'messages', type: 'switch' },
  createdAt: bigint('created_at'),
  madeBy: text('made_by'),
};

/** Limits the number of open alarms of an owner, and the stored amount. */
export type OwnerRow = { owner: string; openAtMost: number; storedAlarms: number; storedBytes: number };

export const OWNER_COLUMNS: Columns<OwnerRow> = {
  owner: text('owner'),
  openAtMost: bigint('open_at_most'),
  storedAlarms: bigint('stored_alarms'),
  storedBytes: bigint('stored_bytes'),
};

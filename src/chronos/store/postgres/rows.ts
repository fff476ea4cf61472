/**
 * From rows to the domain's objects and back. Each object's columns are named once; statements, reading and binding all follow
 * that list.
 */
import type { Alarm, AlarmState, Attempt, Occurrence } from '../../alarm/alarm.ts';
import type { FireReceipt } from '../../alarm/course.ts';
import type { AgentKey } from '../store.ts';
import type { Row } from './statement.ts';

/**
 * `bytes` stands for a text that may hold U+0000, which a text column cannot: its UTF-8 form is kept. `switch` stands for true or
 * false, kept as 1 and 0 as in SQLite.
 */
type ColumnType = 'text' | 'bigint' | 'double precision' | 'boolean' | 'bytes' | 'switch';

type Column = { readonly name: string; readonly type: ColumnType };

type Member<T> = keyof T & string;

/**
 * An array as PostgreSQL reads it (its manual, 8.15.2). The client library can write them too, at twice the time, which is a good
 * part of what a batch costs here.
 */
function arrayLiteral<T>(type: ColumnType, items: readonly T[], pick: (item: T) => unknown): string {
  let literal = '{';
  for (let index = 0; index < items.length; index++) {
    if (index > 0) literal += ',';
    const value = pick(items[index]!);
    if (value === null || value === undefined) literal += 'NULL';
    else if (typeof value !== 'string') literal += type === 'switch' ? Number(value) : String(value);
    else if (type === 'bytes') literal += `"\\\\x${Buffer.from(value, 'utf8').toString('hex')}"`;
    else literal += /["\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`;
  }
  return `${literal}}`;
}

/** How an object stands in its columns. */
export class Shape<T> {
  readonly members: readonly Member<T>[];
  readonly #columns: Readonly<Record<Member<T>, Column>>;
  readonly #switches: readonly Member<T>[];

  constructor(columns: Readonly<Record<Member<T>, Column>>) {
    this.#columns = columns;
    this.members = Object.keys(columns) as Member<T>[];
    this.#switches = this.members.filter((member) => columns[member].type === 'switch');
  }

  name(member: Member<T>): string {
    return this.#columns[member].name;
  }

  /** Names of columns with commas between them, for SELECT, INSERT and RETURNING. */
  list(table?: string, members: readonly Member<T>[] = this.members): string {
    return members.map((member) => (table ? `${table}.${this.name(member)}` : this.name(member))).join(', ');
  }

  /** `column = source.column`, for UPDATE. */
  assignments(source: string, members: readonly Member<T>[]): string {
    return members.map((member) => `${this.name(member)} = ${source}.${this.name(member)}`).join(', ');
  }

  /** Array parameters from number `first` on, one for each member, for `unnest`. */
  arrays(first: number, members: readonly Member<T>[] = this.members): string {
    return members.map((member, index) => `$${first + index}::${this.#sqlType(member)}[]`).join(', ');
  }

  /** The values for {@link arrays}. */
  bind(objects: readonly T[], members: readonly Member<T>[] = this.members): string[] {
    return members.map((member) => {
      const { type } = this.#columns[member];
      return arrayLiteral(type, objects, (object) => object[member]);
    });
  }

  /** Parameters from number `first` on, one for each member. */
  scalars(first: number): string {
    return this.members.map((member, index) => `$${first + index}::${this.#sqlType(member)}`).join(', ');
  }

  /** The values for {@link scalars}. */
  bindOne(object: T): unknown[] {
    return this.members.map((member) => {
      const value = object[member];
      const { type } = this.#columns[member];
      if (type === 'switch') return Number(value);
      return type === 'bytes' && typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
    });
  }

  /** Makes the object of the columns of {@link list}, which stand in a row from index `from` on. */
  read(row: Row, from = 0): T {
    const object: Record<string, unknown> = {};
    for (let index = 0; index < this.members.length; index++) {
      const value = row[from + index];
      object[this.members[index]!] = value instanceof Buffer ? value.toString('utf8') : value;
    }
    for (const member of this.#switches) object[member] = object[member] !== 0;
    return object as T;
  }

  #sqlType(member: Member<T>): string {
    const { type } = this.#columns[member];
    if (type === 'switch') return 'bigint';
    return type === 'bytes' ? 'bytea' : type;
  }
}

const text = (name: string): Column => ({ name, type: 'text' });
const bigint = (name: string): Column => ({ name, type: 'bigint' });
const double = (name: string): Column => ({ name, type: 'double precision' });
const bytes = (name: string): Column => ({ name, type: 'bytes' });
const onOff = (name: string): Column => ({ name, type: 'switch' });

export const ALARM = new Shape<Alarm>({
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
  setBy: text('set_by'),
  status: text('status'),
  failureCount: bigint('failure_count'),
  lastError: bytes('last_error'),
  createdAt: bigint('created_at'),
  updatedAt: bigint('updated_at'),
  lastFiredAt: bigint('last_fired_at'),
  fireCount: bigint('fire_count'),
  scheduledFires: bigint('scheduled_fires'),
});

/** What every settled attempt may move. */
export const PROGRESS = [
  'status',
  'failureCount',
  'lastError',
  'updatedAt',
  'lastFiredAt',
  'fireCount',
  'scheduledFires',
] as const satisfies Member<Alarm>[];

/** What is given once and for all. */
const IDENTITY: readonly Member<Alarm>[] = ['id', 'owner', 'kind', 'idempotencyKey', 'createdAt'];

/** What an edit may change besides. */
export const CHANGEABLE: readonly Member<Alarm>[] = ALARM.members.filter((member) => !IDENTITY.includes(member));

export const OCCURRENCE = new Shape<Occurrence>({
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
});

export const ATTEMPT = new Shape<Attempt>({
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
});

export const RECEIPT = new Shape<FireReceipt>({
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
});

export const AGENT_KEY = new Shape<AgentKey>({
  owner: text('owner'),
  label: text('label'),
  publicKey: text('public_key'),
  source: text('source'),
  enrolledAt: bigint('enrolled_at'),
  revokedAt: bigint('revoked_at'),
});

/** A bound on how many of an owner's alarms stand open, and how much is stored. */
export const OWNER = new Shape<{ owner: string; openAtMost: number; storedAlarms: number; storedBytes: number }>({
  owner: text('owner'),
  openAtMost: bigint('open_at_most'),
  storedAlarms: bigint('stored_alarms'),
  storedBytes: bigint('stored_bytes'),
});

/** An alarm's state with the revision that it was read at. */
export type Versioned = { revision: number; state: AlarmState };

/**
 * The columns of a {@link Versioned} of the table `alarms AS a`. One statement reads the alarm and what it owes: both are of
 * the same moment.
 */
export const STATE_COLUMNS = `a.revision, ${ALARM.list('a')}, (
    SELECT json_agg(json_build_array(${OCCURRENCE.list('o')}) ORDER BY o.fire_id)
    FROM occurrences AS o WHERE o.owner = a.owner AND o.alarm_id = a.id
  )`;

export function readState(row: Row): Versioned {
  const occurrences = (row[ALARM.members.length + 1] ?? []) as Row[];
  return {
    revision: row[0] as number,
    state: { alarm: ALARM.read(row, 1), occurrences: occurrences.map((columns) => OCCURRENCE.read(columns)) },
  };
}

/** Converts between rows and domain objects. Statements, reading and binding follow the lists of `columns.ts`. */
import { fireIdOf } from '../../../wire/fire-id.ts';
import type { Alarm, AlarmState, Attempt, Occurrence, OccurrenceSource } from '../../alarm/alarm.ts';
import type { Progress } from '../../alarm/settlement.ts';
import {
  AGENT_KEY_COLUMNS,
  ALARM_COLUMNS,
  ATTEMPT_COLUMNS,
  CALENDAR_FEED_COLUMNS,
  type Columns,
  type ColumnType,
  EVENT_COLUMNS,
  type Member,
  OCCURRENCE_COLUMNS,
  OWNER_COLUMNS,
  TURN_REPORT_COLUMNS,
} from '../columns.ts';
import type { Row } from './statement.ts';

/**
 * An array literal of PostgreSQL (manual, 8.15.2). The client library's own conversion takes twice the time, which is a
 * large part of a batch's cost.
 */
export function arrayLiteral<T>(type: ColumnType, items: readonly T[], pick: (item: T) => unknown): string {
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

/** The mapping of an object to its columns. */
export class Shape<T> {
  readonly members: readonly Member<T>[];
  readonly #columns: Columns<T>;
  readonly #switches: readonly Member<T>[];

  constructor(columns: Columns<T>) {
    this.#columns = columns;
    this.members = Object.keys(columns) as Member<T>[];
    this.#switches = this.members.filter((member) => columns[member].type === 'switch');
  }

  name(member: Member<T>): string {
    return this.#columns[member].name;
  }

  /** Names of the columns that are texts here and bytes in the database. */
  byteColumns(): string[] {
    return Object.values<Columns<T>[Member<T>]>(this.#columns).flatMap(({ name, type }) =>
      type === 'bytes' ? [name] : [],
    );
  }

  /** Comma-separated column names, for SELECT, INSERT and RETURNING. */
  list(table?: string, members: readonly Member<T>[] = this.members): string {
    return members.map((member) => (table ? `${table}.${this.name(member)}` : this.name(member))).join(', ');
  }

  /** `column = source.column`, for UPDATE. */
  assignments(source: string, members: readonly Member<T>[] = this.members): string {
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

  /** Creates the object from the columns of {@link list}, starting at index `from` of a row. */
  read(row: Row, from = 0): T {
    const object: Record<string, unknown> = {};
    for (let index = 0; index < this.members.length; index++) {
      const value = row[from + index];
      const isBytes = typeof value === 'object' && value !== null;
      object[this.members[index]!] = isBytes ? (value as Buffer).toString('utf8') : value;
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

/** Members of an alarm that a settled attempt may change: columns of `progress`. */
const PROGRESS_MEMBERS = [
  'status',
  'failureCount',
  'lastError',
  'updatedAt',
  'lastFiredAt',
  'fireCount',
  'scheduledFires',
] as const satisfies (keyof Progress)[];

const isProgress = (member: string) => PROGRESS_MEMBERS.some((known) => known === member);
const renamed = <T>(columns: Columns<T>, rename: (name: string) => string) =>
  Object.fromEntries(
    Object.entries<Columns<T>[keyof Columns<T>]>(columns).map(([member, { name, type }]) => [
      member,
      { name: rename(name), type },
    ]),
  ) as Columns<T>;
const only = <T, M extends Member<T>>(columns: Columns<T>, isWanted: (member: string) => boolean) =>
  Object.fromEntries(Object.entries(columns).filter(([member]) => isWanted(member))) as Columns<Pick<T, M>>;

type DefinitionMember = Exclude<Member<Alarm>, keyof Progress>;
export const DEFINITION = new Shape(only<Alarm, DefinitionMember>(ALARM_COLUMNS, (member) => !isProgress(member)));
export const PROGRESS = new Shape(only<Alarm, keyof Progress>(ALARM_COLUMNS, isProgress));
/** Those of both tables together, as {@link STATE_COLUMNS} lists them. */
export const ALARM = new Shape({
  ...only<Alarm, DefinitionMember>(ALARM_COLUMNS, (member) => !isProgress(member)),
  ...only<Alarm, keyof Progress>(ALARM_COLUMNS, isProgress),
} as Columns<Alarm>);
export const ALARM_WIDTH = ALARM.members.length;

/** The columns of an alarm: `d` is its definition, `p` its progress. */
export const ALARM_LIST = `${DEFINITION.list('d')}, ${PROGRESS.list('p')}`;

export function readAlarm(row: Row, from: number): Alarm {
  return ALARM.read(row, from);
}

type OwedMember = Exclude<Member<Occurrence>, 'fireId' | 'alarmId' | 'owner' | 'source'>;
const NAMED = new Set(['fireId', 'alarmId', 'owner', 'source']);
/** The columns of a pending occurrence in a row of `progress`. {@link readOccurrence} follows their order. */
export const OWED = new Shape(only<Occurrence, OwedMember>(OCCURRENCE_COLUMNS, (member) => !NAMED.has(member)));
export const OWED_WIDTH = OWED.members.length;
export const NO_OCCURRENCE = nothing(OWED);

/** The pending occurrence in the columns of {@link OWED}, if any. */
export function readOccurrence(
  row: Row,
  from: number,
  owner: string,
  alarmId: string,
  source: OccurrenceSource,
): Occurrence | undefined {
  const scheduledFor = row[from] as number | null;
  if (scheduledFor === null) return undefined;
  return {
    fireId: fireIdOf(alarmId, scheduledFor),
    alarmId,
    owner,
    source,
    scheduledFor,
    nominal: row[from + 1] as number,
    dueAt: row[from + 2] as number | null,
    attempt: row[from + 3] as number,
    missedCount: row[from + 4] as number,
    fence: row[from + 5] as number,
    claimedAt: row[from + 6] as number | null,
    heldReason: row[from + 7] as string | null,
    heldUntil: row[from + 8] as number | null,
    cause: row[from + 9] as string | null,
  };
}

type AttemptMember = Exclude<Member<Attempt>, 'fireId' | 'alarmId' | 'owner'>;
const RECORDED = only<Attempt, AttemptMember>(ATTEMPT_COLUMNS, (member) => !NAMED.has(member));
const lastName = (name: string) => (name === 'error' ? 'last_attempt_error' : name.replace(/^(last_)?/, 'last_'));
/** The columns of an attempt in the ledger, without the key of its alarm. */
export const RECORD = new Shape(RECORDED);
/** The columns of the last attempt in a row of `progress`. */
export const LAST = new Shape(renamed(RECORDED, lastName));
export const NO_ATTEMPT = nothing(LAST);

/** The attempt in the columns of {@link RECORD} or {@link LAST}. */
export function readAttempt(row: Row, from: number, owner: string, alarmId: string): Attempt {
  const { scheduledFor, ...others } = LAST.read(row, from);
  return { fireId: fireIdOf(alarmId, scheduledFor), alarmId, owner, scheduledFor, ...others };
}

export const TURN_REPORT = new Shape(TURN_REPORT_COLUMNS);

export const EVENT = new Shape(EVENT_COLUMNS);

export const CALENDAR_FEED = new Shape(CALENDAR_FEED_COLUMNS);
export const AGENT_KEY = new Shape(AGENT_KEY_COLUMNS);

export const OWNER = new Shape(OWNER_COLUMNS);

function nothing<T>(shape: Shape<T>): T {
  return Object.fromEntries(shape.members.map((member) => [member, null])) as T;
}

/** An alarm's state with what else its row has. */
export type Versioned = {
  /** The revision that it was read at. */
  revision: number;
  /** The edits of the definition so far. */
  edition: number;
  state: AlarmState;
  /** The last attempt. */
  last: Attempt | undefined;
  /** The revisions of the rows of other occurrences, by fire id. */
  triggers: ReadonlyMap<string, number>;
  /** The holders of claimed occurrences, by fire id. */
  holders: ReadonlyMap<string, number>;
};

/**
 * Joins the definition `d` or the progress `p` of an alarm to rows that name it. The bucket is $1. The limit keeps the
 * planner from reading all rows of an owner for each of them, as it may while a table has no statistics.
 */
export const withDefinition = (owner: string, id: string) => `CROSS JOIN LATERAL (
      SELECT * FROM definitions WHERE bucket = $1 AND owner = ${owner} AND id = ${id} LIMIT 1) AS d`;
export const withProgress = (owner: string, id: string) => `CROSS JOIN LATERAL (
      SELECT * FROM progress WHERE bucket = $1 AND owner = ${owner} AND alarm_id = ${id} AND trigger_at = 0 LIMIT 1) AS p`;

/** The rows of an alarm: `d` its definition, `p` its progress. */
export const ALARM_ROWS = `definitions AS d ${withProgress('d.owner', 'd.id')}`;

/**
 * The columns of an alarm of {@link ALARM_ROWS} with its pending occurrences. One statement reads all of them, so they
 * have the same snapshot.
 */
export const STATE_COLUMNS = `p.revision, p.edition, p.holder, ${ALARM_LIST}, ${OWED.list('p')},
    CASE WHEN p.triggers > 0 THEN (
      SELECT json_agg(json_build_array(t.revision, t.holder, ${OWED.list('t')}) ORDER BY t.trigger_at) FROM progress AS t
      WHERE t.bucket = $1 AND t.owner = p.owner AND t.alarm_id = p.alarm_id AND t.trigger_at <> 0) END`;
const ALARM_AT = 3;
const OWED_AT = ALARM_AT + ALARM_WIDTH;
/** Where the columns after {@link STATE_COLUMNS} begin. */
const STATE_WIDTH = OWED_AT + OWED_WIDTH + 1;

/**
 * The bytes that the limits count of a definition: `storedBytes` of `alarm/alarm.ts`. A text of JSON may have escapes
 * that stand for no text of PostgreSQL: without its `\u` it remains JSON, and the number is the same.
 */
export const STORED_BYTES = `1024 + octet_length(wake_message) + COALESCE(octet_length(payload), 0) + octet_length(label)
      + COALESCE(octet_length(options), 0) + CASE WHEN kind = 'event' THEN
        COALESCE((replace(options, '\\u', '/u')::json #>> '{event_state,bytes}')::bigint, 0) ELSE 0 END`;

/** Reads {@link STATE_COLUMNS}, followed by those of {@link LAST} where they were selected. */
export function readState(row: Row): Versioned {
  const alarm = readAlarm(row, ALARM_AT);
  const { owner, id } = alarm;
  const scheduled = readOccurrence(row, OWED_AT, owner, id, 'schedule');
  const occurrences = scheduled ? [scheduled] : [];
  const triggers = new Map<string, number>();
  const holders = new Map<string, number>();
  if (scheduled && row[2] !== null) holders.set(scheduled.fireId, row[2] as number);
  for (const columns of (row[STATE_WIDTH - 1] ?? []) as Row[]) {
    const occurrence = readOccurrence(columns, 2, owner, id, 'trigger')!;
    occurrences.push(occurrence);
    triggers.set(occurrence.fireId, columns[0] as number);
    if (columns[1] !== null) holders.set(occurrence.fireId, columns[1] as number);
  }
  if (triggers.size > 0) occurrences.sort((one, other) => one.scheduledFor - other.scheduledFor);
  return {
    revision: row[0] as number,
    edition: row[1] as number,
    state: { alarm, occurrences },
    last: (row[STATE_WIDTH] ?? null) === null ? undefined : readAttempt(row, STATE_WIDTH, owner, id),
    triggers,
    holders,
  };
}

/**
 * The rows of alarms. A definition is written once and by edits. What a fire changes is one narrow row: the progress,
 * the scheduled occurrence and the last attempt. Other occurrences have rows of their own (`triggers.ts`).
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { Alarm, Attempt, Occurrence, OccurrenceSource } from '../../alarm/alarm.ts';
import type { Progress } from '../../alarm/settlement.ts';
import { ALARM_COLUMNS } from '../columns.ts';
import { addTo } from './claims.ts';
import { prepareQuery, shapeOf, valuesOf } from './statements.ts';

/** Identifies an alarm's rows: its number and its owner's number, and their names. */
export type AlarmLocation = {
  readonly seq: number;
  readonly ownerSeq: number;
  readonly owner: string;
  readonly id: string;
};

/** An alarm with the occurrence of its schedule, without its claim. */
export type StoredAlarm = {
  readonly location: AlarmLocation;
  readonly alarm: Alarm;
  readonly scheduled: Occurrence | undefined;
  /** Whether the row has a last attempt. */
  readonly hasAttempt: boolean;
  /** Whether it has other pending occurrences. */
  readonly hasTriggers: boolean;
};

/** Members of the row that a fire changes. */
const PROGRESS = [
  'status',
  'failureCount',
  'lastError',
  'updatedAt',
  'lastFiredAt',
  'fireCount',
  'scheduledFires',
] as const satisfies (keyof Progress)[];

const isProgress = (member: keyof Alarm) => PROGRESS.some((known) => known === member);
const MEMBERS = Object.keys(ALARM_COLUMNS) as (keyof Alarm)[];
/** The other members: only an edit changes them. */
const DEFINITION = MEMBERS.filter((member) => !isProgress(member));
const namesOf = (members: readonly (keyof Alarm)[]) => members.map((member) => ALARM_COLUMNS[member].name);

/** Columns of an occurrence, in `progress` and in `triggers`, in the order that {@link occurrenceIn} expects. */
const OCCURRENCE_NAMES = [
  ...['scheduled_for', 'nominal', 'due_at', 'attempt', 'fence', 'missed_count', 'held_reason', 'held_until'],
  'cause',
] as const;
export const occurrenceColumns = (table: string) => OCCURRENCE_NAMES.map((name) => `${table}.${name}`).join(', ');

/**
 * Reads an occurrence without its claim.
 *
 * @param from index of its first column in the row
 */
export function occurrenceIn(
  row: readonly SQLOutputValue[],
  from: number,
  { owner, id }: Pick<AlarmLocation, 'owner' | 'id'>,
  source: OccurrenceSource,
): Occurrence {
  const scheduledFor = row[from] as number;
  return {
    fireId: `${id}@${scheduledFor}`,
    alarmId: id,
    owner,
    source,
    scheduledFor,
    nominal: row[from + 1] as number,
    dueAt: row[from + 2] as number | null,
    attempt: row[from + 3] as number,
    missedCount: row[from + 5] as number,
    fence: row[from + 4] as number,
    claimedAt: null,
    heldReason: row[from + 6] as string | null,
    heldUntil: row[from + 7] as number | null,
    cause: row[from + 8] as string | null,
  };
}

/** The values of {@link OCCURRENCE_NAMES}. */
export function occurrenceValues(occurrence: Occurrence | undefined): SQLInputValue[] {
  if (!occurrence) return [null, null, null, null, null, null, null, null, null];
  const { scheduledFor, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil, cause } = occurrence;
  return [scheduledFor, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil, cause];
}

/** Columns of an attempt in the ledger. */
export const ATTEMPT_NAMES = [
  ...['scheduled_for', 'attempt', 'started_at', 'finished_at', 'outcome', 'http_status', 'error', 'missed_count'],
  ...['machine_ready_ms', 'late_because', 'cause'],
];
/** In the row of an alarm's progress. */
export const LAST_ATTEMPT_NAMES = ATTEMPT_NAMES.map((name) =>
  name === 'error' ? 'last_attempt_error' : `last_${name}`,
);
/** `d` is the alarm's definition. */
export const attemptColumns = (table: 'ledger' | 'progress') =>
  ['d.owner', 'd.id', ...(table === 'ledger' ? ATTEMPT_NAMES : LAST_ATTEMPT_NAMES).map((name) => `f.${name}`)].join(
    ', ',
  );

/** Reads a row of {@link attemptColumns}. */
export function attemptIn(row: readonly SQLOutputValue[]): Attempt {
  const [owner, id, at, attempt, startedAt, finishedAt, outcome, httpStatus, error, missedCount, ready, late, cause] =
    row;
  return {
    ...{ fireId: `${id}@${at}`, alarmId: id, owner, scheduledFor: at, attempt, startedAt, finishedAt },
    ...{ outcome, httpStatus, error, missedCount, machineReadyMs: ready, lateBecause: late, cause },
  } as Attempt;
}

/** The values of {@link ATTEMPT_NAMES}. */
export function attemptValues(attempt: Attempt): SQLInputValue[] {
  const { scheduledFor, startedAt, finishedAt, outcome, httpStatus, error, missedCount, machineReadyMs } = attempt;
  return [
    ...[scheduledFor, attempt.attempt, startedAt, finishedAt, outcome, httpStatus, error, missedCount],
    ...[machineReadyMs, attempt.lateBecause, attempt.cause],
  ];
}

/** The status of an alarm that a delivery neither finds nor leaves in it; otherwise `undefined`. */
const asideOf = ({ status }: Alarm) => (status === 'active' || status === 'fired' ? undefined : status);

const ALARM = shapeOf(ALARM_COLUMNS);
const WIDTH = MEMBERS.length;
/** `d` is the definition and `p` the progress. */
const SELECT = `SELECT ${MEMBERS.map((member) => `${isProgress(member) ? 'p' : 'd'}.${ALARM_COLUMNS[member].name}`).join(', ')},
    d.seq, p.owner, p.last_attempt, EXISTS (SELECT 1 FROM triggers AS o WHERE o.alarm = d.seq), ${occurrenceColumns('p')}`;

function readStored(row: readonly SQLOutputValue[]): StoredAlarm {
  const alarm = ALARM.read(row);
  const { owner, id } = alarm;
  return {
    location: { seq: row[WIDTH] as number, ownerSeq: row[WIDTH + 1] as number, owner, id },
    alarm,
    hasAttempt: row[WIDTH + 2] !== null,
    hasTriggers: row[WIDTH + 3] !== 0,
    scheduled: row[WIDTH + 4] === null ? undefined : occurrenceIn(row, WIDTH + 4, alarm, 'schedule'),
  };
}

/** Alarms that deliveries ended are removed from the list of active ones in steps of this many. */
const ENDED_AT_ONCE = 500;

/** @param undo reverts changes in memory when the transaction is rolled back */
export function prepareAlarms(db: DatabaseSync, undo: Undo) {
  const byId = prepareQuery(
    db,
    `${SELECT} FROM definitions AS d CROSS JOIN progress AS p ON p.alarm = d.seq WHERE d.owner = ? AND d.id = ?`,
    readStored,
  );
  const bySeq = prepareQuery(
    db,
    `${SELECT} FROM json_each(?) AS n CROSS JOIN progress AS p ON p.alarm = n.value CROSS JOIN definitions AS d ON d.seq = n.value`,
    readStored,
  );
  const seqOf = prepareQuery(db, 'SELECT seq FROM definitions WHERE owner = ? AND id = ?', ([seq]) => seq as number);
  const marks = (count: number) => Array.from({ length: count }, () => '?').join(', ');
  const assigned = (names: readonly string[]) => names.map((name) => `${name} = ?`).join(', ');
  const COLD = namesOf(DEFINITION);
  const HOT = [...namesOf(PROGRESS), ...OCCURRENCE_NAMES];
  const insertDefinition = db.prepare(`INSERT INTO definitions (${COLD.join(', ')}) VALUES (${marks(COLD.length)})`);
  const insertProgress = db.prepare(
    `INSERT INTO progress (alarm, owner, ${HOT.join(', ')}) VALUES (${marks(HOT.length + 2)})`,
  );
  const writeDefinition = db.prepare(`UPDATE definitions SET ${assigned(COLD)} WHERE seq = ?`);
  const writeProgress = db.prepare(`UPDATE progress SET ${assigned(HOT)} WHERE alarm = ?`);

  const deleteProgress = db.prepare('DELETE FROM progress WHERE alarm = ?');
  const deleteDefinition = db.prepare('DELETE FROM definitions WHERE seq = ?');
  const putAside = db.prepare('INSERT INTO aside (owner, status, kind, id, alarm) VALUES (?, ?, ?, ?, ?)');
  const takeBack = db.prepare('DELETE FROM aside WHERE owner = ? AND status = ? AND kind = ? AND id = ?');
  const activate = db.prepare('INSERT OR IGNORE INTO active (owner, alarm) VALUES (?, ?)');
  // An alarm may be active again by the time at which it leaves the list.
  const deactivate = db.prepare(
    `DELETE FROM active WHERE owner = ?1 AND alarm = ?2
       AND NOT EXISTS (SELECT 1 FROM progress WHERE alarm = ?2 AND status = 'active')`,
  );
  const holdKey = db.prepare('INSERT INTO held_keys (owner, idempotency_key, alarm) VALUES (?, ?, ?)');
  const releaseKey = db.prepare('DELETE FROM held_keys WHERE owner = ? AND idempotency_key = ?');

  /** By owner: alarms that deliveries have ended, and that are still in the list of active ones. */
  const ended = new Map<number, number[]>();

  /** Keeps the lists of alarms by status, and the holders of keys. */
  function listAs(seq: number, ownerSeq: number, before: Alarm | undefined, after: Alarm | undefined): void {
    if (after?.status === 'active' && before?.status !== 'active') activate.run(ownerSeq, seq);
    if (before && after?.status !== 'active') deactivate.run(ownerSeq, seq);
    const [from, to] = [before && asideOf(before), after && asideOf(after)];
    const { owner, id, kind, idempotencyKey } = (before ?? after)!;
    // An edit does not change the kind.
    if (from !== to && from) takeBack.run(owner, from, kind, id);
    if (from !== to && to) putAside.run(owner, to, kind, id, seq);
    if (idempotencyKey === null) return;
    const holds = (alarm: Alarm | undefined) => alarm !== undefined && alarm.status !== 'cancelled';
    if (holds(before) && !holds(after)) releaseKey.run(owner, idempotencyKey);
    if (!holds(before) && holds(after)) holdKey.run(owner, idempotencyKey, seq);
  }

  const cold = (alarm: Alarm) => valuesOf(alarm, DEFINITION);
  const hot = (alarm: Alarm, scheduled: Occurrence | undefined) => [
    ...valuesOf(alarm, PROGRESS),
    ...occurrenceValues(scheduled),
  ];

  return {
    find: (owner: string, id: string): StoredAlarm | undefined => byId.get(owner, id),

    /** The alarms with these row numbers, in their order. One statement takes half of the time of one for each. */
    at: (numbers: readonly number[]): StoredAlarm[] => bySeq.all(JSON.stringify(numbers)),

    /** The row number of an alarm. */
    seqOf: (owner: string, id: string): number | undefined => seqOf.get(owner, id),

    /** @returns its row number */
    insert(alarm: Alarm, ownerSeq: number, scheduled: Occurrence): number {
      const seq = Number(insertDefinition.run(...cold(alarm)).lastInsertRowid);
      insertProgress.run(seq, ownerSeq, ...hot(alarm, scheduled));
      listAs(seq, ownerSeq, undefined, alarm);
      return seq;
    },

    /** Writes the rows of an alarm as far as they changed. */
    update({ location, alarm: before }: StoredAlarm, alarm: Alarm, scheduled: Occurrence | undefined): void {
      const { seq, ownerSeq } = location;
      if (DEFINITION.some((member) => before[member] !== alarm[member])) writeDefinition.run(...cold(alarm), seq);
      writeProgress.run(...hot(alarm, scheduled), seq);
      listAs(seq, ownerSeq, before, alarm);
    },

    /** Deletes an alarm without occurrences. */
    delete({ location: { seq, ownerSeq }, alarm }: StoredAlarm): void {
      listAs(seq, ownerSeq, alarm, undefined);
      deleteProgress.run(seq);
      deleteDefinition.run(seq);
    },

    /** A delivery has ended the alarm: {@link removeEnded} removes it from the list of active ones. */
    endedBy(owner: number, alarm: number): void {
      addTo(ended, owner, alarm);
      undo.note(() => void ended.get(owner)!.pop());
    },

    /** Whether {@link removeEnded} has something to do. */
    hasEnded: () => ended.size > 0,

    /** Removes some ended alarms from the list of active ones, those of one owner together. */
    removeEnded(): void {
      let left = ENDED_AT_ONCE;
      for (const [owner, alarms] of ended) {
        const some = alarms.splice(-left);
        if (alarms.length === 0) ended.delete(owner);
        undo.note(() => ended.set(owner, [...alarms, ...some]));
        for (const alarm of some) deactivate.run(owner, alarm);
        left -= some.length;
        if (left === 0) return;
      }
    },
  };
}

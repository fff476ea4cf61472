/** The rows of alarms: reads them completely, and writes only changed members. */
import type { DatabaseSync } from 'node:sqlite';
import type { Alarm, Occurrence } from '../../alarm/alarm.ts';
import type { Progress } from '../../alarm/settlement.ts';
import { ALARM_COLUMNS, IDENTITY } from '../columns.ts';
import { OCCURRENCE_COLUMN_LIST, occurrenceIn } from './occurrences.ts';
import { prepareInsert, prepareQuery, prepareUpdate, shapeOf } from './statements.ts';

const ALARM = shapeOf(ALARM_COLUMNS);

const TEXTS = ['wakeMessage', 'payload'] as const satisfies (keyof Alarm)[];
/** Members that a settled attempt changes. */
const PROGRESS = [
  'failureCount',
  'lastError',
  'updatedAt',
  'lastFiredAt',
  'fireCount',
  'scheduledFires',
] as const satisfies (keyof Alarm)[];
/** Separate from the progress, because two indexes contain `status`. */
const STATUS = ['status'] as const satisfies (keyof Alarm)[];

const OTHERS: ReadonlySet<string> = new Set([...TEXTS, ...PROGRESS, ...STATUS, ...IDENTITY]);
/** The other members, which only an edit changes. */
const DEFINITION = (Object.keys(ALARM_COLUMNS) as (keyof Alarm)[]).filter((member) => !OTHERS.has(member));

/** The alarm's columns: `a` is its row and `t` its texts. */
const COLUMNS = Object.values(ALARM_COLUMNS)
  .map(({ name }) => (name === 'wake_message' || name === 'payload' ? `t.${name}` : `a.${name}`))
  .join(', ');
const WIDTH = Object.keys(ALARM_COLUMNS).length;

/** An alarm and its row number. */
type Numbered = { seq: number; alarm: Alarm };

export function prepareAlarms(db: DatabaseSync) {
  const byId = prepareQuery<Numbered>(
    db,
    `SELECT ${COLUMNS}, a.seq FROM alarms AS a JOIN alarm_texts AS t USING (seq) WHERE a.owner = ? AND a.id = ?`,
    (row) => ({ alarm: ALARM.read(row), seq: row[WIDTH] as number }),
  );
  const bySeq = prepareQuery(
    db,
    `SELECT ${COLUMNS} FROM alarms AS a JOIN alarm_texts AS t USING (seq) WHERE a.seq = ?`,
    ALARM.read,
  );
  const findWithOccurrence = prepareQuery<{ alarm: Alarm; occurrence: Occurrence; isOnlyOne: boolean }>(
    db,
    `SELECT ${COLUMNS}, ${OCCURRENCE_COLUMN_LIST}, (SELECT count(*) FROM owed WHERE alarm = o.alarm)
     FROM owed AS o CROSS JOIN alarms AS a ON a.seq = o.alarm CROSS JOIN alarm_texts AS t ON t.seq = o.alarm
     WHERE o.alarm = ? AND o.scheduled_for = ?`,
    (row) => {
      const alarm = ALARM.read(row);
      return { alarm, occurrence: occurrenceIn(row, alarm, WIDTH), isOnlyOne: row[row.length - 1] === 1 };
    },
  );
  const seqOf = prepareQuery(db, 'SELECT seq FROM alarms WHERE owner = ? AND id = ?', ([seq]) => seq as number);
  const insertRow = prepareInsert<Alarm>(db, 'alarms', ALARM_COLUMNS, [
    ...IDENTITY,
    ...STATUS,
    ...PROGRESS,
    ...DEFINITION,
  ]);
  const insertTexts = db.prepare('INSERT INTO alarm_texts (seq, wake_message, payload) VALUES (?, ?, ?)');
  const writing = (members: readonly (typeof PROGRESS | typeof STATUS | typeof DEFINITION)[number][]) =>
    prepareUpdate<Alarm>(db, 'alarms', ALARM_COLUMNS, members);
  const advance = db.prepare(
    `UPDATE alarms SET status = ?, failure_count = ?, last_error = ?, updated_at = ?, last_fired_at = ?, fire_count = ?,
       scheduled_fires = ? WHERE seq = ?`,
  );
  const writeProgress = writing(PROGRESS);
  const writeStatus = writing([...STATUS, ...PROGRESS]);
  const writeDefinition = writing(DEFINITION);
  const writeTexts = prepareUpdate<Alarm>(db, 'alarm_texts', ALARM_COLUMNS, TEXTS);

  return {
    find(owner: string, id: string): Numbered | undefined {
      return byId.get(owner, id);
    },

    at(seq: number): Alarm | undefined {
      return bySeq.get(seq);
    },

    /** An alarm with one pending occurrence, without its claim. */
    owing(seq: number, scheduledFor: number): { alarm: Alarm; occurrence: Occurrence; isOnlyOne: boolean } | undefined {
      return findWithOccurrence.get(seq, scheduledFor);
    },

    /** The row number of an alarm. */
    seqOf(owner: string, id: string): number | undefined {
      return seqOf.get(owner, id);
    },

    /**
     * @returns its row number
     */
    insert(alarm: Alarm): number {
      const seq = insertRow(alarm);
      insertTexts.run(seq, alarm.wakeMessage, alarm.payload);
      return seq;
    },

    /** Writes the status and the progress. */
    advance(seq: number, progress: Progress): void {
      const { status, failureCount, lastError, updatedAt, lastFiredAt, fireCount, scheduledFires } = progress;
      advance.run(status, failureCount, lastError, updatedAt, lastFiredAt, fireCount, scheduledFires, seq);
    },

    /**
     * Writes the groups of columns that contain a member of `changed`. Status and progress form one group, because a
     * status seldom changes alone.
     */
    update(seq: number, alarm: Alarm, changed: ReadonlySet<keyof Alarm>): void {
      const touches = (members: readonly (keyof Alarm)[]) => members.some((member) => changed.has(member));
      if (touches(STATUS)) writeStatus(seq, alarm);
      else if (touches(PROGRESS)) writeProgress(seq, alarm);
      if (touches(DEFINITION)) writeDefinition(seq, alarm);
      if (touches(TEXTS)) writeTexts(seq, alarm);
    },
  };
}

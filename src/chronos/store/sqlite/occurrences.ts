/** The rows of pending occurrences. Their claims are kept elsewhere (`leases.ts`) and are joined here. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Occurrence, OccurrenceSource } from '../../alarm/alarm.ts';
import type { Due, DueQueue } from './due-queue.ts';
import { type Leases, withLease } from './leases.ts';
import { prepareQuery } from './statements.ts';

/** Identifies an alarm's rows: its number and its owner's number, and their names. */
export type AlarmLocation = {
  readonly seq: number;
  readonly ownerSeq: number;
  readonly owner: string;
  readonly id: string;
};

/** In the order that {@link occurrenceIn} expects. */
export const OCCURRENCE_COLUMN_LIST =
  'o.scheduled_for, o.source, o.nominal, o.due_at, o.attempt, o.fence, o.missed_count, o.held_reason, o.held_until';

/**
 * @param from index of the first column in the row
 */
export function occurrenceIn(
  row: readonly SQLOutputValue[],
  { owner, id }: Pick<AlarmLocation, 'owner' | 'id'>,
  from = 0,
) {
  const scheduledFor = row[from] as number;
  return {
    fireId: `${id}@${scheduledFor}`,
    alarmId: id,
    owner,
    source: row[from + 1] as OccurrenceSource,
    scheduledFor,
    nominal: row[from + 2] as number,
    dueAt: row[from + 3] as number | null,
    attempt: row[from + 4] as number,
    missedCount: row[from + 6] as number,
    fence: row[from + 5] as number,
    claimedAt: null,
    heldReason: row[from + 7] as string | null,
    heldUntil: row[from + 8] as number | null,
  } satisfies Occurrence;
}

export function prepareOccurrences(db: DatabaseSync, leases: Leases, dueQueue: DueQueue) {
  const ofAlarm = prepareQuery(
    db,
    `SELECT ${OCCURRENCE_COLUMN_LIST} FROM owed AS o WHERE alarm = ? ORDER BY scheduled_for`,
    (row) => row,
  );
  const insert = db.prepare(
    `INSERT INTO owed (alarm, scheduled_for, owner, source, nominal, due_at, attempt, fence, missed_count, held_reason,
       held_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = db.prepare(
    `UPDATE owed SET source = ?, nominal = ?, due_at = ?, attempt = ?, fence = ?, missed_count = ?, held_reason = ?,
       held_until = ? WHERE alarm = ? AND scheduled_for = ?`,
  );
  const remove = db.prepare('DELETE FROM owed WHERE alarm = ? AND scheduled_for = ?');

  /** Its position in the queue; `undefined` while it is parked or claimed. */
  function queueItem({ seq: alarm, ownerSeq: owner }: AlarmLocation, { dueAt, claimedAt, scheduledFor }: Occurrence) {
    return dueAt === null || claimedAt !== null ? undefined : { dueAt, owner, alarm, scheduledFor };
  }

  function move(before: Due | undefined, after: Due | undefined): void {
    if (before) dueQueue.remove(before);
    if (after) dueQueue.add(after);
  }

  return {
    /** All pending occurrences of one alarm, with their claims. */
    of(location: AlarmLocation): Occurrence[] {
      return ofAlarm
        .all(location.seq)
        .map((row) => withLease(occurrenceIn(row, location), leases.at(location.seq, row[0] as number)));
    },

    insert(location: AlarmLocation, occurrence: Occurrence): void {
      const { scheduledFor, source, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil } = occurrence;
      insert.run(
        ...[location.seq, scheduledFor, location.ownerSeq, source, nominal, dueAt],
        ...[attempt, fence, missedCount, heldReason, heldUntil],
      );
      move(undefined, queueItem(location, occurrence));
    },

    /** The claimed occurrence of a row is delivered: the next one of its series, if any, takes its place. */
    replace(location: AlarmLocation, scheduledFor: number, next: Occurrence | null): void {
      remove.run(location.seq, scheduledFor);
      if (next) this.insert(location, next);
    },

    /**
     * @param stored the occurrence as stored, with its claim
     */
    update(location: AlarmLocation, occurrence: Occurrence, stored: Occurrence): void {
      const { scheduledFor, source, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil } = occurrence;
      update.run(
        ...[source, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil],
        ...[location.seq, scheduledFor],
      );
      move(queueItem(location, stored), queueItem(location, occurrence));
    },

    remove(location: AlarmLocation, stored: Occurrence): void {
      remove.run(location.seq, stored.scheduledFor);
      move(queueItem(location, stored), undefined);
    },
  };
}

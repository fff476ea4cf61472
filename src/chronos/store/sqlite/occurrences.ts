/** The occurrences' rows: what is owed. Who holds them stands elsewhere (`leases.ts`), and is joined in here. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Occurrence, OccurrenceSource } from '../../alarm/alarm.ts';
import { type Leases, withLease } from './leases.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** Where an alarm stands: its number and its owner's, and their names. */
export type Place = {
  readonly seq: number;
  readonly ownerSeq: number;
  readonly owner: string;
  readonly id: string;
};

/** Names an occurrence by its row. */
export type OwedKey = { alarm: number; scheduledFor: number };

/** In the order in which {@link occurrenceIn} expects them. */
export const OWED_COLUMNS =
  'o.scheduled_for, o.source, o.nominal, o.due_at, o.attempt, o.fence, o.missed_count, o.held_reason, o.held_until';

/** @param from where the columns begin in the row */
export function occurrenceIn(row: readonly SQLOutputValue[], { owner, id }: Pick<Place, 'owner' | 'id'>, from = 0) {
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
    leaseUntil: null,
    claimedAt: null,
    heldReason: row[from + 7] as string | null,
    heldUntil: row[from + 8] as number | null,
  } satisfies Occurrence;
}

/** What may be tried next of an owner, in the order of falling due. */
export type DueKey = OwedKey & { dueAt: number };

export function prepareOccurrences(db: DatabaseSync, leases: Leases) {
  const ofAlarm = prepareQuery(
    db,
    `SELECT ${OWED_COLUMNS} FROM owed AS o WHERE alarm = ? ORDER BY scheduled_for`,
    (row) => row,
  );
  const due = prepareQuery<DueKey>(
    db,
    `SELECT due_at, alarm, scheduled_for FROM owed INDEXED BY owed_due
     WHERE owner = ? AND due_at IS NOT NULL ORDER BY due_at, alarm, scheduled_for ${LIMIT}`,
    ([dueAt, alarm, scheduledFor]) => ({ dueAt, alarm, scheduledFor }) as DueKey,
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

  return {
    /** Everything one alarm owes, and who holds it. */
    of(place: Place): Occurrence[] {
      return ofAlarm
        .all(place.seq)
        .map((row) => withLease(occurrenceIn(row, place), leases.at(place.seq, row[0] as number)));
    },

    /** What one owner is owed and nobody holds, earliest due first. */
    free(owner: number, limit: number): DueKey[] {
      const held = leases.ofOwner(owner);
      if (held.length === 0) return due.all(owner, limit);
      const found = due
        .all(owner, limit + held.length)
        .filter(({ alarm, scheduledFor }) => !leases.at(alarm, scheduledFor));
      return found.length > limit ? found.slice(0, limit) : found;
    },

    insert(place: Place, occurrence: Occurrence): void {
      const { scheduledFor, source, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil } = occurrence;
      insert.run(
        ...[place.seq, scheduledFor, place.ownerSeq, source, nominal, dueAt],
        ...[attempt, fence, missedCount, heldReason, heldUntil],
      );
    },

    update(place: Place, occurrence: Occurrence): void {
      const { scheduledFor, source, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil } = occurrence;
      update.run(
        ...[source, nominal, dueAt, attempt, fence, missedCount, heldReason, heldUntil],
        ...[place.seq, scheduledFor],
      );
    },

    remove(place: Place, { scheduledFor }: Occurrence): void {
      remove.run(place.seq, scheduledFor);
    },
  };
}

/** Reports changes: one process owns the file and makes every change, so they are noted in their transaction. */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import { TURN_REPORT_COLUMNS } from '../columns.ts';
import type { Difference } from '../difference.ts';
import {
  type AlarmTimes,
  alarmChanges,
  attemptChange,
  type Follower,
  reportChange,
  type StoredChange,
} from '../stored-change.ts';
import { attemptColumns, attemptIn } from './alarms.ts';
import { prepareQuery, shapeOf } from './statements.ts';

/** Rows that one call of {@link prepareChangesSince} may read of each table. */
const ROWS_READ = 5000;

/** Changes of the current transaction, and their readers. It costs nothing for owners without a reader. */
export class Changes {
  readonly #undo: Undo;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #followers = new Set<Follower>();
  #noted: StoredChange[] = [];

  constructor(undo: Undo, clock: Pick<Clock, 'now'>) {
    this.#undo = undo;
    this.#clock = clock;
  }

  /** Whether a reader follows the owner. */
  isFollowed(owner: string): boolean {
    for (const { owners } of this.#followers) if (owners.has(owner)) return true;
    return false;
  }

  /** Notes a change in its transaction. */
  note(change: StoredChange): void {
    if (!this.isFollowed(change.owner)) return;
    this.#noted.push(change);
    this.#undo.note(() => void this.#noted.pop());
  }

  /**
   * Notes the changes of a transition.
   *
   * @param isByOwner whether the owner requested it; otherwise an attempt ended, which may pause the alarm
   */
  noteTransition(before: AlarmState, { alarm }: AlarmState, difference: Difference, isByOwner: boolean): void {
    const { owner, id: alarmId } = alarm;
    if (!this.isFollowed(owner)) return;
    const pauses = alarm.status === 'paused' && before.alarm.status !== 'paused';
    // What chronosd remembers of an alarm, such as its waiting events, is no edit.
    const isEdit = difference.alarm.size > Number(difference.alarm.has('options'));
    if ((isByOwner || pauses) && isEdit) {
      const isCancelled = alarm.status === 'cancelled' && before.alarm.status !== 'cancelled';
      this.note({ kind: isCancelled ? 'cancelled' : 'edited', owner, alarmId, at: alarm.updatedAt });
    }
    for (const { fireId, heldReason: reason, heldUntil: until } of difference.changed) {
      if (reason === null || until === null) continue;
      if (before.occurrences.some((was) => was.fireId === fireId && was.heldUntil === until)) continue;
      this.note({ kind: 'deferred', owner, alarmId, at: this.#clock.now(), fireId, until, reason });
    }
  }

  /** The transaction is on disk. */
  committed(): void {
    if (this.#noted.length === 0) return;
    const noted = this.#noted;
    this.#noted = [];
    for (const { owners, onChanges } of this.#followers) {
      const own = noted.filter(({ owner }) => owners.has(owner));
      if (own.length > 0) onChanges(own);
    }
  }

  follow(follower: Follower) {
    this.#followers.add(follower);
    return { refresh: async () => {}, end: () => void this.#followers.delete(follower) };
  }

  close(): void {
    for (const { onClosed } of [...this.#followers]) onClosed();
    this.#followers.clear();
  }
}

const TURN_REPORT = shapeOf(TURN_REPORT_COLUMNS);

export function prepareChangesSince(db: DatabaseSync) {
  const count = (table: string, index: string, column: string) =>
    prepareQuery(
      db,
      `SELECT count(*) FROM (SELECT 1 FROM ${table} INDEXED BY ${index} WHERE ${column} >= ? LIMIT ${ROWS_READ})`,
      ([rows]) => rows as number,
    );
  const attemptCount = count('ledger', 'ledger_by_age', 'finished_at');
  const reportCount = count('fire_receipts', 'fire_receipts_by_age', 'recorded_at');
  const displaced = prepareQuery(
    db,
    `SELECT ${attemptColumns('ledger')} FROM ledger AS f INDEXED BY ledger_by_age CROSS JOIN definitions AS d ON d.seq = f.alarm
     WHERE f.finished_at >= ? AND d.owner = ?`,
    attemptIn,
  );
  const last = prepareQuery(
    db,
    `SELECT ${attemptColumns('progress')} FROM definitions AS d CROSS JOIN progress AS f ON f.alarm = d.seq
     WHERE d.owner = ? AND f.last_finished_at >= ?`,
    attemptIn,
  );
  const reports = prepareQuery(
    db,
    `SELECT ${TURN_REPORT.columns} FROM fire_receipts INDEXED BY fire_receipts_by_age
     WHERE recorded_at >= ? AND owner = ?`,
    TURN_REPORT.read,
  );
  const alarms = prepareQuery<AlarmTimes>(
    db,
    `SELECT owner, id, status, created_at, updated_at FROM alarms WHERE owner = ?
     ORDER BY id DESC LIMIT ${ROWS_READ}`,
    ([owner, id, status, createdAt, updatedAt]) => ({ owner, id, status, createdAt, updatedAt }) as AlarmTimes,
  );

  return (owner: string, since: number): StoredChange[] | undefined => {
    if (attemptCount.get(since)! >= ROWS_READ || reportCount.get(since)! >= ROWS_READ) return undefined;
    const known = alarms.all(owner);
    if (known.length >= ROWS_READ) return undefined;
    return [
      ...known.flatMap((alarm) => alarmChanges(alarm, since)),
      ...[...displaced.all(since, owner), ...last.all(owner, since)].map(attemptChange),
      ...reports.all(since, owner).map(reportChange),
    ].sort((one, other) => one.at - other.at);
  };
}

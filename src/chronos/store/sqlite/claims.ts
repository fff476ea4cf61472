/**
 * Claims. One process owns the file, so claims are kept and looked up in memory, and none ends by itself. Their rows are
 * for the next process, which finds interrupted attempts in them.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { Occurrence } from '../../alarm/alarm.ts';
import type { Claim, ClaimKey } from '../store.ts';
import { prepareQuery } from './statements.ts';

/** A claimed occurrence. */
export type ClaimRow = {
  /** `alarms.seq` and `owners.seq`. */
  readonly alarm: number;
  readonly owner: number;
  readonly scheduledFor: number;
  readonly key: Omit<ClaimKey, 'fence'>;
  readonly attempt: number;
  readonly fence: number;
  readonly claimedAt: number;
  /** The alarm had an attempt before. */
  readonly hasAttempt: boolean;
  /** Nothing of the alarm has changed since the claim, and it had no other pending occurrence then. */
  isUntouched: boolean;
  /** As the dispatcher has it; `null` where an earlier process claimed. */
  readonly claim: Claim | null;
};

export type Claims = ReturnType<typeof prepareClaims>;

/** Adds a value to the list under a key of a map. */
export function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Removes a value from the list under a key. */
function takeFrom<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const rest = lists.get(key)!.filter((other) => other !== value);
  if (rest.length > 0) lists.set(key, rest);
  else lists.delete(key);
}

const NONE: readonly ClaimRow[] = [];

/**
 * @param undo reverts changes in memory when the transaction is rolled back
 */
export function prepareClaims(db: DatabaseSync, undo: Undo) {
  const stored = prepareQuery<ClaimRow>(
    db,
    `SELECT l.alarm, l.scheduled_for, l.attempt, l.fence, l.claimed_at, w.seq, a.owner, a.id
     FROM claims AS l JOIN definitions AS a ON a.seq = l.alarm JOIN owners AS w ON w.owner = a.owner`,
    ([alarm, scheduledFor, attempt, fence, claimedAt, owner, name, alarmId]) =>
      ({
        ...{ alarm, owner, scheduledFor, attempt, fence, claimedAt },
        ...{ hasAttempt: true, isUntouched: false, claim: null },
        key: { owner: name, alarmId, fireId: `${alarmId}@${scheduledFor}` },
      }) as ClaimRow,
  );
  const insert = db.prepare(
    'INSERT INTO claims (alarm, scheduled_for, attempt, fence, claimed_at) VALUES (?, ?, ?, ?, ?)',
  );
  const remove = db.prepare('DELETE FROM claims WHERE alarm = ? AND scheduled_for = ?');

  const byFire = new Map<string, ClaimRow>();
  const byAlarm = new Map<number, ClaimRow[]>();
  const nameOf = ({ owner, fireId }: Pick<ClaimKey, 'owner' | 'fireId'>) => `${fireId}\n${owner}`;

  const remember = (row: ClaimRow) => {
    byFire.set(nameOf(row.key), row);
    addTo(byAlarm, row.alarm, row);
  };
  const forget = (row: ClaimRow) => {
    byFire.delete(nameOf(row.key));
    takeFrom(byAlarm, row.alarm, row);
  };
  for (const row of stored.all()) remember(row);

  const at = (alarm: number, scheduledFor: number) =>
    byAlarm.get(alarm)?.find((row) => row.scheduledFor === scheduledFor);

  function end(row: ClaimRow): void {
    remove.run(row.alarm, row.scheduledFor);
    forget(row);
    undo.note(() => remember(row));
  }

  return {
    /** The row of one occurrence of an alarm. */
    at,

    /** The row with this key; `undefined` where it was lost. */
    find(key: ClaimKey): ClaimRow | undefined {
      const row = byFire.get(nameOf(key));
      return row?.fence === key.fence && row.key.alarmId === key.alarmId ? row : undefined;
    },

    /** The row of a claim, while it lasts and nothing of its alarm has changed. */
    untouched(claim: Claim): ClaimRow | undefined {
      const row = byFire.get(nameOf(claim.occurrence));
      return row?.claim === claim && row.isUntouched ? row : undefined;
    },

    /** All claims, the earliest first. */
    all: () => [...byFire.values()].sort((one, other) => one.claimedAt - other.claimedAt),

    take(row: ClaimRow): void {
      const { alarm, scheduledFor, attempt, fence, claimedAt } = row;
      insert.run(alarm, scheduledFor, attempt, fence, claimedAt);
      remember(row);
      undo.note(() => forget(row));
    },

    /** Removes the row, if there is one. Call it after its occurrence has been written. */
    release(alarm: number, scheduledFor: number): void {
      const row = at(alarm, scheduledFor);
      if (row) end(row);
    },

    end,

    /** Call it with every change of an alarm or of its occurrences. */
    changed(alarm: number): void {
      for (const row of byAlarm.get(alarm) ?? NONE) row.isUntouched = false;
    },
  };
}

/** The occurrence with the members of its claim. */
export function withClaim(occurrence: Occurrence, row: ClaimRow | undefined): Occurrence {
  if (!row) return occurrence;
  const { attempt, fence, claimedAt } = row;
  return { ...occurrence, attempt, fence, claimedAt };
}

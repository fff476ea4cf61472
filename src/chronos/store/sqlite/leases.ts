/**
 * Claims. One process owns the file, so claims are kept and looked up in memory, and none ends by itself. Their rows are
 * for the next process, which finds interrupted attempts in them.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { Occurrence } from '../../alarm/alarm.ts';
import type { Claim, LeaseKey } from '../store.ts';
import { prepareQuery } from './statements.ts';

/** A claimed occurrence. */
export type Lease = {
  /** `alarms.seq` and `owners.seq`. */
  readonly alarm: number;
  readonly owner: number;
  readonly scheduledFor: number;
  readonly key: Omit<LeaseKey, 'fence'>;
  readonly attempt: number;
  readonly fence: number;
  readonly claimedAt: number;
  /** The alarm had an attempt before. */
  readonly hasAttempt: boolean;
  /** Nothing of the alarm has changed since the claim, and it had no other pending occurrence then. */
  isUntouched: boolean;
  isReleased: boolean;
};

export type Leases = ReturnType<typeof prepareLeases>;

/** Adds a value to the list under a key of a map. */
function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
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

const NONE: readonly Lease[] = [];

/**
 * @param undo reverts changes in memory when the transaction is rolled back
 */
export function prepareLeases(db: DatabaseSync, undo: Undo) {
  const stored = prepareQuery<Lease>(
    db,
    `SELECT l.alarm, l.scheduled_for, l.attempt, l.fence, l.claimed_at, w.seq, a.owner, a.id
     FROM claims AS l JOIN definitions AS a ON a.seq = l.alarm JOIN owners AS w ON w.owner = a.owner`,
    ([alarm, scheduledFor, attempt, fence, claimedAt, owner, name, alarmId]) =>
      ({
        ...{ alarm, owner, scheduledFor, attempt, fence, claimedAt },
        ...{ hasAttempt: true, isUntouched: false, isReleased: false },
        key: { owner: name, alarmId, fireId: `${alarmId}@${scheduledFor}` },
      }) as Lease,
  );
  const insert = db.prepare(
    'INSERT INTO claims (alarm, scheduled_for, attempt, fence, claimed_at) VALUES (?, ?, ?, ?, ?)',
  );
  const remove = db.prepare('DELETE FROM claims WHERE alarm = ? AND scheduled_for = ?');

  const byFire = new Map<string, Lease>();
  const byClaim = new WeakMap<Claim, Lease>();
  const byAlarm = new Map<number, Lease[]>();
  const nameOf = ({ owner, fireId }: Pick<LeaseKey, 'owner' | 'fireId'>) => `${fireId}\n${owner}`;

  const remember = (lease: Lease) => {
    lease.isReleased = false;
    byFire.set(nameOf(lease.key), lease);
    addTo(byAlarm, lease.alarm, lease);
  };
  const forget = (lease: Lease) => {
    lease.isReleased = true;
    byFire.delete(nameOf(lease.key));
    takeFrom(byAlarm, lease.alarm, lease);
  };
  for (const lease of stored.all()) remember(lease);

  const at = (alarm: number, scheduledFor: number) =>
    byAlarm.get(alarm)?.find((lease) => lease.scheduledFor === scheduledFor);

  function end(lease: Lease): void {
    remove.run(lease.alarm, lease.scheduledFor);
    forget(lease);
    undo.note(() => remember(lease));
  }

  return {
    /** The lease of one occurrence of an alarm. */
    at,

    /** The lease with this key; `undefined` where it was lost. */
    find(key: LeaseKey): Lease | undefined {
      const lease = byFire.get(nameOf(key));
      return lease?.fence === key.fence && lease.key.alarmId === key.alarmId ? lease : undefined;
    },

    /** The lease of a claim, while it lasts and nothing of its alarm has changed. */
    untouched(claim: Claim): Lease | undefined {
      const lease = byClaim.get(claim);
      return lease?.isUntouched && !lease.isReleased ? lease : undefined;
    },

    /** All claims, the earliest first. */
    all: () => [...byFire.values()].sort((one, other) => one.claimedAt - other.claimedAt),

    take(lease: Lease, claim: Claim): void {
      const { alarm, scheduledFor, attempt, fence, claimedAt } = lease;
      insert.run(alarm, scheduledFor, attempt, fence, claimedAt);
      remember(lease);
      byClaim.set(claim, lease);
      undo.note(() => forget(lease));
    },

    /** Removes the lease, if there is one. Call it after its occurrence has been written. */
    release(alarm: number, scheduledFor: number): void {
      const lease = at(alarm, scheduledFor);
      if (lease) end(lease);
    },

    end,

    /** Call it with every change of an alarm or of its occurrences. */
    changed(alarm: number): void {
      for (const lease of byAlarm.get(alarm) ?? NONE) lease.isUntouched = false;
    },
  };
}

/** The occurrence with the members of its claim. */
export function withLease(occurrence: Occurrence, lease: Lease | undefined): Occurrence {
  if (!lease) return occurrence;
  const { attempt, fence, claimedAt } = lease;
  return { ...occurrence, attempt, fence, claimedAt };
}

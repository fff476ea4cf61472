/**
 * Who holds what. The file has one owner, so what is held is known in memory and looked up there; the rows are for the
 * next process, which learns from them what was interrupted.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/undo.ts';
import type { Alarm, Occurrence } from '../../alarm/alarm.ts';
import type { LeaseKey } from '../store.ts';
import { prepareQuery } from './statements.ts';

/** An occurrence that is held. */
export type Lease = {
  /** `alarms.seq` and `owners.seq`. */
  readonly alarm: number;
  readonly owner: number;
  readonly scheduledFor: number;
  readonly key: Omit<LeaseKey, 'fence'>;
  readonly attempt: number;
  readonly fence: number;
  readonly claimedAt: number;
  leaseUntil: number;
  /** The alarm as it stands in its row, where that is known: forgotten with every change of it. */
  row: Alarm | undefined;
};

export type Leases = ReturnType<typeof prepareLeases>;

/** Adds something to a list that a map keeps under a key. */
function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Takes it out again. */
function takeFrom<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const rest = lists.get(key)!.filter((other) => other !== value);
  if (rest.length > 0) lists.set(key, rest);
  else lists.delete(key);
}

const NONE: readonly Lease[] = [];

/** @param undo what is done in memory is undone with the rows */
export function prepareLeases(db: DatabaseSync, undo: Undo) {
  const kept = prepareQuery<Lease>(
    db,
    `SELECT l.alarm, l.scheduled_for, l.attempt, l.fence, l.lease_until, l.claimed_at, w.seq, a.owner, a.id
     FROM leases AS l JOIN alarms AS a ON a.seq = l.alarm JOIN owners AS w ON w.owner = a.owner`,
    ([alarm, scheduledFor, attempt, fence, leaseUntil, claimedAt, owner, name, alarmId]) =>
      ({
        ...{ alarm, owner, scheduledFor, attempt, fence, claimedAt, leaseUntil, row: undefined },
        key: { owner: name, alarmId, fireId: `${alarmId}@${scheduledFor}` },
      }) as Lease,
  );
  const insert = db.prepare(
    'INSERT INTO leases (alarm, scheduled_for, attempt, fence, lease_until, claimed_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const extend = db.prepare('UPDATE leases SET lease_until = ? WHERE alarm = ? AND scheduled_for = ?');
  const remove = db.prepare('DELETE FROM leases WHERE alarm = ? AND scheduled_for = ?');

  const byFire = new Map<string, Lease>();
  const byAlarm = new Map<number, Lease[]>();
  const nameOf = ({ owner, fireId }: Pick<LeaseKey, 'owner' | 'fireId'>) => `${fireId}\n${owner}`;

  const remember = (lease: Lease) => {
    byFire.set(nameOf(lease.key), lease);
    addTo(byAlarm, lease.alarm, lease);
  };
  const forget = (lease: Lease) => {
    byFire.delete(nameOf(lease.key));
    takeFrom(byAlarm, lease.alarm, lease);
  };
  for (const lease of kept.all()) remember(lease);

  const at = (alarm: number, scheduledFor: number) =>
    byAlarm.get(alarm)?.find((lease) => lease.scheduledFor === scheduledFor);

  return {
    /** The lease on one occurrence of an alarm. */
    at,

    /** The lease with this key; `undefined` where it was lost. */
    held(key: LeaseKey): Lease | undefined {
      const lease = byFire.get(nameOf(key));
      return lease?.fence === key.fence && lease.key.alarmId === key.alarmId ? lease : undefined;
    },

    /** All of them. */
    all: () => byFire.values(),

    /** Those that end at or before an instant, first to end first. */
    until(instant: number): Lease[] {
      const ending: Lease[] = [];
      for (const lease of byFire.values()) if (lease.leaseUntil <= instant) ending.push(lease);
      return ending.sort((one, other) => one.leaseUntil - other.leaseUntil);
    },

    take(lease: Lease): void {
      const { alarm, scheduledFor, attempt, fence, leaseUntil, claimedAt } = lease;
      insert.run(alarm, scheduledFor, attempt, fence, leaseUntil, claimedAt);
      remember(lease);
      undo.note(() => forget(lease));
    },

    extend(lease: Lease, leaseUntil: number): void {
      extend.run(leaseUntil, lease.alarm, lease.scheduledFor);
      const before = lease.leaseUntil;
      lease.leaseUntil = leaseUntil;
      undo.note(() => {
        lease.leaseUntil = before;
      });
    },

    /** Takes the lease off; nothing happens where there is none. To be called once its occurrence has been written. */
    release(alarm: number, scheduledFor: number): void {
      const lease = at(alarm, scheduledFor);
      if (!lease) return;
      remove.run(alarm, scheduledFor);
      forget(lease);
      undo.note(() => remember(lease));
    },

    /** To be called with every change of an alarm's row. */
    changed(alarm: number): void {
      for (const lease of byAlarm.get(alarm) ?? NONE) lease.row = undefined;
    },
  };
}

/** The occurrence with what its lease says. */
export function withLease(occurrence: Occurrence, lease: Lease | undefined): Occurrence {
  if (!lease) return occurrence;
  const { attempt, fence, leaseUntil, claimedAt } = lease;
  return { ...occurrence, attempt, fence, leaseUntil, claimedAt };
}

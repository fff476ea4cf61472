/** The prepared tables that all operations share, and the reading and writing of one alarm's state across them. */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { Alarm, AlarmState } from '../../alarm/alarm.ts';
import { differenceOf } from '../difference.ts';
import { prepareAlarms } from './alarms.ts';
import { prepareLedger } from './attempts.ts';
import type { Changes } from './changes.ts';
import { prepareDueQueue } from './due-queue.ts';
import { type Lease, prepareLeases } from './leases.ts';
import { type AlarmLocation, prepareOccurrences } from './occurrences.ts';
import { isOpen, prepareOwners } from './owners.ts';

export type Tables = ReturnType<typeof prepareTables>;

/** An alarm as stored, and its row numbers. */
export type Stored = { location: AlarmLocation; state: AlarmState };

/**
 * @param undo reverts the tables' changes in memory when the transaction is rolled back
 */
export function prepareTables(db: DatabaseSync, undo: Undo, changes: Changes, clock: Pick<Clock, 'now'>) {
  const leases = prepareLeases(db, undo);
  const alarms = prepareAlarms(db);
  const dueQueue = prepareDueQueue(db, leases, undo);
  const occurrences = prepareOccurrences(db, leases, dueQueue);
  const ledger = prepareLedger(db, changes);
  const owners = prepareOwners(db, undo);

  function stored(location: AlarmLocation, alarm: Alarm): Stored {
    return { location: location, state: { alarm, occurrences: occurrences.of(location) } };
  }

  return {
    alarms,
    occurrences,
    ledger,
    leases,
    dueQueue,
    owners,

    /** The alarm with its pending occurrences. */
    find(owner: string, alarmId: string): Stored | undefined {
      const found = alarms.find(owner, alarmId);
      return found && stored({ seq: found.seq, ownerSeq: owners.seqOf(owner)!, owner, id: alarmId }, found.alarm);
    },

    /** The alarm of a claim, with all its pending occurrences. */
    ofLease({ alarm: seq, owner: ownerSeq, key: { owner, alarmId: id }, row }: Lease): Stored {
      return stored({ seq, ownerSeq, owner, id }, row ?? alarms.at(seq)!);
    },

    /**
     * Writes a transition's changes, and removes the claim of the settled occurrence. The caller updates the owner's
     * totals.
     *
     * @param wanted the state that the transition returned
     * @param settled the occurrence whose attempt the caller records; the attempt of any other occurrence that is
     *   removed with its claim is recorded here
     * @returns the change in the owner's open alarms: 1, 0 or -1
     */
    write({ location, state }: Stored, wanted: AlarmState, settled?: string): number {
      const difference = differenceOf(state, wanted);
      changes.noteTransition(state, wanted, difference, settled === undefined);
      for (const occurrence of difference.removed) {
        occurrences.remove(location, occurrence);
        leases.release(location.seq, occurrence.scheduledFor);
        if (occurrence.claimedAt !== null && occurrence.fireId !== settled)
          ledger.interrupted(location.seq, occurrence, clock.now());
      }
      for (const occurrence of difference.changed) {
        const was = state.occurrences.find(({ fireId }) => fireId === occurrence.fireId)!;
        occurrences.update(location, occurrence, was);
        if (occurrence.claimedAt === null) leases.release(location.seq, occurrence.scheduledFor);
      }
      for (const occurrence of difference.added) occurrences.insert(location, occurrence);
      if (difference.alarm.size > 0) alarms.update(location.seq, wanted.alarm, difference.alarm);
      leases.changed(location.seq, difference.alarm.size > 0);
      return Number(isOpen(wanted.alarm.status)) - Number(isOpen(state.alarm.status));
    },
  };
}

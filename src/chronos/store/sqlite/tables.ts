/** The prepared tables that the operations share, and how one alarm's state is read and written across them. */
import type { DatabaseSync } from 'node:sqlite';
import type { AlarmState } from '../../alarm/alarm.ts';
import { differenceOf } from '../difference.ts';
import { prepareAlarms } from './alarms.ts';
import { prepareLedger } from './attempts.ts';
import { prepareOccurrences } from './occurrences.ts';
import { isOpen, prepareOwners } from './owners.ts';

export type Tables = ReturnType<typeof prepareTables>;

export function prepareTables(db: DatabaseSync) {
  const alarms = prepareAlarms(db);
  const occurrences = prepareOccurrences(db);
  const ledger = prepareLedger(db);
  const owners = prepareOwners(db);

  return {
    alarms,
    occurrences,
    ledger,
    owners,

    /** The alarm with what it owes. */
    state(owner: string, alarmId: string): AlarmState | undefined {
      const alarm = alarms.find(owner, alarmId);
      return alarm && { alarm, occurrences: occurrences.of(owner, alarmId) };
    },

    /**
     * Writes what a transition changed, and takes the lease off the occurrence that it settled. The owner's row is the
     * caller's to refresh.
     *
     * @param stored the state as it stands in the rows
     * @param wanted the state that the transition returned
     * @param settled the occurrence whose attempt the caller records; any other that goes with its lease on is recorded
     *   here, because nobody else will
     * @returns by how many the owner's open alarms have grown: 1, 0 or -1
     */
    write(stored: AlarmState, wanted: AlarmState, settled?: string): number {
      const difference = differenceOf(stored, wanted);
      for (const occurrence of difference.went) {
        occurrences.remove(occurrence);
        if (occurrence.leaseUntil !== null && occurrence.fireId !== settled) ledger.interrupted(occurrence);
      }
      for (const occurrence of difference.changed) occurrences.update(occurrence);
      for (const occurrence of difference.came) occurrences.insert(occurrence);
      if (difference.alarm.size > 0) alarms.update(wanted.alarm, difference.alarm);
      return Number(isOpen(wanted.alarm.status)) - Number(isOpen(stored.alarm.status));
    },
  };
}

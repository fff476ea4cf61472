/** The prepared tables that all operations share, and the reading and writing of one alarm's state across them. */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { AlarmState, Occurrence } from '../../alarm/alarm.ts';
import { isLook } from '../../alarm/events.ts';
import { differenceOf } from '../difference.ts';
import { type AlarmLocation, prepareAlarms, type StoredAlarm } from './alarms.ts';
import type { Changes } from './changes.ts';
import { type ClaimRow, prepareClaims, withClaim } from './claims.ts';
import { type Due, prepareDueQueue } from './due-queue.ts';
import { prepareLedger } from './ledger.ts';
import { isOpen, prepareOwners } from './owners.ts';
import { prepareTriggers } from './triggers.ts';

export type Tables = ReturnType<typeof prepareTables>;

/** An alarm as stored, with its row numbers and its pending occurrences. */
export type Stored = { readonly row: StoredAlarm; readonly state: AlarmState };

const ofSchedule = ({ source }: Occurrence) => source === 'schedule';

/** Its position in the queue; `undefined` while it is parked or claimed. */
function queueItem({ seq: alarm, ownerSeq: owner }: AlarmLocation, { dueAt, claimedAt, scheduledFor }: Occurrence) {
  return dueAt === null || claimedAt !== null ? undefined : { dueAt, owner, alarm, scheduledFor };
}

const isSame = (one: Due | undefined, other: Due | undefined) =>
  one?.dueAt === other?.dueAt && one?.scheduledFor === other?.scheduledFor;

/**
 * @param undo reverts the tables' changes in memory when the transaction is rolled back
 */
export function prepareTables(db: DatabaseSync, undo: Undo, changes: Changes, clock: Pick<Clock, 'now'>) {
  const claims = prepareClaims(db, undo);
  const alarms = prepareAlarms(db, undo);
  const triggers = prepareTriggers(db);
  const dueQueue = prepareDueQueue(db, claims, undo);
  const ledger = prepareLedger(db, changes);
  const owners = prepareOwners(db, undo);

  function stored(row: StoredAlarm): Stored {
    const { location, alarm, scheduled, hasTriggers } = row;
    const others = hasTriggers ? triggers.of(location) : [];
    const occurrences = (scheduled ? [...others, scheduled] : others)
      .map((occurrence) => withClaim(occurrence, claims.at(location.seq, occurrence.scheduledFor)))
      .sort((one, other) => one.scheduledFor - other.scheduledFor);
    return { row, state: { alarm, occurrences } };
  }

  /** Writes occurrences beside the schedule, and keeps the queue in step with all of them. */
  function writeOccurrences(
    location: AlarmLocation,
    before: readonly Occurrence[],
    after: readonly Occurrence[],
  ): void {
    const left = new Map(before.map((occurrence) => [occurrence.fireId, occurrence]));
    for (const occurrence of after) {
      const was = left.get(occurrence.fireId);
      left.delete(occurrence.fireId);
      if (was === occurrence) continue;
      if (!ofSchedule(occurrence)) triggers.put(location, occurrence);
      else if (was && !ofSchedule(was)) triggers.remove(location, was);
      const [from, to] = [was && queueItem(location, was), queueItem(location, occurrence)];
      if (isSame(from, to)) continue;
      if (from) dueQueue.remove(from);
      if (to) dueQueue.add(to);
    }
    for (const was of left.values()) {
      if (!ofSchedule(was)) triggers.remove(location, was);
      const from = queueItem(location, was);
      if (from) dueQueue.remove(from);
    }
  }

  return {
    alarms,
    triggers,
    ledger,
    claims,
    dueQueue,
    owners,

    /** The alarm with its pending occurrences. */
    find(owner: string, alarmId: string): Stored | undefined {
      const found = alarms.find(owner, alarmId);
      return found && stored(found);
    },

    /** The alarm of a claim, with all its pending occurrences. */
    ofClaim({ alarm: seq }: ClaimRow): Stored {
      return stored(alarms.at([seq])[0]!);
    },

    /** Stores a new alarm. */
    insert(alarm: AlarmState['alarm'], ownerSeq: number, first: Occurrence): void {
      const seq = alarms.insert(alarm, ownerSeq, first);
      const item = queueItem({ seq, ownerSeq, owner: alarm.owner, id: alarm.id }, first);
      if (item) dueQueue.add(item);
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
    write({ row, state }: Stored, wanted: AlarmState, settled?: string): number {
      const { location } = row;
      const difference = differenceOf(state, wanted);
      changes.noteTransition(state, wanted, difference, settled === undefined);
      writeOccurrences(location, state.occurrences, wanted.occurrences);
      const changed = [difference.added, difference.changed, difference.removed].some((those) => those.length > 0);
      if (changed || difference.alarm.size > 0) alarms.update(row, wanted.alarm, wanted.occurrences.find(ofSchedule));
      for (const occurrence of difference.removed) {
        claims.release(location.seq, occurrence.scheduledFor);
        if (occurrence.claimedAt !== null && occurrence.fireId !== settled && !isLook(state.alarm, occurrence))
          ledger.interrupted(location.seq, occurrence, clock.now());
      }
      for (const { claimedAt, scheduledFor } of difference.changed)
        if (claimedAt === null) claims.release(location.seq, scheduledFor);
      claims.changed(location.seq);
      return Number(isOpen(wanted.alarm.status)) - Number(isOpen(state.alarm.status));
    },
  };
}

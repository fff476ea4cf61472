/** Ending leases whose holder is not heard of again: they ran out, or the process that held them is gone. */
import type { Logger } from '../../../kit/log/log.ts';
import type { AlarmState, Occurrence } from '../../alarm/alarm.ts';
import { settleInterrupted } from '../../alarm/settlement.ts';
import { checkTransition, withoutLease } from '../difference.ts';
import type { Tables } from './tables.ts';

export function prepareEndLeases(tables: Tables, log: Logger) {
  /**
   * What the interruption makes of the alarm. One that cannot be settled must not stand in the way of every claim: it loses
   * the lease, stays as it is otherwise, and the log says so.
   */
  function settled(given: AlarmState, fireId: string, now: number): AlarmState {
    try {
      const wanted = settleInterrupted(given, fireId, now);
      checkTransition(given, wanted);
      return wanted;
    } catch (error) {
      log.error(
        { err: error, fire_id: fireId },
        'an interrupted attempt could not be settled; only its lease is ended',
      );
      return given;
    }
  }

  function endLease(held: Occurrence, now: number): void {
    const { owner, alarmId, fireId } = held;
    const stored = tables.state(owner, alarmId)!;
    const opened = tables.write(stored, settled(withoutLease(stored, fireId), fireId, now), fireId);
    tables.ledger.interrupted(held, now);
    tables.owners.refresh(owner, opened);
  }

  return {
    /** Ends every lease that ran out at or before an instant. */
    ranOut(now: number): void {
      for (const held of tables.occurrences.leasedUntil(now)) endLease(held, now);
    },

    /**
     * Ends every lease there is: only the process that owns the file leases, so each belongs to an earlier one, which is gone.
     *
     * @returns how many there were
     */
    ofEarlierOwner(now: number): number {
      const held = tables.occurrences.leasedUntil(Number.MAX_SAFE_INTEGER);
      for (const occurrence of held) endLease(occurrence, now);
      return held.length;
    },
  };
}

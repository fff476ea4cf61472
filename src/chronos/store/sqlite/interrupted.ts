/** Ending leases that ran out: whoever held them was not heard of again. */
import type { Logger } from '../../../log/log.ts';
import type { AlarmState, Occurrence } from '../../alarm/alarm.ts';
import { settleInterrupted } from '../../alarm/settlement.ts';
import { checkTransition, withoutLease } from '../difference.ts';
import type { Tables } from './tables.ts';

export function prepareEndLeases(tables: Tables, log: Logger) {
  /**
   * What the interruption makes of the alarm. One that cannot be settled must not stand in the way of every claim: it loses
   * the lease, stays as it is otherwise, and the log says so.
   */
  function settled(given: AlarmState, fireId: string): AlarmState {
    try {
      const wanted = settleInterrupted(given, fireId);
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

  function endLease(held: Occurrence): void {
    const { owner, alarmId, fireId } = held;
    const stored = tables.state(owner, alarmId)!;
    const opened = tables.write(stored, settled(withoutLease(stored, fireId), fireId), fireId);
    tables.ledger.interrupted(held);
    tables.owners.refresh(owner, opened);
  }

  /** Ends every lease that ran out at or before an instant. */
  return (now: number): void => {
    for (const held of tables.occurrences.leasedUntil(now)) endLease(held);
  };
}

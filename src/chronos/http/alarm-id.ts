/** Ids of alarms: UUIDv7 (RFC 9562), so that they sort by creation. */
import { randomInt } from 'node:crypto';
import { v7 } from 'uuid';

const SEQUENCE_START = 2 ** 31;

/**
 * A source of ids that sort in creation order. Within one millisecond a counter orders them. When the wall clock is set
 * back, the source stays at its latest instant.
 *
 * @returns makes the id of an alarm that is created at `now`, epoch ms
 */
export function createAlarmIds(): (now: number) => string {
  let msecs = Number.NEGATIVE_INFINITY;
  let seq = 0;
  return (now) => {
    if (now > msecs) {
      msecs = now;
      // In the lower half of its 32 bits, so that two replicas rarely share a number and the counter does not overflow.
      seq = randomInt(SEQUENCE_START);
    } else {
      seq++;
    }
    return v7({ msecs, seq });
  };
}

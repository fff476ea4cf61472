/** Ids of alarms: UUIDv7 (RFC 9562), so that they sort by creation. */
import { randomInt } from 'node:crypto';
import { v7 } from 'uuid';

const SEQUENCE_START = 2 ** 31;

/**
 * A source of ids that sort in the order in which they were made: within one millisecond by a counter, and past a wall
 * clock that was put back by staying at the latest instant it has seen.
 *
 * @returns makes the id of an alarm that is created at `now`, epoch ms
 */
export function createAlarmIds(): (now: number) => string {
  let msecs = Number.NEGATIVE_INFINITY;
  let seq = 0;
  return (now) => {
    if (now > msecs) {
      msecs = now;
      // In the lower half of its 32 bits, so that two replicas rarely share a number and none runs out of them.
      seq = randomInt(SEQUENCE_START);
    } else {
      seq++;
    }
    return v7({ msecs, seq });
  };
}

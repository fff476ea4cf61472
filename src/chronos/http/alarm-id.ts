/** Ids of alarms: UUIDv7 (RFC 9562), so that they sort by creation. */
import { randomFillSync, randomInt } from 'node:crypto';
import { v7 } from 'uuid';

const SEQUENCE_START = 2 ** 31;
const BYTES_PER_ID = 16;
/** Random bytes are requested for many ids at a time: a request costs more than the rest of an id. */
const IDS_PER_REQUEST = 512;

/**
 * A source of ids that sort in creation order. Within one millisecond a counter orders them. When the wall clock is set
 * back, the source stays at its latest instant.
 *
 * @returns makes the id of an alarm that is created at `now`, epoch ms
 */
export function createAlarmIds(): (now: number) => string {
  let msecs = Number.NEGATIVE_INFINITY;
  let seq = 0;
  const bytes = new Uint8Array(IDS_PER_REQUEST * BYTES_PER_ID);
  let used = bytes.length;
  const random = () => {
    if (used === bytes.length) {
      randomFillSync(bytes);
      used = 0;
    }
    used += BYTES_PER_ID;
    return bytes.subarray(used - BYTES_PER_ID, used);
  };
  return (now) => {
    if (now > msecs) {
      msecs = now;
      // In the lower half of its 32 bits, so that two replicas rarely share a number and the counter does not overflow.
      seq = randomInt(SEQUENCE_START);
    } else {
      seq++;
    }
    return v7({ msecs, seq, random: random() });
  };
}

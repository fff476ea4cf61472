/** Spreading occurrences that are due in the same instant (`jitter_seconds`, contracts §2). */
import { createHash } from 'node:crypto';

/**
 * How long after its due instant an occurrence may start. A function of the alarm and the occurrence alone, so that every
 * replica and every restart agrees.
 *
 * @param jitterSeconds width of the spread in seconds; 0 means none
 * @returns whole milliseconds in [0, jitterSeconds · 1000)
 */
export function jitterMs(alarmId: string, dueEpochMs: number, jitterSeconds: number): number {
  if (jitterSeconds <= 0) return 0;
  // 32 bits over at most 3.6 million milliseconds: the bias of the scaling is below one in a thousand.
  const draw = createHash('sha256').update(`${alarmId}@${dueEpochMs}`).digest().readUInt32BE(0) / 2 ** 32;
  return Math.floor(draw * jitterSeconds * 1000);
}

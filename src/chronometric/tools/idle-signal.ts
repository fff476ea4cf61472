/** `idle_status`: what the idle time of the operating system says beside the calls of tools. Pure. */

import { isoDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { IdleStatus } from '../../wire/chronometric.ts';
import type { IdleReading } from '../idle/idle.ts';
import { REAL_BREAK_MS } from '../state/state.ts';
import type { Occasion } from './occasion.ts';

/** Below this somebody sits at the machine. */
const AT_MACHINE_MS = 60_000;
/** Without a tool call for so long they do something else there. */
const OUT_OF_TOUCH_MS = 10 * 60_000;

type Signal = IdleStatus['hyperfocus_signal'];

/** Before the first call ever nothing is known of how long they have been out of touch: then they count as in touch. */
function signalOf(idleMs: number, { now, lastCallAt = now }: Occasion): Signal {
  if (idleMs >= REAL_BREAK_MS) return 'distraction_or_break';
  return idleMs < AT_MACHINE_MS && now - lastCallAt >= OUT_OF_TOUCH_MS ? 'hyperfocus_elsewhere' : 'active';
}

/** What is answered without consent, which is a result and not a failure. */
export const NO_CONSENT: IdleStatus = { consent_granted: false, hyperfocus_signal: 'unknown' };

/** @param sampledAt epoch milliseconds */
export function idleStatus(occasion: Occasion, reading: IdleReading, sampledAt: number): IdleStatus {
  if ('unavailable' in reading)
    return { consent_granted: true, hyperfocus_signal: 'unknown', unavailable: reading.unavailable };
  return {
    consent_granted: true,
    os_idle_duration: isoDuration(reading.idleMs),
    hyperfocus_signal: signalOf(reading.idleMs, occasion),
    sampled_at: formatWithOffset(occasion.timezone, sampledAt),
    source: reading.source,
  };
}

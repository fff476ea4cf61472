/** Trying probes in order, each within its time. */
import type { Clock } from '../../kit/clock/clock.ts';
import { orAborted } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type IdleProbe, type IdleReading, PROBE_MS } from './idle.ts';

/** Nobody sits before a machine that was last touched longer ago: such a number is a mistake of whoever gave it. */
const LONGEST_IDLE_MS = 366 * 24 * 3_600_000;

/**
 * Asks one probe after the other until one answers.
 *
 * @param signal ends the asking, when the server stops
 * @returns the first answer that can be believed, or the reasons of all; never rejects
 */
export async function readIdle(
  probes: readonly IdleProbe[],
  clock: Clock,
  signal: AbortSignal = new AbortController().signal,
): Promise<IdleReading> {
  const reasons: string[] = [];
  for (const probe of probes) {
    if (signal.aborted) return { unavailable: 'the server stops' };
    const reading = believed(await attempt(probe, clock, signal));
    if ('idleMs' in reading) return reading;
    reasons.push(`${probe.name}: ${reading.unavailable}`);
  }
  return { unavailable: reasons.join('; ') || 'no probe knows this platform' };
}

async function attempt(probe: IdleProbe, clock: Clock, signal: AbortSignal): Promise<IdleReading> {
  const limit = new AbortController();
  const stop = () => limit.abort(new ReveilleError('unavailable', 'the server stops'));
  signal.addEventListener('abort', stop);
  const cancel = clock.after(PROBE_MS, () =>
    limit.abort(new ReveilleError('unavailable', `no answer within ${PROBE_MS / 1000} s`)),
  );
  try {
    return await orAborted(probe.read(limit.signal), limit.signal);
  } catch (error) {
    // Text that is not ours may carry anything, a sample too.
    if (error instanceof ReveilleError) return { unavailable: error.message };
    return { unavailable: `it failed (${error instanceof Error ? error.name : typeof error})` };
  } finally {
    cancel();
    signal.removeEventListener('abort', stop);
  }
}

/** What a probe understood may still be nonsense: negative, or longer than a year. */
function believed(reading: IdleReading): IdleReading {
  if (!('idleMs' in reading)) return reading;
  const { idleMs, source } = reading;
  if (!Number.isFinite(idleMs)) return { unavailable: 'its answer is not a number' };
  if (idleMs < 0) return { unavailable: 'its answer is negative' };
  if (idleMs > LONGEST_IDLE_MS) return { unavailable: 'its answer is longer than a year' };
  return { idleMs: Math.floor(idleMs), source };
}

/** The entry of this folder. `import()` loads it after the profile's consent; other modules import only its types. */
import { type Clock, orAborted } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type IdleHost, type IdleProbe, type IdleReading, PROBE_MS } from './idle.ts';
import { programHost } from './program-host.ts';

/** A longer idle time is an error of its source. */
const LONGEST_IDLE_MS = 366 * 24 * 3_600_000;

/**
 * Runs one probe after the other until one answers.
 *
 * @param signal stops the probes with the server
 * @returns the first plausible answer, or the reasons of all; never rejects
 */
export async function readIdle(
  probes: readonly IdleProbe[],
  clock: Clock,
  signal: AbortSignal = new AbortController().signal,
): Promise<IdleReading> {
  const reasons: string[] = [];
  for (const probe of probes) {
    if (signal.aborted) return { unavailable: 'the server stops' };
    const reading = plausible(await attempt(probe, clock, signal));
    if ('idleMs' in reading) return reading;
    reasons.push(`${probe.name}: ${reading.unavailable}`);
  }
  return { unavailable: reasons.join('; ') || 'no probe supports this platform' };
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
    // Foreign text may contain a sample.
    if (error instanceof ReveilleError) return { unavailable: error.message };
    return { unavailable: `it failed (${error instanceof Error ? error.name : typeof error})` };
  } finally {
    cancel();
    signal.removeEventListener('abort', stop);
  }
}

/** An answer may be implausible: negative, or longer than a year. */
function plausible(reading: IdleReading): IdleReading {
  if (!('idleMs' in reading)) return reading;
  const { idleMs, source } = reading;
  if (!Number.isFinite(idleMs)) return { unavailable: 'its answer is not a number' };
  if (idleMs < 0) return { unavailable: 'its answer is negative' };
  if (idleMs > LONGEST_IDLE_MS) return { unavailable: 'its answer is longer than a year' };
  return { idleMs: Math.floor(idleMs), source };
}

/** Stores nothing that it reads. */
export type Idle = {
  /**
   * Queries the desktop. The caller checks consent for each call.
   *
   * @param signal stops the query and its program with the server
   * @returns an idle time or the reason why there is none; never rejects
   */
  read(signal?: AbortSignal): Promise<IdleReading>;
};

/** @param environment of the process, from the command line */
export function openIdle(environment: IdleHost['environment'], clock: Clock): Idle {
  const host = programHost(environment);
  let probes: Promise<readonly IdleProbe[]> | undefined;
  return {
    async read(signal) {
      probes ??= probesFor(host, clock);
      return await readIdle(await probes, clock, signal);
    },
  };
}

/** The probes of a platform in order. Loads only these. */
export async function probesFor(host: IdleHost, clock: Clock): Promise<readonly IdleProbe[]> {
  switch (host.platform) {
    case 'linux':
    case 'freebsd':
    case 'openbsd': {
      const { gnomeMutterProbe, kdeProbe, logindProbe, x11Probe } = await import('./linux.ts');
      return [gnomeMutterProbe(host), x11Probe(host), kdeProbe(host), logindProbe(host, clock)];
    }
    case 'darwin':
      return [(await import('./macos.ts')).macosProbe(host)];
    case 'win32': {
      const { loadTickCounts, windowsProbe } = await import('./windows.ts');
      return [windowsProbe(loadTickCounts)];
    }
    default:
      return [];
  }
}

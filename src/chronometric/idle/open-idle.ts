/**
 * The way into this folder. It is imported by `import()` and only once the profile consents; before, no file of the
 * folder but the port's types may be named anywhere.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { readIdle } from './attempt.ts';
import type { IdleHost, IdleProbe, IdleReading } from './idle.ts';
import { programHost } from './program-host.ts';

/** Holds nothing of what it read. */
export type Idle = {
  /**
   * Asks the desktop now. Consent is the caller's business, at each call.
   *
   * @param signal ends the asking and the program that is asked, when the server stops
   * @returns a reading or why there is none; never rejects
   */
  read(signal?: AbortSignal): Promise<IdleReading>;
};

/** @param environment the process's own, from the command line */
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

/** The probes of a platform, in the order in which they are asked. Loads those alone. */
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

/** The entry of this folder. `import()` loads it after the profile's consent; other modules import only its types. */
import type { Clock } from '../../kit/clock/clock.ts';
import { readIdle } from './attempt.ts';
import type { IdleHost, IdleProbe, IdleReading } from './idle.ts';
import { programHost } from './program-host.ts';

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

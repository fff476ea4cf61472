/** The choice of the mechanism that wakes this computer. */
import type { Settings } from '../../wire/settings.ts';
import type { WakeAlarm } from './wake-alarm.ts';

/** The mechanism of this computer; using it shows whether it works. @param name of the service */
export async function wakeAlarm(name: string, environment: Settings, now: () => number): Promise<WakeAlarm> {
  const { platform } = process;
  if (platform === 'linux') return (await import('./wake-linux.ts')).linuxWake({ name, environment, now });
  if (platform === 'darwin' || platform === 'win32')
    return (await import('./wake-elsewhere.ts')).wakeElsewhere(platform, name, environment);
  const problem = `Reveille supports no wake-up of the computer on ${platform}`;
  return { arm: async () => ({ problem }), disarm: async () => {} };
}

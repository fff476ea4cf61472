/** The port to what wakes this computer from its sleep, and the record of what is armed. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ServicePlace } from '../service/place.ts';

/** How long before an alarm is due the computer is woken: its network has to come back. */
export const LEAD_MS = 60_000;

const armedSchema = z.object({
  /** What armed it, as it is called in a sentence. */
  means: z.string(),
  /** When it wakes the computer, epoch milliseconds. */
  at: z.number(),
  /** What may stand in the hardware for it, in seconds by a clock of its own: two while one replaces the other. */
  marks: z.array(z.number()).optional(),
  /** A later wake of somebody else's that had to make room, as the hardware had it. */
  displaced: z.number().optional(),
});
/** A wake that is ours. There is never more than one. */
export type Armed = z.output<typeof armedSchema>;

/** Why a wake is not armed. `behind`: another program's comes first, and will wake the computer anyway. */
export type NotArmed = { readonly problem: string; readonly remedy?: string | undefined; readonly behind?: number };

export type WakeAlarm = {
  /**
   * Arms one wake in the place of ours. A sooner one of somebody else's is left alone. Harmless when it is armed already.
   *
   * @param at epoch milliseconds
   * @param ours what is armed of ours, perhaps by a process before this one
   * @param note told what may be armed from now on, right before it is: who is killed in between leaves no stranger
   */
  arm(at: number, ours: Armed | undefined, note: (armed: Armed) => void): Promise<Armed | NotArmed>;
  /** Takes ours back, and puts back what it displaced. Harmless when it is gone. */
  disarm(ours: Armed): Promise<void>;
};

const recordSchema = z.object({
  /** Of the process that looks after it. */
  pid: z.number(),
  armed: armedSchema.optional(),
  /** It is being armed: whether it can be is not known yet. */
  trying: z.boolean().optional(),
  /** When a wake of somebody else's comes first, epoch milliseconds. */
  behind: z.number().optional(),
  problem: z.string().optional(),
  remedy: z.string().optional(),
  /** Since when the computer is held awake, epoch milliseconds. */
  held_since: z.number().optional(),
  /** Why it cannot be held awake, or not against everything. */
  loose: z.string().optional(),
});
export type WakeRecord = z.output<typeof recordSchema>;

/** Of a service: whether its person wants the computer woken, and what is armed. */
export function wakeFiles({ own }: Pick<ServicePlace, 'own'>) {
  const record = join(own, 'wake.json');
  return {
    /** There where the person wants it; written by `reveille service wake` alone. */
    wanted: join(own, 'wakes-computer'),
    read(): WakeRecord | undefined {
      try {
        const text = readPrivateFile(record);
        return text === undefined ? undefined : recordSchema.safeParse(JSON.parse(text)).data;
      } catch {
        // Unreadable, it says nothing: what is armed by the clock of the hardware shows there.
        return undefined;
      }
    },
    write: (state: WakeRecord) => replacePrivateFile(record, `${JSON.stringify(state)}\n`),
    remove: () => rmSync(record, { force: true }),
  };
}
export type WakeFiles = ReturnType<typeof wakeFiles>;

/** What wakes this computer; whether it can is known when it is tried. @param name of the service */
export async function wakeAlarm(
  name: string,
  environment: Settings,
  now: () => number,
  platform: NodeJS.Platform = process.platform,
): Promise<WakeAlarm> {
  if (platform === 'linux') return (await import('./wake-linux.ts')).linuxWake({ name, environment, now });
  if (platform === 'darwin' || platform === 'win32')
    return (await import('./wake-elsewhere.ts')).wakeElsewhere(platform, name, environment);
  const problem = `on ${platform} Reveille knows of nothing that wakes the computer`;
  return { arm: async () => ({ problem }), disarm: async () => {} };
}

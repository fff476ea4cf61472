/** The interface for waking this computer from sleep, and the record of the armed wake-up. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import type { ServiceFolders } from '../service/folders.ts';

/** Time before an alarm is due at which the computer is woken: its network must reconnect. */
export const LEAD_MS = 60_000;

const armedSchema = z.object({
  /** The mechanism's name in a sentence. */
  means: z.string(),
  /** When it wakes the computer, epoch milliseconds. */
  at: z.number(),
  /** Values that the hardware may have for it, in seconds by its own clock: two during a replacement. */
  marks: z.array(z.number()).optional(),
  /** A later wake-up of another program that was replaced, in the hardware's value. */
  displaced: z.number().optional(),
});
/** Our wake-up. There is at most one. */
export type Armed = z.output<typeof armedSchema>;

/** Why a wake-up is not armed. `behind`: an earlier one of another program will wake the computer. */
export type NotArmed = { readonly problem: string; readonly remedy?: string | undefined; readonly behind?: number };

export type WakeAlarm = {
  /**
   * Arms one wake-up in place of ours. An earlier one of another program stays. Harmless when it is armed already.
   *
   * @param at epoch milliseconds
   * @param ours our armed wake-up, perhaps of an earlier process
   * @param note receives the new values right before they are armed, so that a killed process leaves no unknown one
   */
  arm(at: number, ours: Armed | undefined, note: (armed: Armed) => void): Promise<Armed | NotArmed>;
  /** Removes ours, and restores the one that it replaced. Harmless without one. */
  disarm(ours: Armed): Promise<void>;
};

const recordSchema = z.object({
  /** Process id of the keeper. */
  pid: z.number(),
  armed: armedSchema.optional(),
  /** It is being armed; the result is not known yet. */
  trying: z.boolean().optional(),
  /** The time of another program's earlier wake-up, epoch milliseconds. */
  behind: z.number().optional(),
  problem: z.string().optional(),
  remedy: z.string().optional(),
  /** Since when the computer is kept awake, epoch milliseconds. */
  held_since: z.number().optional(),
  /** Why it is not kept awake, or not fully. */
  loose: z.string().optional(),
});
export type WakeRecord = z.output<typeof recordSchema>;

/** Files of a service: whether the user enabled it, and the armed wake-up. */
export function wakeFiles({ own }: Pick<ServiceFolders, 'own'>) {
  const record = join(own, 'wake.json');
  return {
    /** Exists when enabled; only `reveille service wake` writes it. */
    wanted: join(own, 'wakes-computer'),
    read(): WakeRecord | undefined {
      try {
        const text = readPrivateFile(record);
        return text === undefined ? undefined : recordSchema.safeParse(JSON.parse(text)).data;
      } catch {
        // Unreadable: the hardware's clock shows the armed one.
        return undefined;
      }
    },
    write: (state: WakeRecord) => replacePrivateFile(record, `${JSON.stringify(state)}\n`),
    remove: () => rmSync(record, { force: true }),
  };
}
export type WakeFiles = ReturnType<typeof wakeFiles>;

/** The router's change log of a machine: who changed what and when, without values. */
import { z } from 'zod';
import { MACHINE_STATES } from './machine.ts';
import { wholeNumber } from './settings.ts';

export const MACHINE_CHANGES_MAX = 500;

/** Who made the change: a client with the admin token, the router itself, or the machine's user. */
export const MACHINE_ACTORS = ['admin', 'router', 'person'] as const;
export type MachineActor = (typeof MACHINE_ACTORS)[number];

export const machineChangeSchema = z.object({
  at: z.iso.datetime({ offset: true }),
  actor: z.enum(MACHINE_ACTORS),
  /** `put`, `suspend`, `restore`, `delete`, and others. */
  action: z.string(),
  /** The members that changed: `state`, `spec.url`, `spec.env.NAME`, `token`. */
  fields: z.array(z.string()),
  /** State of the machine after the change. */
  state: z.enum(MACHINE_STATES),
  /** The reason of a change by the router itself. */
  reason: z.string().optional(),
});
export type MachineChangeView = z.infer<typeof machineChangeSchema>;

/** Newest first. */
export const machineChangeListSchema = z.object({
  changes: z.array(machineChangeSchema),
  next_cursor: z.string().optional(),
});
export type MachineChangeList = z.infer<typeof machineChangeListSchema>;

export const machineChangeQuerySchema = z.strictObject({
  limit: wholeNumber(1, MACHINE_CHANGES_MAX).optional(),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, 'must be the next_cursor of an earlier answer, unchanged')
    .transform(Number)
    .optional(),
});

/** Every machine, whatever its provider: its states, and its change log without values (docs/reference/routes.md). */
import { z } from 'zod';
import { LIST_LIMIT_MAX } from './alarm.ts';
import { labelSchema } from './did.ts';
import { positionCursor, wholeNumber } from './settings.ts';

export const MACHINE_STATES = ['active', 'provisioning', 'suspended', 'deleted'] as const;
export type MachineState = (typeof MACHINE_STATES)[number];

/** The query of `GET /admin/machines`; without `state`, deleted machines are omitted. */
export const machineListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  cursor: labelSchema.optional(),
  state: z.enum(MACHINE_STATES).optional(),
});

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
  cursor: positionCursor.optional(),
});

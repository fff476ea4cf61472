/** Properties of every machine, whatever its provider (docs/reference/routes.md). */
import { z } from 'zod';
import { LIST_LIMIT_MAX } from './alarm.ts';
import { labelSchema } from './did.ts';
import { wholeNumber } from './settings.ts';

export const MACHINE_STATES = ['active', 'provisioning', 'suspended', 'deleted'] as const;
export type MachineState = (typeof MACHINE_STATES)[number];

/** The query of `GET /admin/machines`; without `state`, deleted machines are omitted. */
export const machineListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  cursor: labelSchema.optional(),
  state: z.enum(MACHINE_STATES).optional(),
});

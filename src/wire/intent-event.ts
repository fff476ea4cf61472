/** Events of the executor: `GET /events` (docs/reference/api.md, "Events"). */
import { z } from 'zod';
import { intentIdSchema, nodeIdSchema } from './executor.ts';

/**
 * Event types. `intent.attest`: completed. `intent.fail`: failed, denied, unknown, or a clarification is needed.
 * `reset`: events may be missing, so the client reads the state again.
 */
export const INTENT_EVENT_TYPES = [
  'intent.accepted',
  'intent.planned',
  'intent.parked',
  'intent.attest',
  'intent.fail',
  'intent.cancel',
  'gate.invoked',
  'gate.answered',
  'gate.expired',
  'step.started',
  'step.finished',
  'reset',
] as const;
export type IntentEventType = (typeof INTENT_EVENT_TYPES)[number];

/** The data of an event: a hint to read the intent again. */
export const intentEventSchema = z.object({
  type: z.enum(INTENT_EVENT_TYPES),
  /** When it happened; absent in events of the present state. */
  at: z.iso.datetime({ offset: true }).optional(),
  /** Absent only in `reset`. */
  intent_id: intentIdSchema.optional(),
  node_id: nodeIdSchema.optional(),
});
export type IntentEvent = z.infer<typeof intentEventSchema>;

/** The query of the executor's `GET /events`. */
export const intentEventQuerySchema = z.strictObject({
  /** Only this intent's events, which begin with those of its present state. Absent: the events of all intents. */
  intent_id: intentIdSchema.optional(),
});

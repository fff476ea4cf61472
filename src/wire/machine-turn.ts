/** Turns of machines without a daemon, as the router shows them: `GET /admin/machines/{user_id}/turns`. */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { wholeNumber } from './settings.ts';
import { LATE_REASONS } from './wake.ts';

/**
 * `queued` (accepted, not begun) → `running` → `done`, `failed` or `unknown`: it may have run, and what came of it
 * cannot be found out; it is not repeated. `accepted`: the target has it and tells no more.
 */
export const MACHINE_TURN_STATUSES = ['queued', 'running', 'accepted', 'done', 'failed', 'unknown'] as const;
export type MachineTurnStatus = (typeof MACHINE_TURN_STATUSES)[number];

/** Members that do not apply (yet) are absent. */
export const machineTurnViewSchema = z.object({
  id: z.string(),
  conversation_id: z.string(),
  preset: z.string(),
  /** The target's own name for the conversation. */
  session: z.string().optional(),
  status: z.enum(MACHINE_TURN_STATUSES),
  alarm_id: z.string().optional(),
  fire_id: z.string(),
  scheduled_for: z.string(),
  missed_count: z.number(),
  /** Why it was late, where that is known. */
  late_because: z.enum(LATE_REASONS).optional(),
  label: z.string().optional(),
  message: z.string(),
  /** Written as the sender's source text: a reader that needs its digits must not parse it. */
  payload: z.unknown().optional(),
  /** What the agent answered; of a `failed` turn, what it had said by then. */
  reply: z.string().optional(),
  /** Why the turn is `failed` or `unknown`. */
  error: z.string().optional(),
  /** Why a `queued` turn has not begun although its time came, and when it is tried again. */
  waits_for: z.string().optional(),
  next_attempt_at: z.string().optional(),
  /** How often it was tried. */
  attempts: z.number(),
  accepted_at: z.string(),
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
});
export type MachineTurnView = z.infer<typeof machineTurnViewSchema>;

/** The answer: newest first, and how many turns of the machine there are in each state. */
export const machineTurnListSchema = z.object({
  turns: z.array(machineTurnViewSchema),
  counts: z.partialRecord(z.enum(MACHINE_TURN_STATUSES), z.number()),
  next_cursor: z.string().optional(),
});
export type MachineTurnList = z.infer<typeof machineTurnListSchema>;

/** Most turns in one answer: each may carry an answer of 256 KiB. */
export const MACHINE_TURNS_MAX = 100;

export const machineTurnQuerySchema = z.strictObject({
  conversation_id: conversationIdSchema.optional(),
  fire_id: z.string().max(128).optional(),
  status: z.enum(MACHINE_TURN_STATUSES).optional(),
  limit: wholeNumber(1, MACHINE_TURNS_MAX).optional(),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, 'must be the next_cursor of an earlier answer, unchanged')
    .transform(Number)
    .optional(),
});

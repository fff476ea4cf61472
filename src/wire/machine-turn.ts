/** Turns of machines without a daemon, as the router shows them: `GET /admin/machines/{user_id}/turns`. */
import { z } from 'zod';
import { conversationIdSchema } from './alarm.ts';
import { positionCursor, wholeNumber } from './settings.ts';
import { turnUsageSchema } from './usage.ts';
import { LATE_REASONS, turnTermsSchema } from './wake.ts';

/**
 * `queued` (accepted, not started) → `running` → `done`, `failed` or `unknown`. `unknown`: the turn may have run, and
 * its outcome cannot be determined; it is not repeated. `accepted`: the target has the message and reports nothing
 * more.
 */
export const MACHINE_TURN_STATUSES = ['queued', 'running', 'accepted', 'done', 'failed', 'unknown'] as const;
export type MachineTurnStatus = (typeof MACHINE_TURN_STATUSES)[number];

/** Members that do not apply (yet) are absent. */
export const machineTurnViewSchema = z.object({
  id: z.string(),
  conversation_id: z.string(),
  preset: z.string(),
  /** The target's own id of the conversation. */
  session: z.string().optional(),
  status: z.enum(MACHINE_TURN_STATUSES),
  alarm_id: z.string().optional(),
  fire_id: z.string(),
  scheduled_for: z.string(),
  missed_count: z.number(),
  /** Why it was late, if known. */
  late_because: z.enum(LATE_REASONS).optional(),
  label: z.string().optional(),
  /** The model, the only tools and the channels that the alarm names; absent if it names none. */
  terms: turnTermsSchema.optional(),
  message: z.string(),
  /** The sender's source text. Parsing it can lose digits. */
  payload: z.unknown().optional(),
  /** The agent's answer; for a `failed` turn, the part before the failure. */
  reply: z.string().optional(),
  /** Why the turn is `failed` or `unknown`. */
  error: z.string().optional(),
  /** What its models used, as the target reports it; absent if it does not. */
  usage: turnUsageSchema.optional(),
  /** Why a `queued` turn has not started although it was due, and when it is tried again. */
  waits_for: z.string().optional(),
  next_attempt_at: z.string().optional(),
  /** Number of attempts. */
  attempts: z.number(),
  accepted_at: z.string(),
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
});
export type MachineTurnView = z.infer<typeof machineTurnViewSchema>;

/** The answer: newest first, with the number of the machine's turns in each state. */
export const machineTurnListSchema = z.object({
  turns: z.array(machineTurnViewSchema),
  counts: z.partialRecord(z.enum(MACHINE_TURN_STATUSES), z.number()),
  next_cursor: z.string().optional(),
});
export type MachineTurnList = z.infer<typeof machineTurnListSchema>;

/** Maximum of turns in one answer; each may contain a reply of 256 KiB. */
export const MACHINE_TURNS_MAX = 100;

export const machineTurnQuerySchema = z.strictObject({
  conversation_id: conversationIdSchema.optional(),
  fire_id: z.string().max(128).optional(),
  status: z.enum(MACHINE_TURN_STATUSES).optional(),
  limit: wholeNumber(1, MACHINE_TURNS_MAX).optional(),
  cursor: positionCursor.optional(),
});

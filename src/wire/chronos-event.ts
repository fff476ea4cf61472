/** Events of chronosd: `GET /v1/events` (docs/reference/api.md, "Events"). */
import { z } from 'zod';
import { FIRE_OUTCOMES } from './alarm.ts';
import { typeList } from './text.ts';
import { TURN_OUTCOMES } from './turn-report.ts';

/**
 * Event types. `alarm.deferred`: the router deferred a wake. `turn.failed`: the turn failed, or its outcome is unknown;
 * with `retry_at` it is tried again. `reset`: events may be missing, so the client reads the state again.
 */
export const CHRONOS_EVENT_TYPES = [
  'alarm.created',
  'alarm.updated',
  'alarm.cancelled',
  'alarm.deferred',
  'fire.started',
  'fire.delivered',
  'fire.failed',
  'fire.missed',
  'turn.started',
  'turn.finished',
  'turn.failed',
  'reset',
] as const;
export type ChronosEventType = (typeof CHRONOS_EVENT_TYPES)[number];

const instantText = z.iso.datetime({ offset: true });

/** The data of an event. Members that do not apply are absent. */
export const chronosEventSchema = z.object({
  type: z.enum(CHRONOS_EVENT_TYPES),
  /** When it happened. */
  at: instantText,
  /** Absent only in `reset`. */
  alarm_id: z.string().optional(),
  /** The fire; in events of a fire, of its turn, and in `alarm.deferred`. */
  fire_id: z.string().optional(),
  /** The number of the attempt, from 1. */
  attempt: z.int().optional(),
  outcome: z.enum([...FIRE_OUTCOMES, ...TURN_OUTCOMES]).optional(),
  http_status: z.int().optional(),
  error: z.string().optional(),
  /** Of `alarm.deferred`: until when, and why. */
  until: instantText.optional(),
  reason: z.string().optional(),
  turn_id: z.string().optional(),
  conversation_id: z.string().optional(),
  retry_at: instantText.optional(),
  /** Of `turn.finished`: the beginning of the agent's answer. */
  reply: z.string().optional(),
});
export type ChronosEvent = z.infer<typeof chronosEventSchema>;

/** The query of `GET /v1/events`. */
export const chronosEventQuerySchema = z.strictObject({
  /** Only these types, separated by commas; `reset` is always sent. */
  types: typeList(CHRONOS_EVENT_TYPES).optional(),
});

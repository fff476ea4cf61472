/** Events of chronosd: `GET /v1/events` (docs/reference/api.md, "Events"). */
import { z } from 'zod';
import { FIRE_OUTCOMES } from './alarm.ts';
import { wholeNumber } from './settings.ts';
import { typeList } from './text.ts';
import { TURN_OUTCOMES } from './turn-report.ts';
import { turnUsageSchema } from './usage.ts';

/**
 * Event types. `alarm.deferred`: the router deferred a wake. `turn.failed`: the turn failed, or its outcome is unknown;
 * with `retry_at` it is tried again. `reset`: events may be missing, so the client reads the state again. `changed`:
 * events of the named types happened, for a client that asked for merged events.
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
  'fire.skipped',
  'turn.started',
  'turn.finished',
  'turn.failed',
  'changed',
  'reset',
] as const;
export type ChronosEventType = (typeof CHRONOS_EVENT_TYPES)[number];

const instantText = z.iso.datetime({ offset: true });

/** The data of an event. Members that do not apply are absent. */
export const chronosEventSchema = z.object({
  type: z.enum(CHRONOS_EVENT_TYPES),
  /** When it happened. */
  at: instantText,
  /** Absent only in `reset` and `changed`. */
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
  /** Of `turn.finished` and `turn.failed`: what its models used; absent if it is not known. */
  usage: turnUsageSchema.optional(),
  /** Of `changed`: the types of the merged events. */
  types: z.array(z.enum(CHRONOS_EVENT_TYPES)).optional(),
});
export type ChronosEvent = z.infer<typeof chronosEventSchema>;

/** Bounds of `coalesce_ms`. */
const [COALESCE_LEAST_MS, COALESCE_MOST_MS] = [100, 60_000];

/** A `changed` is requested by `coalesce_ms`. */
const NAMED_TYPES = CHRONOS_EVENT_TYPES.filter((type) => type !== 'changed');

/** The query of `GET /v1/events`. */
export const chronosEventQuerySchema = z.strictObject({
  /** Only these types, separated by commas; `reset` is always sent. */
  types: typeList(NAMED_TYPES).optional(),
  /**
   * Merges the events into `changed`: the first 75 ms after a change, then at most one in this time. For a client that
   * reads the state again after any change.
   */
  coalesce_ms: wholeNumber(COALESCE_LEAST_MS, COALESCE_MOST_MS).optional(),
});

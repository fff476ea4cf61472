/** The wake on its way: chronosd → router → daemon (docs/contracts.md §3, §4, §5). */
import { z } from 'zod';
import { conversationIdSchema, setBySchema } from './alarm.ts';
import { labelSchema } from './did.ts';
import { instantSchema } from './instant.ts';
import { RawJson } from './json.ts';
import { verbatimText } from './text.ts';

/** Marks a turn that a timer caused. */
export const WAKE_ORIGIN = 'chronos';

/** Headers of the delivery to a daemon. */
export const WAKE_HEADERS = {
  user: 'x-matrix-user',
  origin: 'x-matrix-wake-origin',
  alarm: 'x-matrix-wake-alarm',
  fire: 'x-matrix-wake-fire',
} as const;

/** The members of a wake or chat body that are kept as source text. */
export const RAW_WAKE_FIELDS = ['payload'] as const;

const FIRE_ID = /^[0-9a-f-]{36}@\d{1,16}$/;
export const fireIdSchema = z.string().regex(FIRE_ID, 'must look like <alarm id>@<due, epoch milliseconds>');
const payload = z.instanceof(RawJson);

/** Travels in a header, so it is visible ASCII; chronosd's are UUIDs. */
const alarmId = z.string().regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 visible ASCII characters');

/**
 * Largest body of a wake and of the delivery to a daemon. More than the 256 KiB of other bodies: a message of that size
 * with all its escapes, a payload of 64 KiB that a later edit added, and the members around them must still get
 * through.
 */
export const WAKE_BODY_MAX_BYTES = (256 + 64 + 8) * 1024;

/** The name of one occurrence of one alarm; the same for every attempt at it. */
export function fireIdOf(alarmId: string, dueEpochMs: number): string {
  return `${alarmId}@${dueEpochMs}`;
}

/** Takes the name of an occurrence apart: one that {@link fireIdSchema} lets pass. */
export function partsOfFireId(fireId: string): { alarmId: string; dueEpochMs: number } {
  const at = fireId.lastIndexOf('@');
  return { alarmId: fireId.slice(0, at), dueEpochMs: Number(fireId.slice(at + 1)) };
}

/**
 * Marks a router's 429 as a hold: the instant, RFC 3339, at which the wake may be tried again. Nothing ran, and nothing
 * failed. A daemon's own answer never carries it.
 */
export const HELD_UNTIL_HEADER = 'x-reveille-held-until';

/**
 * Of the router's answer to a wake: how long after the wake's arrival the machine was ready, in whole milliseconds.
 * Also of a wake that failed after that; never of a target that has no daemon.
 */
export const MACHINE_READY_HEADER = 'x-reveille-machine-ready-ms';

/** What chronosd posts to the router. */
export const wakeRequestSchema = z.strictObject({
  user_id: labelSchema,
  conversation_id: conversationIdSchema.optional(),
  message: verbatimText(256 * 1024),
  payload: payload.optional(),
  alarm_id: alarmId,
  origin: z.literal(WAKE_ORIGIN),
  fire_id: fireIdSchema,
  scheduled_for: instantSchema,
  attempt: z.int().min(1),
  missed_count: z.int().min(0),
  label: z.string().max(200).optional(),
  set_at: instantSchema.optional(),
  /** The person whose words they are; absent: the agent's own. */
  set_by: setBySchema.optional(),
  /** Quiet hours do not hold it back; for the router alone. */
  urgent: z.boolean().optional(),
});
export type WakeRequest = z.output<typeof wakeRequestSchema>;

/** What a daemon accepts on `POST /chat`: a wake, or a message from a person (the members of a wake all absent). */
export const chatRequestSchema = z
  .strictObject({
    message: verbatimText(256 * 1024),
    conversation_id: conversationIdSchema.optional(),
    payload: payload.optional(),
    origin: z.literal(WAKE_ORIGIN).optional(),
    alarm_id: alarmId.optional(),
    fire_id: fireIdSchema.optional(),
    scheduled_for: instantSchema.optional(),
    missed_count: z.int().min(0).optional(),
    label: z.string().max(200).optional(),
    set_at: instantSchema.optional(),
    set_by: setBySchema.optional(),
  })
  .superRefine((body, context) => {
    const wakeMembers = ['alarm_id', 'fire_id', 'scheduled_for'] as const;
    if (body.origin === WAKE_ORIGIN) {
      for (const name of wakeMembers) {
        if (body[name] === undefined)
          context.addIssue({ code: 'custom', path: [name], message: `is required when origin is "${WAKE_ORIGIN}"` });
      }
      return;
    }
    for (const name of [...wakeMembers, 'missed_count', 'label', 'set_at', 'set_by'] as const) {
      if (body[name] !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: `goes only with origin "${WAKE_ORIGIN}"` });
    }
  });
export type ChatRequest = z.output<typeof chatRequestSchema>;

/** A daemon's answer to `POST /chat`: 202 for a new turn, 200 with `deduped` for a known `fire_id`. */
export const chatAcceptedSchema = z.object({ conversation_id: z.string(), turn_id: z.string(), deduped: z.boolean() });
export type ChatAccepted = z.infer<typeof chatAcceptedSchema>;

/** A daemon's answer to `GET /healthz`; anything else that answers 200 counts as alive and never busy. */
export const daemonHealthSchema = z.object({ status: z.string(), busy: z.boolean(), queued: z.int().min(0) });
export type DaemonHealth = z.infer<typeof daemonHealthSchema>;

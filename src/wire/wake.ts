/** The wake on its way: chronosd → router → daemon (docs/contracts.md §3, §4, §5). */
import { z } from 'zod';
import { ABSENCES, conversationIdSchema, setBySchema } from './alarm.ts';
import { labelSchema } from './did.ts';
import { ReveilleError } from './errors.ts';
import { givenFireIdSchema, WAKE_NAME_HEADERS } from './fire-id.ts';
import { instantSchema } from './instant.ts';
import { RawJson } from './json.ts';
import { verbatimText } from './text.ts';

/** Marks a turn that a timer caused. */
export const WAKE_ORIGIN = 'chronos';

/** Members of a body that make it a wake, each alone. */
export const WAKE_MARKS = ['origin', 'alarm_id', 'fire_id', 'scheduled_for'] as const;

/** Headers of the delivery to a daemon. */
export const WAKE_HEADERS = {
  user: 'x-matrix-user',
  origin: 'x-matrix-wake-origin',
  alarm: 'x-matrix-wake-alarm',
  fire: 'x-matrix-wake-fire',
} as const;

/** The members of a wake or chat body that are kept as source text. */
export const RAW_WAKE_FIELDS = ['payload'] as const;

const payload = z.instanceof(RawJson);

/** Why a wake is late: nobody was there, or, as the router says to a daemon, the machine had to start first. */
export const LATE_REASONS = [...ABSENCES, 'machine_start'] as const;
export type LateReason = (typeof LATE_REASONS)[number];
const lateReason = z.enum(LATE_REASONS);

/** Travels in a header, so it is visible ASCII; chronosd's are UUIDs. */
const alarmId = z.string().regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 visible ASCII characters');

/**
 * Largest body of a wake and of the delivery to a daemon. More than the 256 KiB of other bodies: a message of that size
 * with all its escapes, a payload of 64 KiB that a later edit added, and the members around them must still get
 * through.
 */
export const WAKE_BODY_MAX_BYTES = (256 + 64 + 8) * 1024;

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

/**
 * What a scheduler posts to the router. `user_id` and `message` suffice; what is left out is derived
 * (`router/repetitions.ts`).
 */
export const wakeRequestSchema = z.strictObject({
  user_id: labelSchema,
  conversation_id: conversationIdSchema.optional(),
  message: verbatimText(256 * 1024),
  payload: payload.optional(),
  alarm_id: alarmId.optional(),
  origin: z.literal(WAKE_ORIGIN).optional(),
  fire_id: givenFireIdSchema.optional(),
  scheduled_for: instantSchema.optional(),
  attempt: z.int().min(1).optional(),
  missed_count: z.int().min(0).optional(),
  label: z.string().max(200).optional(),
  set_at: instantSchema.optional(),
  /** The person whose words they are; absent: the agent's own. */
  set_by: setBySchema.optional(),
  /** Quiet hours do not hold it back; for the router alone. */
  urgent: z.boolean().optional(),
  /** Why it is late; left out where it is not, or nobody knows. */
  late_because: lateReason.optional(),
});
export type WakeRequest = z.output<typeof wakeRequestSchema>;

/** A wake on its way, with all that its caller may leave out. */
export type Wake = Omit<WakeRequest, Derived> & { [Name in Derived]: NonNullable<WakeRequest[Name]> };
type Derived = 'origin' | 'fire_id' | 'scheduled_for' | 'attempt' | 'missed_count';

/**
 * A wake that has a name.
 *
 * @param arrivedAt when the first of its attempts arrived, epoch milliseconds: it counts as due then unless it says when
 */
export function completeWake(request: WakeRequest, fireId: string, arrivedAt: number): Wake {
  return {
    ...request,
    origin: WAKE_ORIGIN,
    fire_id: fireId,
    scheduled_for: request.scheduled_for ?? arrivedAt,
    attempt: request.attempt ?? 1,
    missed_count: request.missed_count ?? 0,
  };
}

/**
 * What a caller called its wake in a header; `undefined` when it did not.
 *
 * @throws ReveilleError `invalid_request` naming the header and what is allowed
 */
export function givenName(header: (name: string) => string | undefined): string | undefined {
  const which = WAKE_NAME_HEADERS.find((name) => (header(name) ?? '') !== '');
  if (which === undefined) return undefined;
  const name = header(which)!;
  if (/^[\x20-\x7e]{1,200}$/.test(name)) return name;
  const got = JSON.stringify(name.slice(0, 40));
  throw new ReveilleError('invalid_request', `${which} must be 1 to 200 printable ASCII characters (got ${got})`);
}

/** Members for which an empty text says what their absence says: writers of fixed structures have no other way. */
const MAY_BE_EMPTY = ['conversation_id', 'alarm_id', 'origin', 'fire_id'] as const;

/** Takes empty texts out of a body that a wake or a message came in. */
export function withoutEmptyMembers(body: Record<string, unknown>): Record<string, unknown> {
  for (const name of MAY_BE_EMPTY) if (body[name] === '') delete body[name];
  return body;
}

/**
 * What a daemon accepts on `POST /chat`: a message from a person, or a wake, which any of {@link WAKE_MARKS} makes it.
 */
export const chatRequestSchema = z
  .strictObject({
    message: verbatimText(256 * 1024),
    conversation_id: conversationIdSchema.optional(),
    payload: payload.optional(),
    origin: z.literal(WAKE_ORIGIN).optional(),
    alarm_id: alarmId.optional(),
    fire_id: givenFireIdSchema.optional(),
    scheduled_for: instantSchema.optional(),
    missed_count: z.int().min(0).optional(),
    label: z.string().max(200).optional(),
    set_at: instantSchema.optional(),
    set_by: setBySchema.optional(),
    late_because: lateReason.optional(),
  })
  .superRefine((body, context) => {
    if (WAKE_MARKS.some((name) => body[name] !== undefined)) return;
    for (const name of ['missed_count', 'label', 'set_at', 'set_by', 'late_because'] as const) {
      if (body[name] !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: `goes only with origin "${WAKE_ORIGIN}"` });
    }
  });
export type ChatRequest = z.output<typeof chatRequestSchema>;

/** A daemon's answer to `POST /chat`: 202 for a new turn, 200 with `deduped` for a known `fire_id`. */
export const chatAcceptedSchema = z.object({ conversation_id: z.string(), turn_id: z.string(), deduped: z.boolean() });
export type ChatAccepted = z.infer<typeof chatAcceptedSchema>;

/** A daemon's answer to `GET /healthz`; anything else that answers 200 counts as alive and never busy. */
export const daemonHealthSchema = z.object({
  status: z.string(),
  busy: z.boolean(),
  queued: z.int().min(0),
  /** When a turn that waits has to be tried again: the daemon may sleep until then, and has to run by then. */
  next_turn_at: z.iso.datetime({ offset: true }).optional(),
});
export type DaemonHealth = z.infer<typeof daemonHealthSchema>;

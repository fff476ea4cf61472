/** A look at a source of events that cannot report by itself: chronosd asks the router, which knows the machine. */
import { z } from 'zod';
import { EVENT_MAX_BYTES, type EventSource, eventSchema } from './conditions.ts';
import { labelSchema } from './did.ts';
import { utf8Bytes } from './text.ts';

/** How much of what a source has shown is remembered. */
export const SEEN_MAX_BYTES = 64 * 1024;
/** Events of one look; the next look, at once, has the others. */
export const LOOK_EVENTS_MAX = 200;
/** How long a look may take at the router, and how long chronosd waits for its answer. */
export const LOOK_MS = 10_000;
export const LOOK_ANSWER_MS = 20_000;

/** The sources that are looked at. */
export type LookedAt = Extract<EventSource, { source: 'file' | 'process' | 'mcp' }>;

/** Whether a source cannot report its events by itself. */
export const isLookedAt = ({ source }: EventSource) => source === 'file' || source === 'process' || source === 'mcp';

const seenSchema = z.string().refine((text) => utf8Bytes(text) <= SEEN_MAX_BYTES, 'is too long');

export const lookRequestSchema = z.strictObject({
  user_id: labelSchema,
  alarm_id: z.string().min(1).max(100),
  event: eventSchema.refine(isLookedAt, 'this source reports its events by itself'),
  /** What the source had shown; without it, this look shows what is there, and no events. */
  seen: seenSchema.optional(),
});
export type LookRequest = Omit<z.output<typeof lookRequestSchema>, 'event'> & { event: LookedAt };

export const lookAnswerSchema = z.object({
  /** In their order. An id is the same whenever the same change is reported. `data` is JSON source text. */
  events: z
    .array(
      z.object({
        id: z.string().min(1).max(500),
        data: z.string().refine((text) => utf8Bytes(text) <= EVENT_MAX_BYTES, 'is too long'),
      }),
    )
    .max(LOOK_EVENTS_MAX),
  seen: seenSchema,
  /** Further events wait for the next look. */
  more: z.boolean().optional(),
  /** No event can come after these. */
  ends: z.boolean().optional(),
  /** The source asks for this time until the next look. */
  wait_ms: z.int().min(0).optional(),
});
export type LookAnswer = z.output<typeof lookAnswerSchema>;

/** The port that asks the router. */
export type Looker = {
  /** @throws ReveilleError the router's refusal, or `unavailable` when it does not answer */
  look(request: LookRequest): Promise<LookAnswer>;
  close(): Promise<void>;
};

/** JSON source text as the data of an event; `reduced` takes the place of one that is too long. */
export function eventData(source: string, reduced: (bytes: number) => object): string {
  const bytes = utf8Bytes(source);
  return bytes <= EVENT_MAX_BYTES ? source : JSON.stringify(reduced(bytes));
}

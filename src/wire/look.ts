/** A look at a source of events that cannot report by itself: chronosd asks the router, which knows the machine. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { EVENT_MAX_BYTES, type EventSource, eventSchema } from './conditions.ts';
import { labelSchema } from './did.ts';
import { beginningOf, utf8Bytes } from './text.ts';

/** How much of what a source has shown is remembered. */
export const SEEN_MAX_BYTES = 64 * 1024;
/** Events of one look; the next look, a second later, has the others. */
export const LOOK_EVENTS_MAX = 200;
/** The data of all events of one look at a server. */
export const LOOK_MAX_BYTES = 512 * 1024;
/** How long a look may take at the router, and how long chronosd waits for its answer. */
export const LOOK_MS = 10_000;
export const LOOK_ANSWER_MS = 20_000;

/** Whether a server of MCP Events posts its events. The looks keep its subscription alive. */
export const isSubscription = (event: EventSource | undefined): boolean =>
  event?.source === 'mcp' && event.delivery === 'webhook';

/** The sources that are looked at. */
export type LookedAt = Extract<EventSource, { source: 'file' | 'process' | 'mcp' }>;

/** Whether a source cannot report its events by itself. */
export const isLookedAt = (event: EventSource): event is LookedAt =>
  event.source === 'file' || event.source === 'process' || event.source === 'mcp';

const seenSchema = z.string().refine((text) => utf8Bytes(text) <= SEEN_MAX_BYTES, 'is too long');

export const lookRequestSchema = z.strictObject({
  user_id: labelSchema,
  alarm_id: z.string().min(1).max(100),
  event: eventSchema.refine(isLookedAt, 'this source reports its events by itself'),
  /** What the source had shown; without it, this look shows what is there, and no events. */
  seen: seenSchema.optional(),
  /** Where a server that delivers by webhook posts its events, and the secret that it signs them with. */
  callback: z.strictObject({ url: z.url().max(2000), secret: z.string().min(16).max(200) }).optional(),
});
export type LookRequest = Omit<z.output<typeof lookRequestSchema>, 'event'> & { event: LookedAt };

export const lookAnswerSchema = z.object({
  /** In their order. An id is the same whenever the same change is reported. `data` is JSON source text. */
  events: z
    .array(
      z.object({
        id: z.string().min(1).max(500),
        data: z.string().refine((text) => utf8Bytes(text) <= EVENT_MAX_BYTES, 'is too long'),
        /** It says something about the source itself, so no filter applies to it. */
        is_notice: z.boolean().optional(),
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
  /** Where webhooks reach chronosd from outside; without it, no server can deliver events by webhook. */
  readonly publicUrl?: string | undefined;
  /** @throws ReveilleError the router's refusal, or `unavailable` when it does not answer */
  look(request: LookRequest): Promise<LookAnswer>;
  close(): Promise<void>;
};

/** JSON source text as the data of an event; `reduced` takes the place of one that is too long. */
export function eventData(source: string, reduced: (bytes: number) => object, mostBytes = EVENT_MAX_BYTES): string {
  const bytes = utf8Bytes(source);
  return bytes <= Math.min(mostBytes, EVENT_MAX_BYTES) ? source : JSON.stringify(reduced(bytes));
}

/** An id of a server that is used as it is; others are hashed. */
const PLAIN_ID = /^[\x21-\x7e]{1,400}$/;
const MCP_ID_CHARACTERS = 400;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** Longest position of a server of MCP Events. */
export const CURSOR_CHARACTERS = 16_000;

/** How far a server of MCP Events has delivered, as `seen` has it. `of` identifies the subscription. */
export type Position = { of: string; cursor: string | null };

/** `undefined` for a text that this version has not written. */
export function readPosition(seen: string): Position | undefined {
  try {
    const { of, cursor } = JSON.parse(seen) as Partial<Position>;
    return typeof of === 'string' && cursor !== undefined ? { of, cursor } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * An event of a server of MCP Events. One that is polled for has the id that it has in a webhook, so both are one.
 *
 * @param mostBytes of its data; one that is longer is only named
 */
export function mcpEvent(
  source: string,
  eventId: string,
  name: string,
  mostBytes = EVENT_MAX_BYTES,
): { id: string; data: string } {
  const id = PLAIN_ID.test(eventId) ? `mcp-${eventId}` : `sha256:${sha256(eventId)}`;
  const reduced = (bytes: number) => ({
    ...{ eventId: beginningOf(eventId, MCP_ID_CHARACTERS), name, bytes },
    note: 'the event is too long for a wake; ask the server for it',
  });
  const data = eventData(source, reduced, mostBytes);
  return { id, data };
}

/** That a server of MCP Events has skipped events before `cursor`. */
export function mcpGap(name: string, cursor: string | null): { id: string; data: string; is_notice: true } {
  const note = 'the server has skipped events that it no longer has';
  return {
    ...{ id: `gap-${sha256(JSON.stringify([name, cursor])).slice(0, 16)}`, is_notice: true },
    data: JSON.stringify({ name, truncated: true, note }),
  };
}

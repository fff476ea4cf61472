/** Accepts a turn: `POST /chat` (docs/reference/api.md). Pure but for {@link acceptChat}. */
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../kit/clock/clock.ts';
import { isTracing, readTraceparent } from '../kit/trace/trace.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import { ReveilleError } from '../wire/errors.ts';
import { deriveName, fireIdOf, REPEAT_SECONDS } from '../wire/fire-id.ts';
import { storedSetBy } from '../wire/set-by.ts';
import {
  type ChatAccepted,
  type ChatRequest,
  TOKEN_LIMIT_HEADER,
  termsOf,
  WAKE_HEADERS,
  WAKE_MEMBERS,
} from '../wire/wake.ts';
import type { NewTurn, Turn } from './turn.ts';

/** The headers that mark a delivery, and the equivalent members of the body. */
const MARKERS = [
  [WAKE_HEADERS.origin, 'origin'],
  [WAKE_HEADERS.alarm, 'alarm_id'],
  [WAKE_HEADERS.fire, 'fire_id'],
] as const;

type Header = (name: string) => string | undefined;

/**
 * Copies the headers of a delivery into its body. Where both are present they must agree: a router of the headers and a
 * reader of the body must see the same wake.
 *
 * @param header a request header's value
 * @param body as it was sent, not checked yet
 * @throws ReveilleError `invalid_request` naming the first header that disagrees
 */
export function withMarkers(header: Header, body: Record<string, unknown>): Record<string, unknown> {
  for (const [name, member] of MARKERS) {
    const marker = header(name);
    if (marker === undefined || marker === '' || marker === body[member]) continue;
    if (body[member] !== undefined) {
      const [inHeader, inBody] = [marker, JSON.stringify(body[member])].map((text) => text.slice(0, 200));
      const message = `${name} must agree with ${member} in the body (got ${JSON.stringify(inHeader)} in the header, ${inBody} in the body)`;
      throw new ReveilleError('invalid_request', message);
    }
    body[member] = marker;
  }
  return body;
}

const isWake = (body: ChatRequest) => WAKE_MEMBERS.some((name) => body[name] !== undefined);

/**
 * The user of a delivered wake, by its header; `undefined` where the header is missing, or the request is not a wake.
 */
export function userOf(header: Header, body: ChatRequest): string | undefined {
  const label = labelSchema.safeParse(header(WAKE_HEADERS.user));
  return label.success && isWake(body) ? ownerOf(label.data) : undefined;
}

/** The tokens that the turn of a delivered wake may use; `undefined` without a limit. */
export function tokenLimitOf(header: Header, body: ChatRequest): number | undefined {
  const limit = header(TOKEN_LIMIT_HEADER) ?? '';
  return isWake(body) && /^[1-9]\d{0,14}$/.test(limit) ? Number(limit) : undefined;
}

/** The user of a request's wake, see {@link userOf}, the caller's id for it, and the limit of its turn. */
export type WakeIdentity = {
  userId?: string | undefined;
  name?: string | undefined;
  tokensPerTurn?: number | undefined;
  /** Of the delivery; stored only where this process records traces. */
  traceparent?: string | undefined;
};

/** The turn for a request. `newId` returns a new id where one is needed. */
export function turnOf(body: ChatRequest, now: number, newId: () => string, about: WakeIdentity = {}): NewTurn {
  const { userId, tokensPerTurn, traceparent } = about;
  const ofAlarm = termsOf(body);
  const terms = tokensPerTurn === undefined ? ofAlarm : { ...ofAlarm, tokens_per_turn: tokensPerTurn };
  return {
    id: newId(),
    conversationId: body.conversation_id ?? newId(),
    origin: isWake(body) ? 'chronos' : 'user',
    message: body.message,
    createdAt: now,
    ...(body.payload === undefined ? {} : { payload: body.payload.text }),
    ...(body.alarm_id === undefined ? {} : { alarmId: body.alarm_id }),
    ...(body.fire_id === undefined ? {} : { fireId: body.fire_id }),
    ...(body.scheduled_for === undefined ? {} : { scheduledFor: body.scheduled_for }),
    ...(body.missed_count === undefined ? {} : { missedCount: body.missed_count }),
    ...(body.late_because === undefined ? {} : { lateBecause: body.late_because }),
    ...(body.label === undefined ? {} : { label: body.label }),
    ...(body.set_at === undefined ? {} : { setAt: body.set_at }),
    ...(body.set_by === undefined ? {} : { setBy: storedSetBy(body.set_by) }),
    ...(body.text_by === undefined ? {} : { textBy: body.text_by }),
    ...(body.sent_by === undefined ? {} : { sentBy: body.sent_by.name }),
    ...(terms === undefined ? {} : { terms }),
    ...(body.check === undefined ? {} : { check: body.check }),
    ...(userId === undefined ? {} : { userId }),
    ...(isTracing() && readTraceparent(traceparent) ? { traceparent: traceparent! } : {}),
  };
}

export type ChatOptions = {
  store: { accept(turn: NewTurn, isFull?: () => boolean): Promise<{ turn: Turn; deduped: boolean }> };
  clock: Clock;
  /** Called when a new turn has been stored. */
  onAccepted: () => void;
  /** Also called when the turn is a person's; a message of a timer or a program is not a prompt. Epoch milliseconds. */
  onPrompt?: ((at: number) => void) | undefined;
  /** Whether the queue of turns is full; never full by default. */
  isFull?: () => boolean;
  /** How long the same wake without a fire id counts as one wake; 0: never. One day by default. */
  repeatMs?: number | undefined;
};

/**
 * Gives the turn of a wake without a fire id an id that is derived from its content.
 *
 * @param repeatMs an equal turn that was accepted within this time is a repetition
 */
function withDerivedFire(turn: NewTurn, body: ChatRequest, about: WakeIdentity, repeatMs: number): NewTurn {
  if (turn.origin === 'user' || turn.fireId !== undefined) return turn;
  const { alarmId, scheduledFor, message, payload, createdAt } = turn;
  const terms = termsOf(body);
  const { conversation_id: conversationId } = body;
  const facts = { userId: about.userId, conversationId, alarmId, scheduledFor, message, payload, terms };
  const { derived, windowMs } = deriveName(facts, about.name, repeatMs);
  const repeats = { name: derived, since: Math.max(0, createdAt - windowMs) };
  return { ...turn, fireId: fireIdOf(derived, createdAt), repeats };
}

/**
 * Stores the turn of a request. Resolves when it is on disk; a repeated wake returns its existing turn.
 *
 * @throws ReveilleError `unavailable` when it could not be stored, `rate_limited` when too many wait: nothing was
 *   accepted, the wake must be repeated
 */
export async function acceptChat(
  body: ChatRequest,
  { store, clock, onAccepted, onPrompt, isFull, repeatMs = REPEAT_SECONDS * 1000 }: ChatOptions,
  about: WakeIdentity = {},
): Promise<ChatAccepted> {
  const now = clock.now();
  const newTurn = turnOf(body, now, () => uuidv7({ msecs: now }), about);
  const { turn, deduped } = await store.accept(withDerivedFire(newTurn, body, about, repeatMs), isFull);
  if (!deduped) onAccepted();
  if (!deduped && turn.origin === 'user') onPrompt?.(now);
  return { conversation_id: turn.conversationId, turn_id: turn.id, deduped };
}

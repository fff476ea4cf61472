/** Accepting a turn: `POST /chat` (docs/contracts.md §4, §5). Pure but for {@link acceptChat}. */
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../kit/clock/clock.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type ChatAccepted, type ChatRequest, WAKE_HEADERS, WAKE_ORIGIN } from '../wire/wake.ts';
import type { ConversationStore } from './conversations/store.ts';
import type { NewTurn } from './turn.ts';

/** The headers of a delivery and the members of the body that say the same. */
const ECHOED = [
  [WAKE_HEADERS.origin, 'origin'],
  [WAKE_HEADERS.alarm, 'alarm_id'],
  [WAKE_HEADERS.fire, 'fire_id'],
] as const;

/**
 * Holds the headers of a delivery against its body: where both speak they must agree, for whoever routed by the one and
 * whoever reads the other must see the same wake.
 *
 * @param header a request header's value
 * @throws ReveilleError `invalid_request` naming the first header that disagrees
 */
export function checkWakeHeaders(header: (name: string) => string | undefined, body: ChatRequest): void {
  for (const [name, member] of ECHOED) {
    const said = header(name);
    if (said === undefined || said === body[member]) continue;
    const inBody = body[member] === undefined ? 'it has none' : `it says ${JSON.stringify(body[member])}`;
    const message = `${name} must agree with ${member} in the body: the header says ${JSON.stringify(said.slice(0, 200))}, in the body ${inBody}`;
    throw new ReveilleError('invalid_request', message);
  }
}

/** Whose wake a delivery carries, by its header; `undefined` where it does not say so, or carries none. */
export function userOf(header: (name: string) => string | undefined, body: ChatRequest): string | undefined {
  const label = labelSchema.safeParse(header(WAKE_HEADERS.user));
  return label.success && body.origin === WAKE_ORIGIN ? ownerOf(label.data) : undefined;
}

/** The turn that a request asks for. `ids` is asked for a new id where one is needed. */
export function turnOf(body: ChatRequest, now: number, newId: () => string, userId?: string): NewTurn {
  return {
    id: newId(),
    conversationId: body.conversation_id ?? newId(),
    origin: body.origin ?? 'user',
    message: body.message,
    createdAt: now,
    ...(body.payload === undefined ? {} : { payload: body.payload.text }),
    ...(body.alarm_id === undefined ? {} : { alarmId: body.alarm_id }),
    ...(body.fire_id === undefined ? {} : { fireId: body.fire_id }),
    ...(body.scheduled_for === undefined ? {} : { scheduledFor: body.scheduled_for }),
    ...(body.missed_count === undefined ? {} : { missedCount: body.missed_count }),
    ...(body.label === undefined ? {} : { label: body.label }),
    ...(body.set_at === undefined ? {} : { setAt: body.set_at }),
    ...(body.set_by === undefined ? {} : { setBy: body.set_by.name }),
    ...(userId === undefined ? {} : { userId }),
  };
}

export type ChatOptions = {
  store: Pick<ConversationStore, 'accept'>;
  clock: Clock;
  /** Called when a new turn has been stored. */
  onAccepted: (conversationId: string) => void;
  /** Whether as many turns wait as may; never unless given. */
  isFull?: () => boolean;
};

/**
 * Stores the turn of a request. Resolves when it is on disk; a `fire_id` that has its turn already gives that turn
 * back.
 *
 * @param userId whose wake it is, see {@link userOf}
 * @throws ReveilleError `unavailable` when it could not be stored, `rate_limited` when too many wait: nothing was
 *   accepted, the wake must be repeated
 */
export async function acceptChat(
  body: ChatRequest,
  { store, clock, onAccepted, isFull }: ChatOptions,
  userId?: string,
): Promise<ChatAccepted> {
  const now = clock.now();
  const { turn, deduped } = await store.accept(
    turnOf(body, now, () => uuidv7({ msecs: now }), userId),
    isFull,
  );
  if (!deduped) onAccepted(turn.conversationId);
  return { conversation_id: turn.conversationId, turn_id: turn.id, deduped };
}

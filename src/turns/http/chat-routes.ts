/** The routes of turns and conversations; a client polls the turn that its `POST /chat` returned. */
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { conversationIdSchema, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { CHAT_ROUTES } from '../../wire/chat-routes.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { type ConversationSummary, conversationListQuerySchema, conversationQuerySchema } from '../../wire/turn.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { callerWakeName, chatRequestSchema, RAW_WAKE_FIELDS, withoutEmptyMembers } from '../../wire/wake.ts';
import { acceptChat, type ChatOptions, userOf, withMarkers } from '../chat.ts';
import type { ActivityCursor, Conversation, TurnQueries } from '../conversations.ts';
import type { TurnEngine } from '../engine.ts';
import { viewOf } from '../turn-view.ts';

/** The stored conversations. */
type Conversations = Pick<TurnQueries, 'turn' | 'turnsAfter'> & {
  conversation(id: string): Conversation | undefined;
  /** Newest activity first. */
  listConversations(limit: number, cursor?: ActivityCursor): Conversation[];
  newestEventOf(conversationId: string): number;
};

type ChatRoutesOptions = Omit<ChatOptions, 'onAccepted'> & {
  store: Conversations;
  engine: Pick<TurnEngine, 'accepted' | 'cancel'>;
};

function summaryOf(conversation: Conversation): ConversationSummary {
  return {
    id: conversation.id,
    turn_count: conversation.turnCount,
    created_at: formatInstant(conversation.createdAt),
    last_activity_at: formatInstant(conversation.lastActivityAt),
    last_message: conversation.lastMessage,
  };
}

function find(store: Conversations, id: string): Conversation {
  const conversation = conversationIdSchema.safeParse(id).success ? store.conversation(id) : undefined;
  if (conversation) return conversation;
  throw new ReveilleError(
    'not_found',
    'there is no conversation with this id; GET /conversations lists the existing ones',
  );
}

export function chatRoutes(app: HttpApp, { engine, ...options }: ChatRoutesOptions): void {
  const { store } = options;

  serve(app, CHAT_ROUTES.chat, async (c) => {
    const header = (name: string) => c.req.header(name);
    const sent = withoutEmptyMembers(await readJson(c, { raw: RAW_WAKE_FIELDS }));
    const body = parseOrThrow(chatRequestSchema, withMarkers(header, sent));
    const about = { userId: userOf(header, body), name: callerWakeName(header) };
    const accepted = await acceptChat(body, { ...options, onAccepted: () => engine.accepted() }, about);
    return sendOk(c, accepted, accepted.deduped ? 200 : 202);
  });

  serve(app, CHAT_ROUTES.listConversations, (c) => {
    const { limit = LIST_LIMIT_DEFAULT, cursor } = parseOrThrow(conversationListQuerySchema, c.req.query());
    const found = store.listConversations(limit + 1, cursor);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return sendOk(c, {
      conversations: page.map(summaryOf),
      next_cursor: last && found.length > limit ? `${last.lastActivityAt}~${last.id}` : undefined,
    });
  });

  serve(app, CHAT_ROUTES.getConversation, (c) => {
    const { limit = LIST_LIMIT_MAX, cursor = 0 } = parseOrThrow(conversationQuerySchema, c.req.query());
    const conversation = find(store, c.req.param('id'));
    const { turns, more } = store.turnsAfter(conversation.id, cursor, limit);
    const { id, turn_count, created_at, last_activity_at } = summaryOf(conversation);
    return sendOk(c, {
      id,
      turn_count,
      created_at,
      last_activity_at,
      turns: turns.map(viewOf),
      last_event_id: store.newestEventOf(conversation.id),
      next_cursor: more ? String(turns.at(-1)!.seq) : undefined,
    });
  });

  serve(app, CHAT_ROUTES.getTurn, (c) => {
    const turn = store.turn(c.req.param('turn_id'), c.req.param('id'));
    if (!turn) throw new ReveilleError('not_found', 'this conversation has no turn with this id');
    return sendOk(c, viewOf(turn));
  });

  serve(app, CHAT_ROUTES.cancelTurn, async (c) => {
    const turn = await engine.cancel(c.req.param('id'));
    if (!turn) throw new ReveilleError('not_found', 'there is no turn with this id; a conversation lists its turns');
    // A turn that had already ended is returned unchanged.
    return sendOk(c, viewOf(turn));
  });
}

/**
 * `GET /conversations`, `GET /conversations/{id}` and `GET /conversations/{id}/turns/{turn_id}`, which a client polls.
 */
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { viewOf } from '../../turns/turn-view.ts';
import { conversationIdSchema, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { type ConversationSummary, conversationListQuerySchema, conversationQuerySchema } from '../../wire/turn.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Conversation } from '../conversations/conversation-table.ts';
import type { ConversationStore } from '../conversations/store.ts';
import { NEO_ROUTES } from './routes.ts';

function summaryOf(conversation: Conversation): ConversationSummary {
  return {
    id: conversation.id,
    turn_count: conversation.turnCount,
    created_at: formatInstant(conversation.createdAt),
    last_activity_at: formatInstant(conversation.lastActivityAt),
    last_message: conversation.lastMessage,
  };
}

function find(store: ConversationStore, id: string): Conversation {
  const conversation = conversationIdSchema.safeParse(id).success ? store.conversation(id) : undefined;
  if (conversation) return conversation;
  throw new ReveilleError(
    'not_found',
    'there is no conversation with this id; GET /conversations lists the existing ones',
  );
}

export function conversationRoutes(app: HttpApp, store: ConversationStore): void {
  serve(app, NEO_ROUTES.listConversations, (c) => {
    const { limit = LIST_LIMIT_DEFAULT, cursor } = parseOrThrow(conversationListQuerySchema, c.req.query());
    const found = store.listConversations(limit + 1, cursor);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return sendOk(c, {
      conversations: page.map(summaryOf),
      next_cursor: last && found.length > limit ? `${last.lastActivityAt}~${last.id}` : undefined,
    });
  });

  serve(app, NEO_ROUTES.getConversation, (c) => {
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

  serve(app, NEO_ROUTES.getTurn, (c) => {
    const turn = store.turn(c.req.param('turn_id'), c.req.param('id'));
    if (!turn) throw new ReveilleError('not_found', 'this conversation has no turn with this id');
    return sendOk(c, viewOf(turn));
  });
}

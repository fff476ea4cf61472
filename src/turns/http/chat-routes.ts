/** The routes of turns, conversations and events; a client polls the turn that its `POST /chat` returned. */
import { once } from 'node:events';
import type { Clock } from '../../kit/clock/clock.ts';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { type EventStream, openEventStream } from '../../kit/http/sse.ts';
import type { Logger } from '../../kit/log/log.ts';
import { TRACEPARENT } from '../../kit/trace/trace.ts';
import { conversationIdSchema, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { CHAT_ROUTES } from '../../wire/chat-routes.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import {
  type ConversationSummary,
  conversationListQuerySchema,
  conversationQuerySchema,
  eventHeadersSchema,
  eventQuerySchema,
  type TurnEventType,
} from '../../wire/turn.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { callerWakeName, chatRequestSchema, RAW_WAKE_FIELDS, withoutEmptyMembers } from '../../wire/wake.ts';
import { acceptChat, type ChatOptions, tokenLimitOf, userOf, withMarkers } from '../chat.ts';
import type { ActivityCursor, Conversation, TurnQueries } from '../conversations.ts';
import type { TurnEngine } from '../engine.ts';
import type { EventFeed, FeedRequest } from '../event-log.ts';
import { viewOf } from '../turn-view.ts';

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
    const about = {
      userId: userOf(header, body),
      name: callerWakeName(header),
      tokensPerTurn: tokenLimitOf(header, body),
      traceparent: header(TRACEPARENT),
    };
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

/** A single event can contain a whole reply, each of whose characters may take six in JSON. */
const BUFFERED_BYTES = 4 * 1024 * 1024;

/** Sends a feed; waits whenever the reader is slower than the log. */
async function forward(
  feed: EventFeed,
  request: FeedRequest,
  stream: EventStream,
  outgoing: NodeJS.EventEmitter & { writableNeedDrain: boolean },
  isWanted: (type: TurnEventType) => boolean,
): Promise<void> {
  for await (const { id, type, data } of feed.read(request, stream.closed)) {
    if (!isWanted(type)) continue;
    if (!stream.send({ event: type, data, ...(id === undefined ? {} : { id: String(id) }) })) return;
    if (!outgoing.writableNeedDrain) continue;
    // Rejects only when the stream has ended, which ends the loop.
    await once(outgoing, 'drain', { signal: stream.closed }).catch(() => {});
  }
}

type EventRoutesOptions = {
  feed: EventFeed;
  clock: Clock;
  log: Logger;
  /** Called with each new stream that has gates, and the conversation of its reader; absent: all of them. */
  onStream?: (stream: EventStream, conversationId: string | undefined) => void;
};

/** `GET /events`: server-sent events that can be resumed. */
export function eventRoutes(app: HttpApp, { feed, clock, log, onStream }: EventRoutesOptions): void {
  serve(app, CHAT_ROUTES.events, (c) => {
    const query = parseOrThrow(eventQuerySchema, c.req.query());
    const header = parseOrThrow(eventHeadersSchema, { 'Last-Event-ID': c.req.header('last-event-id') });
    // A reconnecting client sends the header by itself; it is newer than the address.
    const after = header['Last-Event-ID'] ?? query.last_event_id;
    const request = {
      ...(query.conversation_id === undefined ? {} : { conversationId: query.conversation_id }),
      ...(after === undefined ? {} : { after }),
    };
    const stream = openEventStream(c, { clock, maxBufferedBytes: BUFFERED_BYTES });
    const { types } = query;
    const isWanted = (type: TurnEventType) => types === undefined || type === 'notice' || types.includes(type);
    if (isWanted('gate')) onStream?.(stream, query.conversation_id);
    forward(feed, request, stream, c.env.outgoing, isWanted).catch((err: unknown) => {
      log.error({ err }, 'an event stream failed');
      stream.close();
    });
    return stream.response;
  });
}

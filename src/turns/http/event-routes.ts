/** `GET /events`: events as server-sent events that can be resumed. */
import { once } from 'node:events';
import type { Clock } from '../../kit/clock/clock.ts';
import { type HttpApp, serve } from '../../kit/http/handlers.ts';
import { type EventStream, openEventStream } from '../../kit/http/sse.ts';
import type { Logger } from '../../kit/log/log.ts';
import { CHAT_ROUTES } from '../../wire/chat-routes.ts';
import { eventHeadersSchema, eventQuerySchema, type TurnEventType } from '../../wire/turn.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { EventFeed, FeedRequest } from '../event-feed.ts';

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

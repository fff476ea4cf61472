/** `GET /events`: events as server-sent events that can be resumed. */
import { once } from 'node:events';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { type HttpApp, serve } from '../../kit/http/handlers.ts';
import { type EventStream, openEventStream } from '../../kit/http/sse.ts';
import type { Logger } from '../../kit/log/log.ts';
import { encodeJson } from '../../wire/json.ts';
import { eventHeadersSchema, eventQuerySchema } from '../../wire/turn.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Approvers } from '../delegate/approvers.ts';
import type { ExecutorLink } from '../delegate/delegate.ts';
import type { EventFeed, FeedRequest } from '../events.ts';
import { NEO_ROUTES } from './routes.ts';

/** A single event can contain a whole reply, each of whose characters may take six in JSON. */
const BUFFERED_BYTES = 4 * 1024 * 1024;

/** How often the executor is queried for waiting gates while a stream is open. */
const GATE_POLL_MS = 5000;

/** Sends a feed; waits whenever the reader is slower than the log. */
async function forward(
  feed: EventFeed,
  request: FeedRequest,
  stream: EventStream,
  outgoing: NodeJS.EventEmitter & { writableNeedDrain: boolean },
): Promise<void> {
  for await (const { id, type, data } of feed.read(request, stream.closed)) {
    if (!stream.send({ event: type, data, ...(id === undefined ? {} : { id: String(id) }) })) return;
    if (!outgoing.writableNeedDrain) continue;
    // Rejects only when the stream has ended, which ends the loop.
    await once(outgoing, 'drain', { signal: stream.closed }).catch(() => {});
  }
}

/**
 * Sends the waiting gates to a new stream, which has not seen the questions. Queries for new ones while a stream is
 * open, because no turn waits beside a parked task. New gates and their results are sent through the log.
 */
async function sendGates(
  executor: Pick<ExecutorLink, 'openGates'>,
  conversationId: string | undefined,
  stream: EventStream,
  clock: Clock,
): Promise<void> {
  for (const gate of await executor.openGates(conversationId, stream.closed)) {
    stream.send({ event: 'gate', data: encodeJson(gate) });
  }
  while (!stream.closed.aborted) {
    await wait(clock, GATE_POLL_MS, stream.closed);
    if (!stream.closed.aborted) await executor.openGates(conversationId, stream.closed);
  }
}

type EventRoutesOptions = {
  feed: EventFeed;
  clock: Clock;
  log: Logger;
  /** Counts the followers, who can answer gates. */
  approvers: Pick<Approvers, 'addStream'> | undefined;
  /** Knows the waiting gates. */
  executor: Pick<ExecutorLink, 'openGates'> | undefined;
};

export function eventRoutes(app: HttpApp, { feed, clock, log, approvers, executor }: EventRoutesOptions): void {
  serve(app, NEO_ROUTES.events, (c) => {
    const query = parseOrThrow(eventQuerySchema, c.req.query());
    const header = parseOrThrow(eventHeadersSchema, { 'Last-Event-ID': c.req.header('last-event-id') });
    // A reconnecting client sends the header by itself; it is newer than the address.
    const after = header['Last-Event-ID'] ?? query.last_event_id;
    const request = {
      ...(query.conversation_id === undefined ? {} : { conversationId: query.conversation_id }),
      ...(after === undefined ? {} : { after }),
    };
    const stream = openEventStream(c, { clock, maxBufferedBytes: BUFFERED_BYTES });
    const leave = approvers?.addStream(query.conversation_id);
    if (leave) stream.closed.addEventListener('abort', leave);
    if (stream.closed.aborted) leave?.();
    if (executor) void sendGates(executor, query.conversation_id, stream, clock);
    forward(feed, request, stream, c.env.outgoing).catch((err: unknown) => {
      log.error({ err }, 'an event stream failed');
      stream.close();
    });
    return stream.response;
  });
}

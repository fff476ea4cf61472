/** `GET /v1/events`: what happens to the caller's alarms, as server-sent events that can be resumed. */
import { type HttpApp, serve } from '../../kit/http/handlers.ts';
import { type EventStream, openEventStream } from '../../kit/http/sse.ts';
import type { Logger } from '../../kit/log/log.ts';
import { chronosEventQuerySchema } from '../../wire/chronos-event.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { acceptedKey } from '../auth/enrollment.ts';
import type { EventFeed, EventReader } from '../events/feed.ts';
import { tooManyStreams } from '../store/limits.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { type ChronosService, callerOf } from './service.ts';

/** Interval of heartbeats, and of checks that the caller's key is still accepted. */
const HEARTBEAT_MS = 15_000;
/** A reader with more unread bytes is disconnected. It resumes at its last event. */
const BUFFERED_BYTES = 512 * 1024;

export type EventStreamLimits = { readonly perOwner: number; readonly inAll: number };

/** Counters of the streams of one process, for its metrics. */
export type EventFigures = { open: number; sent: number };

export type EventService = {
  readonly feed: EventFeed;
  readonly limits: EventStreamLimits;
  /** Updated here. */
  readonly figures: EventFigures;
};

/** Counts the open streams, and refuses more than the limits. */
function streamCount({ limits, figures }: EventService) {
  const perOwner = new Map<string, number>();
  return {
    /** @throws OverBound */
    enter(owner: string): () => void {
      const own = perOwner.get(owner) ?? 0;
      if (own >= limits.perOwner) throw tooManyStreams(`you have ${own}`, 'CHRONOS_EVENT_STREAMS_PER_OWNER');
      if (figures.open >= limits.inAll)
        throw tooManyStreams(`all owners have ${figures.open}`, 'CHRONOS_EVENT_STREAMS');
      perOwner.set(owner, own + 1);
      figures.open++;
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        figures.open--;
        const left = perOwner.get(owner)! - 1;
        if (left === 0) perOwner.delete(owner);
        else perOwner.set(owner, left);
      };
    },
  };
}

/** Sends the reader's events until one side ends. */
function forward(reader: EventReader, stream: EventStream, figures: EventFigures): void {
  // The cursor of the beginning: a client that is interrupted before the first event resumes here.
  stream.send({ event: 'ready', id: reader.id, data: '{}' });
  reader.onClosed(() => stream.close());
  reader.onEvents(() => {
    const texts = reader.take();
    figures.sent += texts.length;
    if (texts.length > 0) stream.write(texts.join(''));
  });
}

export function eventRoutes(app: HttpApp, service: ChronosService, events: EventService, log: Logger): void {
  const { store, clock, auth } = service;
  const streams = streamCount(events);

  /** Ends the stream when its key is no longer accepted. */
  const watchKey = (stream: EventStream, owner: string, publicKey: string) => {
    const cancel = clock.after(HEARTBEAT_MS, async () => {
      const isAccepted = await acceptedKey(store, owner, publicKey, auth.enrollment).catch((err: unknown) => {
        log.debug({ err }, 'the key of a stream could not be checked');
        return true;
      });
      if (!isAccepted) stream.close();
      else if (!stream.closed.aborted) watchKey(stream, owner, publicKey);
    });
    stream.closed.addEventListener('abort', cancel);
  };

  serve(app, CHRONOS_ROUTES.events, async (c) => {
    const { owner, publicKey } = await callerOf(service, c);
    const { types, coalesce_ms: coalesceMs } = parseOrThrow(chronosEventQuerySchema, c.req.query());
    const leave = streams.enter(owner);
    let reader: EventReader;
    try {
      reader = await events.feed.open({ owner, after: c.req.header('last-event-id'), types, coalesceMs });
    } catch (error) {
      leave();
      throw error;
    }
    const stream = openEventStream(c, { clock, heartbeatMs: HEARTBEAT_MS, maxBufferedBytes: BUFFERED_BYTES });
    const end = () => {
      reader.end();
      leave();
    };
    if (stream.closed.aborted) end();
    else stream.closed.addEventListener('abort', end);
    forward(reader, stream, events.figures);
    watchKey(stream, owner, publicKey);
    return stream.response;
  });
}

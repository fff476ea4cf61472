/** `GET /v1/events`: what happens to the caller's alarms, as server-sent events that can be resumed. */
import type { EventFeed } from '../../kit/http/event-feed.ts';
import { type EventFigures, type EventStreamLimits, FeedStreams } from '../../kit/http/feed-stream.ts';
import { type HttpApp, serve } from '../../kit/http/handlers.ts';
import type { Logger } from '../../kit/log/log.ts';
import { type ChronosEvent, chronosEventQuerySchema } from '../../wire/chronos-event.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { acceptedKey } from '../auth/enrollment.ts';
import { tooManyStreams } from '../store/limits.ts';
import type { StoredChange } from '../store/stored-change.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { type ChronosService, callerOf } from './service.ts';

const STREAM_SETTINGS = { perOwner: 'CHRONOS_EVENT_STREAMS_PER_OWNER', inAll: 'CHRONOS_EVENT_STREAMS' };

export type EventService = {
  readonly feed: EventFeed<StoredChange, ChronosEvent>;
  readonly limits: EventStreamLimits;
  /** Updated here. */
  readonly figures: EventFigures;
};

export function eventRoutes(app: HttpApp, service: ChronosService, events: EventService, log: Logger): void {
  const { store, clock, auth } = service;
  const streams = new FeedStreams({ ...events, clock, settings: STREAM_SETTINGS, refusal: tooManyStreams });

  serve(app, CHRONOS_ROUTES.events, async (c) => {
    const { owner, publicKey } = await callerOf(service, c);
    const { types, coalesce_ms: everyMs } = parseOrThrow(chronosEventQuerySchema, c.req.query());
    const wanted = new Set<string>(types ?? []);
    return streams.open(c, {
      owner,
      merged: everyMs === undefined ? undefined : { everyMs, types },
      isWanted: ({ type }) => types === undefined || type === 'reset' || wanted.has(type),
      isAccepted: async () => {
        const key = await acceptedKey(store, owner, publicKey, auth.enrollment).catch((err: unknown) => {
          log.debug({ err }, 'the key of a stream could not be checked');
          return true;
        });
        return Boolean(key);
      },
    });
  });
}

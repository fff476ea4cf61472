/**
 * Follows the event log. A reader has a position in it and reads the later events from the database. The notification
 * of a new event is only a hint. A slow reader therefore costs no memory, and a reader that reconnects continues at its
 * position.
 */
import type { TurnEventData, TurnEventType } from '../wire/turn.ts';
import type { EventFilter, StoredEvent } from './event-log.ts';

/** An item for a reader. Without `id` it is about the stream and not part of the log. */
export type FeedItem = { readonly id?: number; readonly type: TurnEventType; readonly data: string };

export type FeedRequest = {
  /** Only this conversation's events; all of them when absent. */
  readonly conversationId?: string;
  /** The last event that the reader has; absent: only events from now on. */
  readonly after?: number;
};

type Log = {
  eventsAfter(id: number, limit: number, filter: EventFilter): StoredEvent[];
  eventBounds(): { droppedThrough: number; newest: number };
};

const PAGE = 100;

function streamNotice(data: TurnEventData<'notice'>): FeedItem {
  return { type: 'notice', data: JSON.stringify(data) };
}

/** Makes the feed over a log. */
export function eventFeed(log: Log) {
  const waiters = new Set<() => void>();

  function newEvents(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      waiters.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  return {
    /** A new event is in the log. */
    wake(): void {
      for (const wake of [...waiters]) wake();
    },

    /** Everything after a position in the log, in order, then new events, until the signal aborts. */
    async *read({ conversationId, after }: FeedRequest, signal: AbortSignal): AsyncGenerator<FeedItem> {
      const filter = conversationId === undefined ? {} : { conversationId };
      const { newest } = log.eventBounds();
      let position = after ?? newest;
      if (position > newest) {
        yield streamNotice({
          ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
          code: 'unknown_event_id',
          text: `event ${position} has not been issued here (the newest is ${newest}); the retained events follow from the oldest`,
        });
        position = log.eventBounds().droppedThrough;
      }
      while (!signal.aborted) {
        const bounds = log.eventBounds();
        if (position < bounds.droppedThrough) {
          yield streamNotice({
            ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
            code: 'events_lost',
            text: `events after ${position} up to ${bounds.droppedThrough} are no longer stored and may be missing here; read the conversation itself`,
          });
          position = bounds.droppedThrough;
          continue;
        }
        const page = log.eventsAfter(position, PAGE, filter);
        for (const event of page) yield event;
        if (page.length === PAGE) {
          position = page.at(-1)!.id;
          continue;
        }
        // A short page contained all events of that moment, of this conversation and of any other.
        position = Math.max(bounds.newest, position);
        if (!signal.aborted && log.eventBounds().newest === position) await newEvents(signal);
      }
    },
  };
}
export type EventFeed = ReturnType<typeof eventFeed>;

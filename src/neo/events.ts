/**
 * Follows the event log. A reader has a position in it and reads the later events from the database. The notification
 * of a new event is only a hint. A slow reader therefore costs no memory, and a reader that reconnects continues at its
 * position.
 */
import type { TurnEventData, TurnEventType } from '../wire/turn.ts';
import type { ConversationStore } from './conversations/store.ts';

/** An item for a reader. Without `id` it is about the stream and not part of the log. */
export type FeedItem = { readonly id?: number; readonly type: TurnEventType; readonly data: string };

export type FeedRequest = {
  /** Only this conversation's events; all of them when absent. */
  readonly conversationId?: string;
  /** The last event that the reader has; absent: only events from now on. */
  readonly after?: number;
};

type Log = Pick<ConversationStore, 'eventsAfter' | 'eventBounds'>;

const PAGE = 100;

function notice(data: TurnEventData<'notice'>): FeedItem {
  return { type: 'notice', data: JSON.stringify(data) };
}

/** Makes the feed over a log. */
export function eventFeed(log: Log) {
  const sleepers = new Set<() => void>();

  function newEvents(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        sleepers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      sleepers.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  return {
    /** A new event is in the log. */
    wake(): void {
      for (const wake of [...sleepers]) wake();
    },

    /** Everything after a position in the log, in order, then new events, until the signal aborts. */
    async *read({ conversationId, after }: FeedRequest, signal: AbortSignal): AsyncGenerator<FeedItem> {
      const filter = conversationId === undefined ? {} : { conversationId };
      const { newest } = log.eventBounds();
      let place = after ?? newest;
      if (place > newest) {
        yield notice({
          ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
          code: 'unknown_event_id',
          text: `event ${place} has not been issued here (the newest is ${newest}); the retained events follow from the oldest`,
        });
        place = log.eventBounds().droppedThrough;
      }
      while (!signal.aborted) {
        const bounds = log.eventBounds();
        if (place < bounds.droppedThrough) {
          yield notice({
            ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
            code: 'events_lost',
            text: `events after ${place} up to ${bounds.droppedThrough} are no longer stored and may be missing here; read the conversation itself`,
          });
          place = bounds.droppedThrough;
          continue;
        }
        const page = log.eventsAfter(place, PAGE, filter);
        for (const event of page) yield event;
        if (page.length === PAGE) {
          place = page.at(-1)!.id;
          continue;
        }
        // A short page contained all events of that moment, of this conversation and of any other.
        place = Math.max(bounds.newest, place);
        if (!signal.aborted && log.eventBounds().newest === place) await newEvents(signal);
      }
    },
  };
}
export type EventFeed = ReturnType<typeof eventFeed>;

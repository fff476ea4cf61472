/**
 * Following the event log. A reader holds a place in it and asks the database what came after; being told that
 * something new is there is only a hint, so a slow reader costs no memory and a reader that comes back continues where
 * it was.
 */
import type { TurnEventData, TurnEventType } from '../wire/turn.ts';
import type { ConversationStore } from './conversations/store.ts';

/** What a reader is given. Without `id` it is about the stream and not part of the log. */
export type FeedItem = { readonly id?: number; readonly type: TurnEventType; readonly data: string };

export type FeedRequest = {
  /** Only this conversation's events; all of them when absent. */
  readonly conversationId?: string;
  /** The last event that the reader has; absent: only what happens from now on. */
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
    /** Something new is in the log. */
    wake(): void {
      for (const wake of [...sleepers]) wake();
    },

    /** Everything after a place in the log, in order, then what comes, until the signal aborts. */
    async *read({ conversationId, after }: FeedRequest, signal: AbortSignal): AsyncGenerator<FeedItem> {
      const filter = conversationId === undefined ? {} : { conversationId };
      const { newest } = log.eventBounds();
      let place = after ?? newest;
      if (place > newest) {
        yield notice({
          ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
          code: 'unknown_event_id',
          text: `event ${place} has not been given here (the newest is ${newest}); what is kept follows from its beginning`,
        });
        place = log.eventBounds().droppedThrough;
      }
      while (!signal.aborted) {
        const bounds = log.eventBounds();
        if (place < bounds.droppedThrough) {
          yield notice({
            ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
            code: 'events_lost',
            text: `events after ${place} up to ${bounds.droppedThrough} are no longer kept and may be missing here; read the conversation itself`,
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
        // A short page was all there was at that moment, of this conversation and of any other.
        place = Math.max(bounds.newest, place);
        if (!signal.aborted && log.eventBounds().newest === place) await newEvents(signal);
      }
    },
  };
}
export type EventFeed = ReturnType<typeof eventFeed>;

/**
 * The log behind `GET /events`. It keeps the newest events of the whole daemon. At the end of a turn its `say` events
 * are folded into one, so that long replies do not displace other events.
 */
import type { DatabaseSync } from 'node:sqlite';
import { encodeJson } from '../wire/json.ts';
import type { TurnEventData, TurnEventType } from '../wire/turn.ts';

/** A stored event; `data` is JSON text on one line. */
export type StoredEvent = { readonly id: number; readonly type: TurnEventType; readonly data: string };

export type EventFilter = { readonly conversationId?: string };

/** The turn of an event that has none. */
const NO_TURN = '';

/** Old events are dropped in batches of this many. */
const DROP_EVERY = 500;

/**
 * Makes the log's operations over an open connection; writes must run inside its group commit.
 *
 * @param retained how many events are kept at least
 */
export function eventLog(db: DatabaseSync, retained: number) {
  const append = db.prepare('INSERT INTO events (conversation_id, turn_id, type, data) VALUES (?, ?, ?, ?)');
  const lastSay = db.prepare(`SELECT max(id) AS id FROM events WHERE turn_id = ? AND type = 'say'`);
  const dropSay = db.prepare(`DELETE FROM events WHERE turn_id = ? AND type = 'say' AND id < ?`);
  const rewrite = db.prepare('UPDATE events SET data = ? WHERE id = ?');
  const newest = db.prepare(`SELECT seq AS id FROM sqlite_sequence WHERE name = 'events'`);
  const newestOfOne = db.prepare('SELECT max(id) AS id FROM events WHERE conversation_id = ?');
  const surplus = db.prepare('SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET ?');
  const drop = db.prepare('DELETE FROM events WHERE id <= ?');
  const markDropped = db.prepare('UPDATE event_retention SET dropped_through = ?');
  const dropped = db.prepare('SELECT dropped_through AS id FROM event_retention');
  const afterAll = db.prepare('SELECT id, type, data FROM events WHERE id > ? ORDER BY id LIMIT ?');
  const afterOne = db.prepare(`
    SELECT id, type, data FROM events WHERE conversation_id = ? AND id > ? ORDER BY id LIMIT ?`);
  let appended = 0;

  /** Drops events beyond the retained number; also runs automatically now and then. */
  function dropOld(): void {
    const oldest = surplus.get(retained) as { id: number } | undefined;
    if (!oldest) return;
    drop.run(oldest.id);
    markDropped.run(oldest.id);
  }

  return {
    dropOld,

    append<Type extends TurnEventType>(type: Type, event: TurnEventData<Type> & { conversation_id: string }): void {
      append.run(event.conversation_id, event.turn_id ?? NO_TURN, type, encodeJson(event));
      if (++appended % DROP_EVERY === 0) dropOld();
    },

    /**
     * Folds a turn's `say` events into the last of them, which then has the whole text from offset 0. A reader that has
     * seen the last one gets nothing again; any other reader gets the whole text.
     */
    foldSaid(conversationId: string, turnId: string, text: string): void {
      const last = (lastSay.get(turnId) as { id: number | null }).id;
      if (last === null) return;
      dropSay.run(turnId, last);
      rewrite.run(encodeJson({ conversation_id: conversationId, turn_id: turnId, offset: 0, text }), last);
    },

    /** Up to `limit` events after `id`, in order. */
    after(id: number, limit: number, { conversationId }: EventFilter): StoredEvent[] {
      const rows = conversationId === undefined ? afterAll.all(id, limit) : afterOne.all(conversationId, id, limit);
      return rows as StoredEvent[];
    },

    /** The newest id of a conversation; 0 where none is kept. */
    newestOf: (conversationId: string) => (newestOfOne.get(conversationId) as { id: number | null }).id ?? 0,

    /** The newest assigned id; 0 before the first event. */
    newestId: () => (newest.get() as { id: number } | undefined)?.id ?? 0,

    /** Events up to this id were dropped. */
    droppedThrough: () => (dropped.get() as { id: number }).id,
  };
}

// Follows the event log. A reader has a position in it and reads the later events from the database. The notification
// of a new event is only a hint. A slow reader therefore costs no memory, and a reader that reconnects continues at
// its position.

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

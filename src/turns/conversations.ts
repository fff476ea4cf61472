/**
 * Conversations for their readers: the `conversations` table, the data of a list, which transactions that change turns
 * keep up to date; and the turns of a conversation.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Turn } from './turn.ts';
import { TURN_COLUMNS, turnOf } from './turn-table.ts';

/** A conversation without its turns. Instants are milliseconds since the epoch. */
export type Conversation = {
  readonly id: string;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  readonly turnCount: number;
  readonly lastMessage: string;
};

/** The end of a page of the list: the next page starts with older activity. */
export type ActivityCursor = { readonly lastActivityAt: number; readonly id: string };

const COLUMNS = `id, created_at AS createdAt, last_activity_at AS lastActivityAt, turn_count AS turnCount,
                 last_message AS lastMessage`;

/** Characters of a message in a list. */
const PREVIEW_CHARACTERS = 200;

/** The beginning of a message; an astral character is not cut in half. */
export function previewOf(message: string): string {
  const cut = message.slice(0, PREVIEW_CHARACTERS);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}

/** Makes the table's operations over an open connection; writes must run inside its group commit. */
export function conversationTable(db: DatabaseSync) {
  const addTurn = db.prepare(`
    INSERT INTO conversations (id, created_at, last_activity_at, turn_count, last_message)
    VALUES (?1, ?2, ?2, 1, ?3)
    ON CONFLICT (id) DO UPDATE SET
      last_activity_at = max(last_activity_at, excluded.last_activity_at),
      turn_count = turn_count + 1,
      last_message = excluded.last_message`);
  const touch = db.prepare('UPDATE conversations SET last_activity_at = max(last_activity_at, ?) WHERE id = ?');
  const get = db.prepare(`SELECT ${COLUMNS} FROM conversations WHERE id = ?`);
  const newest = db.prepare(`
    SELECT ${COLUMNS} FROM conversations
    ORDER BY last_activity_at DESC, id DESC LIMIT ?`);
  const older = db.prepare(`
    SELECT ${COLUMNS} FROM conversations
    WHERE (last_activity_at, id) < (?, ?)
    ORDER BY last_activity_at DESC, id DESC LIMIT ?`);

  return {
    /** Counts a turn that was accepted at `now`; the first one creates the conversation. */
    addTurn(id: string, message: string, now: number): void {
      addTurn.run(id, now, previewOf(message));
    },

    /** Records activity in the conversation at `now`. */
    touch(id: string, now: number): void {
      touch.run(now, id);
    },

    get: (id: string) => get.get(id) as Conversation | undefined,

    /** Up to `limit` conversations, newest activity first. */
    list(limit: number, cursor?: ActivityCursor): Conversation[] {
      const rows = cursor ? older.all(cursor.lastActivityAt, cursor.id, limit) : newest.all(limit);
      return rows as Conversation[];
    },
  };
}

/** A page of turns ends early when its text has this many characters, to bound the size of an answer. */
const PAGE_CHARACTERS = 4 * 1024 * 1024;

export type TurnPage = { turns: Turn[]; more: boolean };

export type TurnQueries = ReturnType<typeof turnQueries>;

/** Makes the queries over an open connection. */
export function turnQueries(db: DatabaseSync) {
  const select = (rest: string) => db.prepare(`SELECT ${TURN_COLUMNS} FROM turns ${rest}`);
  const one = select('WHERE id = ? AND conversation_id = ?');
  const queued = select(`
    WHERE status = 'queued' AND retry_at IS NULL AND conversation_id = ? AND seq > ? ORDER BY seq LIMIT ?`);
  const newestDone = select(`WHERE status = 'done' ORDER BY seq DESC LIMIT ?`);
  // Other turns ran before a retried turn, which has to see their answers.
  const before = select(`
    WHERE conversation_id = ?1 AND (seq < ?2 OR (seq > ?2 AND finished_at IS NOT NULL)) ORDER BY seq DESC LIMIT ?3`);
  const after = select('WHERE conversation_id = ? AND seq > ? ORDER BY seq');

  return {
    turn(id: string, conversationId: string): Turn | undefined {
      const row = one.get(id, conversationId);
      return row === undefined ? undefined : turnOf(row);
    },

    /**
     * Turns of the conversation that were accepted while this one waited or ran, oldest first, for this one to heed.
     * Those with limited tools are left out: their words must not reach the tools of another turn.
     */
    arrivedAfter: ({ conversationId, seq }: Turn, limit: number): Turn[] =>
      queued
        .all(conversationId, seq, limit)
        .map(turnOf)
        .filter(({ terms }) => terms?.tools === undefined),

    /** The done turns of all conversations that were accepted last, oldest first. */
    newestDone: (limit: number): Turn[] => newestDone.all(limit).map(turnOf).reverse(),

    /** The newest turns of the conversation that were accepted before this one, or ended before it began. */
    turnsBefore: ({ conversationId, seq }: Turn, limit: number): Turn[] =>
      before.all(conversationId, seq, limit).map(turnOf).reverse(),

    /**
     * Turns of a conversation after a position in the order (0 for all), oldest first; `more` when the page ended
     * early.
     */
    turnsAfter(conversationId: string, seq: number, limit: number): TurnPage {
      const page: Turn[] = [];
      let characters = 0;
      for (const row of after.iterate(conversationId, seq)) {
        if (page.length === limit || characters > PAGE_CHARACTERS) return { turns: page, more: true };
        const turn = turnOf(row);
        page.push(turn);
        characters += turn.message.length + (turn.payload?.length ?? 0) + (turn.reply?.length ?? 0);
      }
      return { turns: page, more: false };
    },
  };
}

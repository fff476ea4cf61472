/**
 * The `conversations` table: the data of a list of conversations. Transactions that change turns keep it up to date.
 */
import type { DatabaseSync } from 'node:sqlite';

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

/** The turns of conversations, for their readers and for the context of a turn. */
import type { DatabaseSync } from 'node:sqlite';
import type { Turn } from './turn.ts';
import { TURN_COLUMNS, turnOf } from './turn-table.ts';

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
    /** A turn of this conversation. */
    turn(id: string, conversationId: string): Turn | undefined {
      const row = one.get(id, conversationId);
      return row === undefined ? undefined : turnOf(row);
    },

    /** Turns of the conversation that were accepted while this one waited or ran, oldest first. */
    arrivedAfter: ({ conversationId, seq }: Turn, limit: number): Turn[] =>
      queued.all(conversationId, seq, limit).map(turnOf),

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

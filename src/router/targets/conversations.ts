/** Which session of a target stands behind a conversation, and where it works. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import type { Turn } from './turn.ts';

type Key = Pick<Turn, 'userId' | 'conversationId' | 'preset'>;

/** `session`: none yet, when the next turn is to begin one. */
export type Conversation = { session: string | undefined; cwd: string | undefined };

export class Conversations {
  readonly #get: StatementSync;
  readonly #put: StatementSync;

  constructor(db: DatabaseSync) {
    this.#get = db.prepare(`
      SELECT session, cwd FROM conversations
      WHERE user_id = :userId AND conversation_id = :conversationId AND preset = :preset`);
    // The folder of its first turn stays: the session's files are there.
    this.#put = db.prepare(`
      INSERT INTO conversations (user_id, conversation_id, preset, session, cwd, created_at, updated_at)
      VALUES (:userId, :conversationId, :preset, :session, :cwd, :at, :at)
      ON CONFLICT DO UPDATE SET
        session = excluded.session,
        cwd = CASE WHEN conversations.session IS NULL OR conversations.cwd IS NULL THEN excluded.cwd ELSE conversations.cwd END,
        updated_at = excluded.updated_at`);
  }

  /** @throws ReveilleError `unavailable` when the file cannot be read */
  get({ userId, conversationId, preset }: Key): Conversation | undefined {
    try {
      const row = this.#get.get({ userId, conversationId, preset }) as
        | { session: string | null; cwd: string | null }
        | undefined;
      return row && { session: row.session ?? undefined, cwd: row.cwd ?? undefined };
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  /** Inside a transaction of the store. */
  put({ userId, conversationId, preset }: Key, { session, cwd }: Conversation, at: number): void {
    this.#put.run({ userId, conversationId, preset, session: session ?? null, cwd: cwd ?? null, at });
  }
}

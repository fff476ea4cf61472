/** Tokens of machines that have just been replaced: a turn that began under one may still report how it ended. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Machine } from './machine.ts';

/** For how long receipts under a replaced token are believed. */
const BELIEVED_MS = 10 * 60_000;

export class RetiredTokens {
  readonly #put: StatementSync;
  readonly #get: StatementSync;
  readonly #remove: StatementSync;

  constructor(db: DatabaseSync) {
    this.#put = db.prepare('INSERT OR REPLACE INTO retired_tokens (user_id, token, until) VALUES (?, ?, ?)');
    this.#get = db.prepare('SELECT token FROM retired_tokens WHERE user_id = ? AND until > ?');
    this.#remove = db.prepare('DELETE FROM retired_tokens WHERE user_id = ? OR until <= ?');
  }

  /** Keeps the token that a change replaces, and none of a machine that is deleted; to be called inside the change's transaction. */
  changed(before: Machine | undefined, after: Machine, now: number): void {
    if (before === undefined || before.token === after.token) return;
    this.#remove.run(after.userId, now);
    if (before.token !== '' && after.token !== '') this.#put.run(after.userId, before.token, now + BELIEVED_MS);
  }

  get(userId: string, now: number): string | undefined {
    return (this.#get.get(userId, now) as { token: string } | undefined)?.token;
  }
}

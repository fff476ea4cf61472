/**
 * The durable record of pending turns. It has machines whose daemon accepted a wake and has not been seen idle since.
 * It also has machines whose daemon announced a retry of a failed turn.
 */
import type { StatementSync } from 'node:sqlite';
import type { Logger } from '../../kit/log/log.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';

export class PendingTurns {
  readonly #commits: GroupCommit;
  readonly #log: Logger;
  readonly #add: StatementSync;
  readonly #remove: StatementSync;
  /** By user id. `stored` resolves when it is on disk, or could not be written. */
  readonly #pending = new Map<string, { stored: Promise<void>; dueAt: number | undefined }>();

  constructor({ db }: SqliteFile, commits: GroupCommit, log: Logger) {
    this.#commits = commits;
    this.#log = log;
    this.#add = db.prepare('INSERT OR REPLACE INTO owed_turns (user_id, due_at) VALUES (?, ?)');
    this.#remove = db.prepare('DELETE FROM owed_turns WHERE user_id = ?');
    for (const row of db.prepare('SELECT user_id, due_at FROM owed_turns').all()) {
      const { user_id, due_at } = row as { user_id: string; due_at: number | null };
      this.#pending.set(user_id, { stored: Promise.resolve(), dueAt: due_at ?? undefined });
    }
  }

  has(userId: string): boolean {
    return this.#pending.has(userId);
  }

  /** Whether the machine has to run for its pending turn by now, epoch milliseconds. */
  isDue(userId: string, now: number): boolean {
    const entry = this.#pending.get(userId);
    return entry !== undefined && (entry.dueAt ?? now) <= now;
  }

  userIds(): string[] {
    return [...this.#pending.keys()];
  }

  /**
   * A wake was accepted. Resolves when that is on disk: at once if a turn was pending already. Never rejects: the wake
   * was accepted in any case, and this router keeps the entry in memory.
   */
  add(userId: string): Promise<void> {
    const existing = this.#pending.get(userId);
    return existing && existing.dueAt === undefined ? existing.stored : this.#put(userId, undefined);
  }

  /** The only remaining work is a turn that is retried at `dueAt`, epoch milliseconds. */
  setRetry(userId: string, dueAt: number): void {
    if (this.#pending.get(userId)?.dueAt !== dueAt) void this.#put(userId, dueAt);
  }

  #put(userId: string, dueAt: number | undefined): Promise<void> {
    const add = () => void this.#add.run(userId, dueAt ?? null);
    const stored = this.#write(
      add,
      userId,
      'a pending turn of a machine could not be stored; a restart of the router loses it',
    );
    this.#pending.set(userId, { stored, dueAt });
    return stored;
  }

  /** All turns have ended, or the machine is deleted. A record that stays on disk costs one unnecessary start. */
  remove(userId: string): void {
    if (!this.#pending.delete(userId)) return;
    const remove = () => void this.#remove.run(userId);
    void this.#write(remove, userId, 'the record of a pending turn could not be removed');
  }

  async #write(operation: () => void, userId: string, failure: string): Promise<void> {
    try {
      await this.#commits.run(operation);
    } catch (err) {
      this.#log.warn({ err, user_id: userId }, failure);
    }
  }
}

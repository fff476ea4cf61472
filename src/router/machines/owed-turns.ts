/** The durable record of who owes a turn: machines whose daemon accepted a wake and has not been seen idle since. */
import type { StatementSync } from 'node:sqlite';
import type { Logger } from '../../kit/log/log.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';

export class OwedTurns {
  readonly #commits: GroupCommit;
  readonly #log: Logger;
  readonly #add: StatementSync;
  readonly #remove: StatementSync;
  /** By user id: resolves when it is on disk, or could not be written. */
  readonly #owing = new Map<string, Promise<void>>();

  constructor({ db }: SqliteFile, commits: GroupCommit, log: Logger) {
    this.#commits = commits;
    this.#log = log;
    this.#add = db.prepare('INSERT OR REPLACE INTO owed_turns (user_id) VALUES (?)');
    this.#remove = db.prepare('DELETE FROM owed_turns WHERE user_id = ?');
    for (const row of db.prepare('SELECT user_id FROM owed_turns').all()) {
      this.#owing.set((row as { user_id: string }).user_id, Promise.resolve());
    }
  }

  has(userId: string): boolean {
    return this.#owing.has(userId);
  }

  userIds(): string[] {
    return [...this.#owing.keys()];
  }

  /**
   * A wake was accepted. Resolves when that is on disk: at once for one who owed already. Never rejects: the wake was
   * accepted, whatever the disk says, and the debt holds for as long as this router lives.
   */
  owe(userId: string): Promise<void> {
    let stored = this.#owing.get(userId);
    if (!stored) {
      const add = () => void this.#add.run(userId);
      stored = this.#write(add, userId, 'that a machine owes a turn could not be stored; a restart forgets it');
      this.#owing.set(userId, stored);
    }
    return stored;
  }

  /** Everything is done, or the machine is gone. A record that stays on disk costs one start too many. */
  settle(userId: string): void {
    if (!this.#owing.delete(userId)) return;
    const remove = () => void this.#remove.run(userId);
    void this.#write(remove, userId, 'that a machine owes no turn any more could not be stored');
  }

  async #write(operation: () => void, userId: string, failure: string): Promise<void> {
    try {
      await this.#commits.run(operation);
    } catch (err) {
      this.#log.warn({ err, user_id: userId }, failure);
    }
  }
}

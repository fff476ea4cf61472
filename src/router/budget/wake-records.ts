/** Stores the counted wakes in the registry's file, so that a restarted router knows them. */
import type { StatementSync } from 'node:sqlite';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';

/** An admitted wake; `at` in epoch milliseconds. */
export type CountedWake = { fireId: string; at: number };

export class WakeRecords {
  readonly #commits: GroupCommit;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #of: StatementSync;
  readonly #prune: StatementSync;

  constructor({ db }: SqliteFile, commits: GroupCommit) {
    this.#commits = commits;
    // An existing row no longer counted: the fire repeats after a day.
    this.#put = db.prepare('INSERT OR REPLACE INTO wakes (user_id, fire_id, at) VALUES (?, ?, ?)');
    this.#remove = db.prepare('DELETE FROM wakes WHERE user_id = ? AND fire_id = ?');
    this.#of = db.prepare('SELECT fire_id, at FROM wakes WHERE user_id = ? AND at > ?');
    this.#prune = db.prepare('DELETE FROM wakes WHERE at <= ?');
  }

  /** Resolves when it is on disk; rejects with `unavailable` when it could not be stored. */
  put(userId: string, { fireId, at }: CountedWake): Promise<void> {
    return this.#commits.run(() => void this.#put.run(userId, fireId, at));
  }

  remove(userId: string, fireId: string): Promise<void> {
    return this.#commits.run(() => void this.#remove.run(userId, fireId));
  }

  /**
   * The wakes of a user after an instant.
   *
   * @throws ReveilleError `unavailable` when the file cannot be read
   */
  of(userId: string, after: number): CountedWake[] {
    try {
      return this.#of.all(userId, after).map((row) => ({ fireId: row.fire_id as string, at: row.at as number }));
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  /** Removes wakes up to an instant. */
  prune(until: number): Promise<void> {
    return this.#commits.run(() => void this.#prune.run(until));
  }
}

/** The durable record of remote machines that were awake at the last contact of a router. */
import type { StatementSync } from 'node:sqlite';
import type { Logger } from '../../kit/log/log.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';

/** The records of one provider. It keeps specifications as they were at the wake. */
export class AwakeRecords {
  readonly #provider: string;
  readonly #commits: GroupCommit;
  readonly #log: Logger;
  readonly #keep: StatementSync;
  readonly #forget: StatementSync;
  /** JSON by user id, as on disk. */
  readonly #specs = new Map<string, string>();

  constructor(provider: string, { file, commits, log }: { file: SqliteFile; commits: GroupCommit; log: Logger }) {
    this.#provider = provider;
    this.#commits = commits;
    this.#log = log;
    this.#keep = file.db.prepare(`
      INSERT OR REPLACE INTO awake_machines (user_id, provider, spec)
      VALUES (:userId, :provider, :spec)`);
    this.#forget = file.db.prepare('DELETE FROM awake_machines WHERE user_id = :userId AND provider = :provider');
    for (const row of file.db.prepare('SELECT user_id, spec FROM awake_machines WHERE provider = ?').all(provider)) {
      const { user_id, spec } = row as { user_id: string; spec: string };
      this.#specs.set(user_id, spec);
    }
  }

  userIds(): string[] {
    return [...this.#specs.keys()];
  }

  /** JSON. */
  specOf(userId: string): string | undefined {
    return this.#specs.get(userId);
  }

  /** Call it before the machine is woken; resolves when it is on disk. */
  async keep(userId: string, spec: string): Promise<void> {
    if (this.#specs.get(userId) === spec) return;
    await this.#commits.run(() => void this.#keep.run({ userId, provider: this.#provider, spec }));
    this.#specs.set(userId, spec);
  }

  /** Call it when the machine sleeps. A remaining record costs only one query at the next start of a router. */
  async forget(userId: string): Promise<void> {
    if (!this.#specs.delete(userId)) return;
    try {
      await this.#commits.run(() => void this.#forget.run({ userId, provider: this.#provider }));
    } catch (err) {
      this.#log.warn({ err, user_id: userId }, 'the record of a sleeping machine could not be removed');
    }
  }
}

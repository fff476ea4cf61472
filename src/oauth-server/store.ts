/** The database of the authorization server: `oauth.db` in the data folder of the router. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import { GroupCommit } from '../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../kit/sqlite/open.ts';

const FILE = 'oauth.db';

/** Whether the database exists. */
export const hasStore = (dataDir: string): boolean => existsSync(join(dataDir, FILE));

export class OauthStore {
  readonly #file: SqliteFile;
  readonly #statements = new Map<string, StatementSync>();
  /** Groups the writes into transactions. */
  readonly commits: GroupCommit;

  /**
   * Opens the database without exclusive ownership, because the command line uses it beside the server.
   *
   * @throws ReveilleError as `openDatabase`
   */
  constructor({ dataDir, clock }: { dataDir: string; clock: Clock }) {
    const migrations = new URL('./migrations', import.meta.url);
    this.#file = openDatabase({ path: join(dataDir, FILE), migrations, clock, lock: 'shared' });
    // Deleted tokens must not stay in free pages of the file.
    this.#file.db.exec('PRAGMA secure_delete = ON');
    this.commits = new GroupCommit(this.#file.db);
  }

  /** A statement, prepared once. */
  sql(text: string): StatementSync {
    const statement = this.#statements.get(text) ?? this.#file.db.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }

  async close(): Promise<void> {
    await this.commits.drain();
    this.#file.close();
  }
}

/** The durable record of the processes that were started, so that a router that starts after a crash finds them. */
import type { StatementSync } from 'node:sqlite';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';

/** A process about to be started. */
export type SpawnIntent = { userId: string; spawnId: string; fingerprint: string; port: number };

/** What a row says: an intent, and the process that came of it when the router lived to write that down. */
export type ProcessRecord = SpawnIntent & { born: { pid: number; birth: string } | undefined };

type Row = {
  user_id: string;
  spawn_id: string;
  fingerprint: string;
  port: number;
  pid: number | null;
  birth: string | null;
};

function recordOf(row: Row): ProcessRecord {
  return {
    userId: row.user_id,
    spawnId: row.spawn_id,
    fingerprint: row.fingerprint,
    port: row.port,
    born: row.pid === null || row.birth === null ? undefined : { pid: row.pid, birth: row.birth },
  };
}

export class ProcessRecords {
  readonly #commits: GroupCommit;
  readonly #all: StatementSync;
  readonly #get: StatementSync;
  readonly #intend: StatementSync;
  readonly #bear: StatementSync;
  readonly #listen: StatementSync;
  readonly #forget: StatementSync;

  constructor({ db }: SqliteFile, commits: GroupCommit) {
    this.#commits = commits;
    this.#all = db.prepare('SELECT * FROM processes');
    this.#get = db.prepare('SELECT * FROM processes WHERE user_id = ?');
    this.#intend = db.prepare(`
      INSERT OR REPLACE INTO processes (user_id, spawn_id, fingerprint, port, pid, birth)
      VALUES (:userId, :spawnId, :fingerprint, :port, NULL, NULL)`);
    this.#bear = db.prepare('UPDATE processes SET pid = :pid, birth = :birth WHERE spawn_id = :spawnId');
    this.#listen = db.prepare('UPDATE processes SET port = :port WHERE spawn_id = :spawnId');
    this.#forget = db.prepare('DELETE FROM processes WHERE user_id = :userId AND spawn_id = :spawnId');
  }

  all(): ProcessRecord[] {
    return this.#all.all().map((row) => recordOf(row as Row));
  }

  get(userId: string): ProcessRecord | undefined {
    const row = this.#get.get(userId);
    return row === undefined ? undefined : recordOf(row as Row);
  }

  /** Before the fork. It takes the place of the user's earlier record, whose process must be gone. */
  intend({ userId, spawnId, fingerprint, port }: SpawnIntent): Promise<void> {
    return this.#commits.run(() => void this.#intend.run({ userId, spawnId, fingerprint, port }));
  }

  /**
   * Right after the fork, and not a turn of the event loop later: until then only the environment tells whose process
   * it is.
   */
  born(spawnId: string, pid: number, birth: string): void {
    this.#commits.runNow(() => this.#bear.run({ spawnId, pid, birth }));
  }

  /** The process said that it listens on another port than the one it was given. */
  listensOn(spawnId: string, port: number): Promise<void> {
    return this.#commits.run(() => void this.#listen.run({ spawnId, port }));
  }

  /** When nothing of the process runs any more. */
  forget(userId: string, spawnId: string): Promise<void> {
    return this.#commits.run(() => void this.#forget.run({ userId, spawnId }));
  }
}

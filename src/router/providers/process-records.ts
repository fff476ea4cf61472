/** The durable record of started processes, so that a router finds them after a crash. */
import type { StatementSync } from 'node:sqlite';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';

/** A process about to be started. */
export type SpawnIntent = { userId: string; spawnId: string; fingerprint: string; port: number };

/** The content of a row: an intent to start, and the process if the router could still record it. */
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
  readonly #recordBirth: StatementSync;
  readonly #listen: StatementSync;
  readonly #forget: StatementSync;

  constructor({ db }: SqliteFile, commits: GroupCommit) {
    this.#commits = commits;
    this.#all = db.prepare('SELECT * FROM processes');
    this.#get = db.prepare('SELECT * FROM processes WHERE user_id = ?');
    this.#intend = db.prepare(`
      INSERT OR REPLACE INTO processes (user_id, spawn_id, fingerprint, port, pid, birth)
      VALUES (:userId, :spawnId, :fingerprint, :port, NULL, NULL)`);
    this.#recordBirth = db.prepare('UPDATE processes SET pid = :pid, birth = :birth WHERE spawn_id = :spawnId');
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

  /** Call it before the fork. It replaces the user's earlier record, whose process must have ended. */
  intend({ userId, spawnId, fingerprint, port }: SpawnIntent): Promise<void> {
    return this.#commits.run(() => void this.#intend.run({ userId, spawnId, fingerprint, port }));
  }

  /**
   * Call it right after the fork, in the same turn of the event loop. Until then only the environment identifies the
   * process.
   */
  recordBirth(spawnId: string, pid: number, birth: string): void {
    this.#commits.runNow(() => this.#recordBirth.run({ spawnId, pid, birth }));
  }

  /** The process reported that it listens on another port than the given one. */
  listensOn(spawnId: string, port: number): Promise<void> {
    return this.#commits.run(() => void this.#listen.run({ spawnId, port }));
  }

  /** Call it when no process of the machine runs any more. */
  forget(userId: string, spawnId: string): Promise<void> {
    return this.#commits.run(() => void this.#forget.run({ userId, spawnId }));
  }
}

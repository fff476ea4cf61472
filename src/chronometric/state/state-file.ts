/** The file of the state: opened when it is first needed, opened anew when it was replaced, written to with as much care as is due. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock/clock.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../../kit/sqlite/open.ts';
import { sessionTable } from './session-table.ts';
import { SPANS_KEPT, spanTable } from './span-table.ts';

/** How long a call waits for another server's transaction, which takes a millisecond. It keeps this server from all else meanwhile. */
const BUSY_MS = 2000;

export type Tables = {
  readonly sessions: ReturnType<typeof sessionTable>;
  readonly spans: ReturnType<typeof spanTable>;
};

/**
 * What a write survives once it is acknowledged: `synced` a power cut too, `kept` whatever happens to the process. Markers and beats
 * come every few seconds and promise nothing: losing the last of them to a power cut is no loss, a sync of the disk for each would be.
 */
type Care = 'synced' | 'kept';
const SYNCHRONOUS = { synced: 'FULL', kept: 'NORMAL' } as const;

type Connection = {
  readonly file: SqliteFile;
  readonly inode: number | undefined;
  readonly tables: Tables;
  readonly writes: GroupCommit;
  care: Care;
};

const inodeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

function connect(dataDir: string, clock: Clock, busyTimeoutMs: number): Connection {
  const migrations = new URL('./migrations/', import.meta.url);
  const path = join(dataDir, 'chronometric.db');
  const file = openDatabase({ path, migrations, clock, lock: 'shared', busyTimeoutMs });
  try {
    const { db } = file;
    const tables = { sessions: sessionTable(db), spans: spanTable(db) };
    const writes = new GroupCommit(db);
    writes.runNow(() => tables.spans.keep(SPANS_KEPT));
    return { file, inode: inodeOf(file.path), tables, writes, care: 'synced' };
  } catch (thrown) {
    file.close();
    throw thrown;
  }
}

/** Makes the access to the file of a data folder; the disk is not touched yet. */
export function createStateFile(dataDir: string, clock: Clock, busyMs = BUSY_MS) {
  let connection: Connection | undefined;

  function close(): void {
    connection?.file.close();
    connection = undefined;
  }

  function connected(): Connection {
    // A data folder that somebody moved away or restored: what is written to the old file nobody would read.
    if (connection && inodeOf(connection.file.path) !== connection.inode) close();
    connection ??= connect(dataDir, clock, busyMs);
    return connection;
  }

  return {
    /** For reading. @throws ReveilleError as `openDatabase` does */
    tables: (): Tables => connected().tables,

    /**
     * Runs a transaction; when this returns, what it wrote has the care that was asked for.
     *
     * @throws what the operation threw, or ReveilleError `unavailable`; nothing is stored then
     */
    write<T>(care: Care, operation: (tables: Tables) => T): T {
      const open = connected();
      if (open.care !== care) {
        open.file.db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[care]}`);
        open.care = care;
      }
      return open.writes.runNow(() => operation(open.tables));
    },

    /** Harmless when called twice; the next call would open it again. */
    close,
  };
}

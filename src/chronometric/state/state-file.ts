/** The file of the state: opened on first use, reopened when it was replaced, and written with the requested durability. */
import { type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../kit/clock/clock.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../../kit/sqlite/open.ts';
import { ReveilleError, systemCodeOf, thrownText } from '../../wire/errors.ts';
import { sessionTable } from './session-table.ts';
import { type ActiveSpan, ASLEEP_AFTER_MS, areOne, joined } from './state.ts';

/**
 * Kept intervals: more than a year's, even with fifty a day. The limit is a number, not an age: a clock that is wrong for
 * a moment must not delete anything.
 */
const SPANS_KEPT = 20_000;

/** The table's operations over an open connection. */
function spanTable(db: DatabaseSync) {
  // Spans do not overlap: of earlier starts, only the last can reach into the interval.
  const reachingInto = `
    SELECT began_at AS "from", ended_at AS "to"
      FROM spans
     WHERE began_at >= coalesce((SELECT max(began_at) FROM spans WHERE began_at <= ?1), ?1) AND began_at <= ?2 AND ended_at >= ?1
     ORDER BY began_at`;
  const between = db.prepare(reachingInto);
  const iterated = db.prepare(reachingInto);
  const remove = db.prepare('DELETE FROM spans WHERE began_at = ?');
  const insert = db.prepare(`
    INSERT INTO spans (began_at, ended_at) VALUES (?, ?)
    ON CONFLICT (began_at) DO UPDATE SET ended_at = excluded.ended_at`);
  const oldestKept = db.prepare('SELECT began_at AS at FROM spans ORDER BY began_at DESC LIMIT 1 OFFSET ?');
  const removeBefore = db.prepare('DELETE FROM spans WHERE began_at < ?');

  const spanOf = (row: Record<string, SQLOutputValue>) => ({ from: row.from as number, to: row.to as number });
  const spansBetween = (from: number, to: number) => between.all(from, to).map(spanOf);

  return {
    /** Spans that reach into `[from, to]`, whole, in order. */
    between: spansBetween,

    /** The same as an iterator. One iteration at a time. */
    iterate: (from: number, to: number): Iterable<ActiveSpan> => iterated.iterate(from, to).map(spanOf),

    /** Adds an interval; touching ones are joined. */
    add(added: ActiveSpan): void {
      const near = spansBetween(added.from - ASLEEP_AFTER_MS, added.to + ASLEEP_AFTER_MS);
      const touched = near.filter((span) => areOne(span, added));
      if (touched.some(({ from, to }) => from <= added.from && to >= added.to)) return;
      const whole = joined([added, ...touched]);
      for (const { from } of touched) if (from !== whole.from) remove.run(from);
      insert.run(whole.from, whole.to);
    },

    /** Deletes the oldest beyond a number. */
    keep(number: number): void {
      const oldest = oldestKept.get(number - 1);
      if (oldest) removeBefore.run(oldest.at as number);
    },
  };
}

/** Time limit for another server's transaction, which takes a millisecond. This server does nothing else meanwhile. */
const BUSY_MS = 2000;
/** Time limit of a read for another program's lock, which no server of ours holds. */
const READ_BUSY_MS = 250;

export type Tables = {
  readonly sessions: ReturnType<typeof sessionTable>;
  readonly spans: ReturnType<typeof spanTable>;
};

/**
 * The durability of an acknowledged write: `synced` survives a power cut, `kept` survives the process. Prompts and beats
 * come every few seconds. The loss of the last one in a power cut is acceptable; a disk sync for each one is not.
 */
type Durability = 'synced' | 'kept';
const SYNCHRONOUS = { synced: 'FULL', kept: 'NORMAL' } as const;

type Connection = {
  readonly file: SqliteFile;
  readonly inode: number | undefined;
  readonly tables: Tables;
  readonly writes: GroupCommit;
  durability: Durability;
};

const inodeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

const tablesOf = (db: DatabaseSync): Tables => ({ sessions: sessionTable(db), spans: spanTable(db) });

function connect(path: string, clock: Clock, busyTimeoutMs: number): Connection {
  const migrations = new URL('./migrations/', import.meta.url);
  const file = openDatabase({ path, migrations, clock, lock: 'shared', busyTimeoutMs });
  try {
    const { db } = file;
    const tables = tablesOf(db);
    const writes = new GroupCommit(db);
    writes.runNow(() => tables.spans.keep(SPANS_KEPT));
    return { file, inode: inodeOf(file.path), tables, writes, durability: 'synced' };
  } catch (thrown) {
    file.close();
    throw thrown;
  }
}

/** @returns `undefined` without a file @throws the file system's error for any other path */
function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (thrown) {
    if (systemCodeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

/**
 * Reads a file that this process has not opened, without a change in the folder. While a writer runs, a write-ahead log
 * exists. Without a log, or with an empty one, the file is complete and is read directly: SQLite would create the log, or
 * fail in a read-only folder.
 */
function readUnopened<T>(path: string, read: (tables: Tables) => T): T | undefined {
  const url = pathToFileURL(path);
  if (!fileAt(`${path}-wal`)?.size) url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true, timeout: READ_BUSY_MS });
  try {
    // Another process is creating it.
    if (db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'sessions'`).get() === undefined) return undefined;
    return read(tablesOf(db));
  } finally {
    db.close();
  }
}

/** The access to the file of a data folder, without touching the disk. */
export function createStateFile(dataDir: string, clock: Clock, busyMs = BUSY_MS) {
  const path = join(dataDir, 'chronometric.db');
  let connection: Connection | undefined;

  function close(): void {
    connection?.file.close();
    connection = undefined;
  }

  function connected(): Connection {
    // A data folder may be moved or restored: writes to the old file would be lost.
    if (connection && inodeOf(connection.file.path) !== connection.inode) close();
    connection ??= connect(path, clock, busyMs);
    return connection;
  }

  return {
    /**
     * Reads and creates nothing: through the writing connection if there is one, else through one of its own.
     *
     * @returns `undefined` without a file or without content
     * @throws ReveilleError `unavailable` naming the file when it cannot be read
     */
    read<T>(operation: (tables: Tables) => T): T | undefined {
      try {
        const file = fileAt(path);
        if (connection && file?.ino === connection.inode) return operation(connection.tables);
        if (file === undefined) return undefined;
        // Opening a pipe would block.
        if (!file.isFile()) throw new Error('it is not a file');
        return readUnopened(path, operation);
      } catch (thrown) {
        throw new ReveilleError('unavailable', `${path} cannot be read: ${thrownText(thrown)}`, { cause: thrown });
      }
    },

    /**
     * Runs a transaction; afterwards its writes have the requested durability.
     *
     * @throws the operation's error, or ReveilleError `unavailable`; nothing is stored then
     */
    write<T>(durability: Durability, operation: (tables: Tables) => T): T {
      const open = connected();
      if (open.durability !== durability) {
        open.file.db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
        open.durability = durability;
      }
      return open.writes.runNow(() => operation(open.tables));
    },

    /** Harmless when called twice; the next call would open it again. */
    close,
  };
}

/**
 * The file of the state: opened when it is first needed, opened anew when it was replaced, written to with as much care
 * as is due.
 */

import { type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../kit/clock/clock.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase, type SqliteFile } from '../../kit/sqlite/open.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { sessionTable } from './session-table.ts';
import { areOne, joined } from './spans.ts';
import { type ActiveSpan, ASLEEP_AFTER_MS } from './state.ts';

/**
 * So many stretches are kept, which is more than a year's, even of days with fifty of them. By number and not by age: a
 * clock that is wrong by years for a moment must not take anything away.
 */
const SPANS_KEPT = 20_000;

/** Makes the table's operations over an open connection. */
function spanTable(db: DatabaseSync) {
  // Spans do not overlap: of those that began before, only the last can reach into the stretch.
  const reachingInto = `
    SELECT began_at AS "from", ended_at AS "to"
      FROM spans
     WHERE began_at >= coalesce((SELECT max(began_at) FROM spans WHERE began_at <= ?1), ?1) AND began_at <= ?2 AND ended_at >= ?1
     ORDER BY began_at`;
  const between = db.prepare(reachingInto);
  const walked = db.prepare(reachingInto);
  const remove = db.prepare('DELETE FROM spans WHERE began_at = ?');
  const insert = db.prepare(`
    INSERT INTO spans (began_at, ended_at) VALUES (?, ?)
    ON CONFLICT (began_at) DO UPDATE SET ended_at = excluded.ended_at`);
  const oldestKept = db.prepare('SELECT began_at AS at FROM spans ORDER BY began_at DESC LIMIT 1 OFFSET ?');
  const removeBefore = db.prepare('DELETE FROM spans WHERE began_at < ?');

  const spanOf = (row: Record<string, SQLOutputValue>) => ({ from: row.from as number, to: row.to as number });
  const spansBetween = (from: number, to: number) => between.all(from, to).map(spanOf);

  return {
    /** Those that reach into `[from, to]`, whole, in order. */
    between: spansBetween,

    /** The same, one after the other, for those who may not need them all. One walk at a time. */
    walk: (from: number, to: number): Iterable<ActiveSpan> => walked.iterate(from, to).map(spanOf),

    /** Adds a stretch; whatever it touches becomes one with it. */
    add(added: ActiveSpan): void {
      const near = spansBetween(added.from - ASLEEP_AFTER_MS, added.to + ASLEEP_AFTER_MS);
      const touched = near.filter((span) => areOne(span, added));
      if (touched.some(({ from, to }) => from <= added.from && to >= added.to)) return;
      const whole = joined([added, ...touched]);
      for (const { from } of touched) if (from !== whole.from) remove.run(from);
      insert.run(whole.from, whole.to);
    },

    /** Forgets the oldest beyond a number. */
    keep(number: number): void {
      const oldest = oldestKept.get(number - 1);
      if (oldest) removeBefore.run(oldest.at as number);
    },
  };
}

/**
 * How long a call waits for another server's transaction, which takes a millisecond. It keeps this server from all else
 * meanwhile.
 */
const BUSY_MS = 2000;
/** How long a look waits for somebody who lets nobody read, which no server of ours does. */
const LOOK_BUSY_MS = 250;

export type Tables = {
  readonly sessions: ReturnType<typeof sessionTable>;
  readonly spans: ReturnType<typeof spanTable>;
};

/**
 * What a write survives once it is acknowledged: `synced` a power cut too, `kept` whatever happens to the process.
 * Markers and beats come every few seconds and promise nothing: losing the last of them to a power cut is no loss, a
 * sync of the disk for each would be.
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

const tablesOf = (db: DatabaseSync): Tables => ({ sessions: sessionTable(db), spans: spanTable(db) });

function connect(path: string, clock: Clock, busyTimeoutMs: number): Connection {
  const migrations = new URL('./migrations/', import.meta.url);
  const file = openDatabase({ path, migrations, clock, lock: 'shared', busyTimeoutMs });
  try {
    const { db } = file;
    const tables = tablesOf(db);
    const writes = new GroupCommit(db);
    writes.runNow(() => tables.spans.keep(SPANS_KEPT));
    return { file, inode: inodeOf(file.path), tables, writes, care: 'synced' };
  } catch (thrown) {
    file.close();
    throw thrown;
  }
}

/** @returns `undefined` where there is no such file @throws what the file system says of any other path */
function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return undefined;
    throw thrown;
  }
}

/**
 * Reads a file that this process does not have open, and leaves no trace: not in the folder either. Whoever writes has
 * a write-ahead log beside it. Where there is none, or nothing in it, the file is whole and is read as it lies there;
 * SQLite would make the log otherwise, or fail in a folder in which it may not.
 */
function look<T>(path: string, read: (tables: Tables) => T): T | undefined {
  const url = pathToFileURL(path);
  if (!fileAt(`${path}-wal`)?.size) url.searchParams.set('immutable', '1');
  const db = new DatabaseSync(url, { readOnly: true, timeout: LOOK_BUSY_MS });
  try {
    // Somebody is about to make it.
    if (db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'sessions'`).get() === undefined) return undefined;
    return read(tablesOf(db));
  } finally {
    db.close();
  }
}

/** Makes the access to the file of a data folder; the disk is not touched yet. */
export function createStateFile(dataDir: string, clock: Clock, busyMs = BUSY_MS) {
  const path = join(dataDir, 'chronometric.db');
  let connection: Connection | undefined;

  function close(): void {
    connection?.file.close();
    connection = undefined;
  }

  function connected(): Connection {
    // A data folder that somebody moved away or restored: what is written to the old file nobody would read.
    if (connection && inodeOf(connection.file.path) !== connection.inode) close();
    connection ??= connect(path, clock, busyMs);
    return connection;
  }

  return {
    /**
     * Reads, and makes nothing: through the connection that writes where there is one, else through one of its own.
     *
     * @returns `undefined` where there is no file, or nothing in it yet
     * @throws ReveilleError `unavailable` naming the file when it cannot be read
     */
    read<T>(operation: (tables: Tables) => T): T | undefined {
      try {
        const file = fileAt(path);
        if (connection && file?.ino === connection.inode) return operation(connection.tables);
        if (file === undefined) return undefined;
        // Whoever opens a pipe waits for its other end.
        if (!file.isFile()) throw new Error('it is no file');
        return look(path, operation);
      } catch (thrown) {
        const why = thrown instanceof Error ? thrown.message : String(thrown);
        throw new ReveilleError('unavailable', `${path} cannot be read: ${why}`, { cause: thrown });
      }
    },

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

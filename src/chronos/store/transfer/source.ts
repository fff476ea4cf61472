/** The SQLite file that alarms move from. */
import { realpathSync, statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { Clock } from '../../../kit/clock/clock.ts';
import { FileInUse, likelyOwner } from '../../../kit/sqlite/file-owner.ts';
import { openDatabase, type SqliteFile } from '../../../kit/sqlite/open.ts';
import { storageError } from '../../../kit/sqlite/sqlite-error.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { MIGRATIONS } from '../sqlite/store.ts';
import { readSourceState, type SourceState, writeSourceState } from '../sqlite/transfer-state.ts';
import type { MovingTable, Values } from './tables.ts';

/** Runs a query and translates SQLite's errors. */
function read<T>(query: () => T): T {
  try {
    return query();
  } catch (thrown) {
    throw storageError(thrown);
  }
}

function checkThere(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return;
  throw new ReveilleError(
    'not_found',
    `${path} contains no alarms; name the chronos.db with the alarms with --from, or set CHRONOS_DATA_DIR to its folder`,
  );
}

/** Queries of the file that need no ownership. */
class AlarmFile {
  readonly path: string;
  readonly #db: DatabaseSync;

  constructor(path: string, db: DatabaseSync) {
    this.path = path;
    this.#db = db;
  }

  /** The number of rows of a table, counted in the table and not in an index. */
  count({ source: { rows } }: MovingTable): number {
    const row = read(() => this.#db.prepare(`SELECT count(*) AS rows FROM ${rows}`).get());
    return (row as { rows: number }).rows;
  }

  /** The rows of a table in key order, after a key or from the first; read on demand. */
  *rows({ source, key }: MovingTable, after?: readonly unknown[]): Generator<Values> {
    const behind = after ? `WHERE (${key.columns}) > (${after.map(() => '?').join(', ')})` : '';
    const statement = this.#db.prepare(
      `SELECT ${source.columns} FROM ${source.from} ${behind} ORDER BY ${key.columns}`,
    );
    statement.setReturnArrays(true);
    try {
      yield* statement.iterate(...((after ?? []) as SQLInputValue[])) as unknown as Iterable<Values>;
    } catch (thrown) {
      throw storageError(thrown);
    }
  }
}

/** The file with exclusive ownership: no other process writes to it. */
export class Source extends AlarmFile {
  readonly #file: SqliteFile;
  #state: SourceState | undefined;

  /**
   * Takes ownership of the file and updates its schema, as chronosd does.
   *
   * @throws ReveilleError `not_found` when there is none, `unavailable` while chronosd or `reveille up` owns it, and as
   *   `openDatabase` does
   */
  constructor(path: string, clock: Clock) {
    checkThere(path);
    let file: SqliteFile;
    try {
      file = openDatabase({ path, migrations: MIGRATIONS, clock, lock: 'exclusive' });
    } catch (thrown) {
      if (!(thrown instanceof FileInUse)) throw thrown;
      const [who, how] =
        thrown.pid === undefined
          ? ['another process', 'where it runs']
          : [`process ${thrown.pid}`, `where it runs, or "kill ${thrown.pid}"`];
      throw new ReveilleError(
        'unavailable',
        `${path} is in use by ${who}; stop that with Ctrl-C ${how}, leave it stopped, and run this again`,
        { cause: thrown },
      );
    }
    super(file.path, file.db);
    this.#file = file;
    this.#state = readSourceState(file.db);
  }

  /** The state in the file; `undefined` when no move was ever started. */
  get state(): SourceState | undefined {
    return this.#state;
  }

  /** Stores the state; durable when this returns. */
  writeState(state: SourceState): void {
    read(() => writeSourceState(this.#file.db, state));
    this.#state = state;
  }

  close(): void {
    this.#file.close();
  }
}

/** Read-only access to the file, also while chronosd runs. */
export class SourceView extends AlarmFile {
  readonly departure: SourceState | undefined;
  /** The process that seems to have it open. */
  readonly owner: number | undefined;
  readonly #db: DatabaseSync;
  readonly #tables: ReadonlySet<unknown>;

  /**
   * @throws ReveilleError `not_found` when there is none, `conflict` when it is another kind of file
   */
  constructor(path: string) {
    checkThere(path);
    const db = read(() => new DatabaseSync(path, { readOnly: true, timeout: 5000 }));
    super(realpathSync(path), db);
    this.#db = db;
    this.owner = likelyOwner(this.path);
    try {
      const tables = read(() => db.prepare(`SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')`).all());
      const names = new Set(tables.map(({ name }) => name));
      this.#tables = names;
      if (!['alarms', 'occurrences', 'fire_attempts', 'agent_keys', 'owners'].every((name) => names.has(name)))
        throw new ReveilleError('conflict', `${path} contains no alarms of Reveille; name its chronos.db with --from`);
      this.departure = names.has('departures') ? readSourceState(db) : undefined;
    } catch (thrown) {
      db.close();
      throw thrown;
    }
  }

  /** A file of an earlier Reveille may lack a table, or name it differently; the move itself migrates it. */
  override count(table: MovingTable): number {
    const { name: rows } = table;
    if (!this.#tables.has(rows)) return 0;
    return super.count(this.#tables.has('progress') ? table : { ...table, source: { ...table.source, rows } });
  }

  close(): void {
    this.#db.close();
  }
}

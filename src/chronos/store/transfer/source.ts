/** The SQLite file that alarms move out of. */
import { realpathSync, statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { Clock } from '../../../kit/clock/clock.ts';
import { FileInUse, likelyOwner } from '../../../kit/sqlite/file-owner.ts';
import { openDatabase, type SqliteFile } from '../../../kit/sqlite/open.ts';
import { storageError } from '../../../kit/sqlite/sqlite-error.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { type Departure, readDeparture, writeDeparture } from '../sqlite/departure.ts';
import { MIGRATIONS } from '../sqlite/store.ts';
import type { MovingTable, Values } from './tables.ts';

/** What SQLite throws, in the house's words. */
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
    `${path} is no file with alarms; name the chronos.db that they are in with --from, or set CHRONOS_DATA_DIR to its folder`,
  );
}

/** What can be asked of the file, whoever owns it. */
class AlarmFile {
  readonly path: string;
  readonly #db: DatabaseSync;

  constructor(path: string, db: DatabaseSync) {
    this.path = path;
    this.#db = db;
  }

  /** How many rows a table has, counted where they are kept and not in an index over them. */
  count({ source: { rows } }: MovingTable): number {
    const row = read(() => this.#db.prepare(`SELECT count(*) AS rows FROM ${rows} NOT INDEXED`).get());
    return (row as { rows: number }).rows;
  }

  /**
   * The rows of a table in the order of its key, from behind a key on or from the first; read as they are asked for.
   */
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

/** The file as its only owner has it: nobody else writes to it meanwhile. */
export class Source extends AlarmFile {
  readonly #file: SqliteFile;
  #departure: Departure | undefined;

  /**
   * Takes the file over and brings its schema up to date, as chronosd does.
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
    this.#departure = readDeparture(file.db);
  }

  /** What the file says of its whereabouts; `undefined` when it never was to move. */
  get departure(): Departure | undefined {
    return this.#departure;
  }

  /** Writes it down; durable when this returns. */
  mark(departure: Departure): void {
    read(() => writeDeparture(this.#file.db, departure));
    this.#departure = departure;
  }

  close(): void {
    this.#file.close();
  }
}

/** The file as anybody may look at it, while chronosd runs too. Nothing of it is changed. */
export class SourceView extends AlarmFile {
  readonly departure: Departure | undefined;
  /** The process that seems to have it open. */
  readonly owner: number | undefined;
  readonly #db: DatabaseSync;
  readonly #tables: ReadonlySet<unknown>;

  /** @throws ReveilleError `not_found` when there is none, `conflict` when it is something else */
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
        throw new ReveilleError('conflict', `${path} holds no alarms of Reveille; name its chronos.db with --from`);
      this.departure = names.has('departures') ? readDeparture(db) : undefined;
    } catch (thrown) {
      db.close();
      throw thrown;
    }
  }

  /** A file of an earlier Reveille may lack a table, or know it by another name; the move itself makes it. */
  override count(table: MovingTable): number {
    const rows = [table.source.rows, table.name].find((name) => this.#tables.has(name));
    return rows === undefined ? 0 : super.count({ ...table, source: { ...table.source, rows } });
  }

  close(): void {
    this.#db.close();
  }
}

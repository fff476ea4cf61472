/**
 * Fixes the content of several databases while other processes write to them.
 *
 * A read transaction on each database (all are in WAL mode) fixes the content of its copy for as long as the copy takes,
 * and blocks no writer. The transactions start within about a millisecond. If no database changed between the first and
 * the last one, the copies show one instant; otherwise the attempt is repeated. Under constant load the order of
 * {@link DATABASES} remains.
 */
import { existsSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { isDamage, storageError } from '../../kit/sqlite/sqlite-error.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { DATABASES, databasePath, schemaVersion } from '../home/databases.ts';

const BUSY_MS = 5000;
const ATTEMPTS = 40;
/** Pages per step, copied on a thread of SQLite. */
const PAGES = 1024;

/** One database with fixed content. */
export type Fixed = {
  /** Its file, and its path in a home. */
  readonly source: string;
  readonly path: string;
  /** The number of migrations; 0 for a database without tables. */
  readonly schema: number;
  /** Writes the fixed content to a new file. */
  copyTo(file: string): Promise<void>;
};

export type Cut = { readonly kind: 'instant' | 'ordered'; readonly databases: readonly Fixed[]; close(): void };

type Opened = { source: string; path: string; reader: DatabaseSync; watcher: DatabaseSync };

function open(source: string, path: string): Opened {
  inspectDatabase(source, BUSY_MS);
  const reader = new DatabaseSync(source, { readOnly: true, timeout: BUSY_MS });
  try {
    const mode = reader.prepare('PRAGMA journal_mode').get()?.journal_mode;
    if (mode !== 'wal') {
      const message = `${source} is in journal mode ${mode}, in which a copy would block its writers; start Reveille once, which sets WAL`;
      throw new ReveilleError('conflict', message);
    }
    return { source, path, reader, watcher: new DatabaseSync(source, { readOnly: true, timeout: BUSY_MS }) };
  } catch (thrown) {
    reader.close();
    throw thrown;
  }
}

const versionOf = ({ watcher }: Opened) => watcher.prepare('PRAGMA data_version').get()?.data_version;

/** @returns whether nothing changed meanwhile */
function fix(opened: readonly Opened[]): boolean {
  const before = opened.map(versionOf);
  for (const { reader } of opened) {
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM sqlite_schema').get();
  }
  return opened.every((database, index) => versionOf(database) === before[index]);
}

/**
 * Fixes the existing databases of an installation.
 *
 * @param settings with the data folders
 * @throws ReveilleError `unavailable` when one is damaged or cannot be read
 */
export async function fixDatabases(settings: Settings): Promise<Cut> {
  const opened: Opened[] = [];
  const close = () => {
    for (const { reader, watcher } of opened) for (const db of [reader, watcher]) if (db.isOpen) db.close();
  };
  try {
    for (const known of DATABASES) {
      const source = databasePath(settings, known);
      if (existsSync(source)) opened.push(open(source, `${known.folder}/${known.file}`));
    }
    let isInstant = fix(opened);
    for (let attempt = 1; !isInstant && attempt < ATTEMPTS; attempt++) {
      for (const { reader } of opened) reader.exec('ROLLBACK');
      await pause(1);
      isInstant = fix(opened);
    }
    const databases = opened.map((database): Fixed => {
      const { source, path, reader } = database;
      return {
        source,
        path,
        schema: schemaVersion(reader),
        // The connection's own transaction stays open, so the copy has the fixed content.
        copyTo: async (file) => void (await backup(reader, file, { rate: PAGES })),
      };
    });
    return { kind: isInstant ? 'instant' : 'ordered', databases, close };
  } catch (thrown) {
    close();
    throw isDamage(thrown) ? storageError(thrown) : thrown;
  }
}

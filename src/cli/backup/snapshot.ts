/**
 * Fixing what several databases hold while others write to them.
 *
 * A read transaction on each (all are in WAL mode) fixes what a copy of it will hold, however long the copying takes;
 * nobody waits for it. The transactions begin one after another within a millisecond or so. When no database has
 * changed between the first and the last of them, together they are what there was at one moment; else the attempt is
 * repeated. Under a load that leaves no such gap the order of {@link DATABASES} remains.
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
/** Pages that are copied in one step, on a thread of SQLite's own. */
const PAGES = 1024;

/** One database whose content is fixed. */
export type Fixed = {
  /** Its file, and its path in a home. */
  readonly source: string;
  readonly path: string;
  /** How many migrations made it; 0 for one without tables. */
  readonly schema: number;
  /** Writes what was fixed to a new file. */
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
      const message = `${source} is in journal mode ${mode}, in which a copy would make its writers wait; start Reveille once, which sets it`;
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
 * Fixes the databases of an installation, as far as there are any.
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
        // The connection's own transaction goes on, so what is copied is what was fixed.
        copyTo: async (file) => void (await backup(reader, file, { rate: PAGES })),
      };
    });
    return { kind: isInstant ? 'instant' : 'ordered', databases, close };
  } catch (thrown) {
    close();
    throw isDamage(thrown) ? storageError(thrown) : thrown;
  }
}

/** The databases of an installation: where each lies, and which migrations make it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readMigrations } from '../../kit/sqlite/migrations.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';

const BUSY_MS = 5000;

export type KnownDatabase = {
  /** The setting that names its folder, and that folder's name in a home. */
  readonly variable: string;
  readonly folder: string;
  readonly file: string;
  /** The folder of its numbered migrations, seen from this file. */
  readonly migrations: URL;
};

const from = (path: string) => new URL(`../../${path}/migrations`, import.meta.url);

/**
 * Whoever hands work over stands before whoever takes it: chronosd wakes through the router, the router posts turns to
 * agents, agents hand tasks to the executor. A copy made in this order may hold work that was handed over twice, which
 * the receiver recognises, and none that was taken and is in nobody's hands.
 */
export const DATABASES: readonly KnownDatabase[] = [
  { variable: 'CHRONOS_DATA_DIR', folder: 'chronos', file: 'chronos.db', migrations: from('chronos/store/sqlite') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'router.db', migrations: from('router/machines') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'turns.db', migrations: from('router/targets') },
  { variable: 'NEO_DATA_DIR', folder: 'neo', file: 'neo.db', migrations: from('neo/conversations') },
  { variable: 'NEO_DATA_DIR', folder: 'neo', file: 'cortex.db', migrations: from('neo/memory') },
  { variable: 'EXECUTOR_DATA_DIR', folder: 'executor', file: 'journal.db', migrations: from('executor/journal') },
  {
    variable: 'CHRONOMETRIC_DATA_DIR',
    folder: 'chronometric',
    file: 'chronometric.db',
    migrations: from('chronometric/state'),
  },
  { variable: 'NOTIFY_DATA_DIR', folder: 'notify', file: 'notify.db', migrations: from('notify') },
  { variable: 'LEDGER_DATA_DIR', folder: 'ledger', file: 'ledger.db', migrations: from('../examples/ledger') },
];

/** The settings that name a data folder, with the folder's name in a home. */
export const DATA_FOLDERS: ReadonlyMap<string, string> = new Map(
  DATABASES.map(({ variable, folder }) => [variable, folder]),
);

export const databasePath = (settings: Settings, { variable, file }: KnownDatabase): string =>
  join(settings[variable]!, file);

/** The schema version of each database that there is, by its path in a home; 0 for one without tables. */
export function schemasOf(settings: Settings): Record<string, number> {
  const versions = DATABASES.flatMap((known): [string, number][] => {
    const path = databasePath(settings, known);
    if (!existsSync(path)) return [];
    const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
    try {
      return [[`${known.folder}/${known.file}`, schemaVersion(db)]];
    } finally {
      db.close();
    }
  });
  return Object.fromEntries(versions);
}

/** How many migrations made a database; 0 for one without tables. */
export function schemaVersion(db: DatabaseSync): number {
  const isMade = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'`).get() !== undefined;
  return isMade ? Number(db.prepare('SELECT max(version) AS version FROM schema_migrations').get()?.version ?? 0) : 0;
}

/**
 * @param schemas by the databases' paths in a home
 * @param whose begins the sentence: what was made by whom
 * @throws ReveilleError `conflict` when one was made by a newer version than this one
 */
export function checkSchemas(schemas: Readonly<Record<string, number>>, whose: string): void {
  for (const { folder, file, migrations } of DATABASES) {
    const known = readMigrations(migrations).length;
    const schema = schemas[`${folder}/${file}`] ?? 0;
    if (schema <= known) continue;
    const message = `${whose} a newer Reveille (schema ${schema} of ${file}, this one knows ${known}); use that version or a later one`;
    throw new ReveilleError('conflict', message);
  }
}

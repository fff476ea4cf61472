/** The databases of an installation: their locations and migrations. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readMigrations } from '../../kit/sqlite/migrations.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';

const BUSY_MS = 5000;

export type KnownDatabase = {
  /** The setting with its folder, and that folder's name in a home. */
  readonly variable: string;
  readonly folder: string;
  readonly file: string;
  /** The folder of its numbered migrations, relative to this file. */
  readonly migrations: URL;
};

const from = (path: string) => new URL(`../../${path}/migrations`, import.meta.url);

/**
 * Senders come before receivers: chronosd wakes through the router, the router posts turns to agents, agents submit
 * intents to the executor. A copy in this order may contain work twice, which the receiver recognises, and loses none.
 */
export const DATABASES: readonly KnownDatabase[] = [
  { variable: 'CHRONOS_DATA_DIR', folder: 'chronos', file: 'chronos.db', migrations: from('chronos/store/sqlite') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'router.db', migrations: from('router/machines') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'a2a.db', migrations: from('a2a') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'turns.db', migrations: from('agents') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'oauth.db', migrations: from('oauth-server') },
  { variable: 'ROUTER_DATA_DIR', folder: 'router', file: 'mcp-events.db', migrations: from('mcp-http/events') },
  { variable: 'NEO_DATA_DIR', folder: 'neo', file: 'neo.db', migrations: from('agents/neo/conversations') },
  { variable: 'NEO_DATA_DIR', folder: 'neo', file: 'cortex.db', migrations: from('agents/neo/memory') },
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

/** The settings of data folders, with the folders' names in a home. */
export const DATA_FOLDERS: ReadonlyMap<string, string> = new Map(
  DATABASES.map(({ variable, folder }) => [variable, folder]),
);

export const databasePath = (settings: Settings, { variable, file }: KnownDatabase): string =>
  join(settings[variable]!, file);

/** The schema version of each existing database, by its path in a home; 0 for one without tables. */
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

/** The number of migrations of a database; 0 for one without tables. */
export function schemaVersion(db: DatabaseSync): number {
  const isMade = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'`).get() !== undefined;
  return isMade ? Number(db.prepare('SELECT max(version) AS version FROM schema_migrations').get()?.version ?? 0) : 0;
}

/**
 * @param schemas by the databases' paths in a home
 * @param whose begins the sentence: what was written by which program
 * @throws ReveilleError `conflict` when a newer version wrote one of them
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

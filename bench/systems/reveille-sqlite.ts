/** Reveille on SQLite: one chronosd, one file. */
import { copyFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Workbench } from '../workbench.ts';
import { SEED_OWNER, setSeedAlarm } from './agent.ts';
import { startChronosd } from './chronosd.ts';
import { type Copies, copiesOf, copyRows, identityOf, pendingCopies, SQLITE } from './copies.ts';
import type { ReveilleInstallation, ReveilleSystem, Running } from './system.ts';

/** chronosd's file in its data folder. */
export const SQLITE_FILE = 'chronos.db';
/** Copies per statement: each statement blocks the event loop of the benchmark. */
const CHUNK = 100_000;

const SEED: Record<string, string> = {
  definitions: `owner = '${SEED_OWNER}'`,
  progress: `alarm = (SELECT seq FROM definitions WHERE owner = '${SEED_OWNER}')`,
};

function columnsOf(db: DatabaseSync, table: string): string[] {
  const rows = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all() as { name: string }[];
  return rows.map(({ name }) => name);
}

/** Owners come first: pending occurrences refer to them by number. */
function insertOwners(db: DatabaseSync, { from, until, owners }: Copies): void {
  const names = `'user-' || ${SQLITE.ownerDigits(owners)}`;
  db.exec(`${SQLITE.numbers(from, Math.min(until, from + owners))}
    INSERT OR IGNORE INTO owners (owner, open_alarms, stored_alarms, stored_bytes) SELECT ${names}, 0, 0, 0 FROM numbers`);
}

function insertCopies(db: DatabaseSync, copies: Copies): void {
  const { last } = db.prepare('SELECT max(seq) AS last FROM definitions').get() as { last: number };
  const { owner, ...identity } = identityOf(SQLITE, copies);
  const seq = `${last + 1 - copies.from} + i`;
  insertOwners(db, copies);
  for (const [table, seed] of Object.entries(SEED)) {
    const own =
      table === 'progress'
        ? { ...identity, alarm: seq, owner: `(SELECT seq FROM owners WHERE owner = ${owner})` }
        : { ...identity, owner: owner!, seq };
    db.exec(copyRows(SQLITE, { table, columns: columnsOf(db, table), own, seed }, copies));
  }
}

/**
 * Recomputes the counters that chronosd keeps per owner: every loaded alarm is active and has one pending occurrence.
 */
function refreshOwners(db: DatabaseSync): void {
  db.exec(`
    UPDATE owners SET open_alarms = coalesce(counted.alarms, 0)
    FROM (SELECT owner, count(*) AS alarms FROM progress GROUP BY owner) AS counted WHERE counted.owner = owners.seq`);
}

/** Opens the file of a stopped chronosd for bulk work: none of it has to survive a power failure. */
export async function withFile<T>(folder: string, work: (db: DatabaseSync) => Promise<T> | T): Promise<T> {
  const db = new DatabaseSync(join(folder, SQLITE_FILE), { enableForeignKeyConstraints: false });
  try {
    db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000');
    const result = await work(db);
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return result;
  } finally {
    db.close();
  }
}

async function addCopies(
  folder: string,
  copies: readonly Copies[],
  onProgress?: (added: number) => void,
): Promise<void> {
  await withFile(folder, async (db) => {
    let added = 0;
    for (const range of copies) {
      for (let from = range.from; from < range.until; from += CHUNK) {
        const until = Math.min(from + CHUNK, range.until);
        db.exec('BEGIN');
        insertCopies(db, { ...range, from, until });
        db.exec('COMMIT');
        added += until - from;
        onProgress?.(added);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    refreshOwners(db);
  });
}

/** Creates, once, a database with one alarm: the start of every installation. */
async function makeTemplate(bench: Workbench): Promise<string> {
  const folder = bench.makeFolder('sqlite-template');
  const chronosd = await startChronosd(bench, { folder });
  await setSeedAlarm(chronosd.url);
  await chronosd.stop();
  return folder;
}

async function installCopy(bench: Workbench, template: string): Promise<ReveilleInstallation> {
  const folder = bench.makeFolder('sqlite');
  copyFileSync(join(template, SQLITE_FILE), join(folder, SQLITE_FILE));
  let running: Running | undefined;
  return {
    location: { folder },
    load: (series) => addCopies(folder, series.map(copiesOf)),
    addPending: (from, until, onProgress) => addCopies(folder, [pendingCopies(from, until, Date.now())], onProgress),
    bytes: async () => statSync(join(folder, SQLITE_FILE)).size,
    async start(target = bench.sink.url) {
      running = await startChronosd(bench, { folder }, { CHRONOS_ROUTER_WAKE_URL: target });
      return running;
    },
    async remove() {
      await running?.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

export function reveilleOnSqlite(bench: Workbench): ReveilleSystem {
  let template: Promise<string> | undefined;
  return {
    name: 'reveille-sqlite',
    title: 'Reveille, SQLite',
    settings: 'chronosd with its default settings, `synchronous=FULL`.',
    store: 'sqlite',
    loadRate: 40_000,
    async install() {
      template ??= makeTemplate(bench);
      return installCopy(bench, await template);
    },
  };
}

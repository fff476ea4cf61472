/**
 * The bare insert: one row as wide as an alarm with all its texts, with an index on the key only. Each row has its own
 * transaction, through the driver alone.
 */
import { randomUUID } from 'node:crypto';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import pg from 'pg';
import { SQLITE_FILE } from './systems/reveille-sqlite.ts';
import type { DataLocation } from './systems/system.ts';

/** Counts how often per second the loops of a measurement complete `work`. */
type Count = (work: (loop: number) => Promise<void>) => Promise<number>;

/** SQLite writes one transaction after the other, so this is the single-threaded rate for any number of loops. */
async function intoSqlite(folder: string, count: Count): Promise<number> {
  const db = new DatabaseSync(`${folder}/${SQLITE_FILE}`, { enableForeignKeyConstraints: false });
  try {
    db.exec(`PRAGMA synchronous = FULL;
      CREATE TABLE bare AS SELECT * FROM alarms LIMIT 1;
      CREATE UNIQUE INDEX bare_key ON bare (owner, id)`);
    const [row] = db.prepare('SELECT * FROM bare').all() as Record<string, SQLInputValue>[];
    const names = Object.keys(row!);
    const insert = db.prepare(`INSERT INTO bare (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`);
    const values = Object.values(row!);
    const id = names.indexOf('id');
    return await count(async () => {
      values[id] = randomUUID();
      insert.run(...values);
    });
  } finally {
    db.exec('DROP TABLE bare');
    db.close();
  }
}

/** One connection per loop; each waits for its own commit. */
async function intoPostgres(uri: string, loops: number, count: Count): Promise<number> {
  const clients = Array.from({ length: loops }, () => new pg.Client({ connectionString: uri }));
  for (const client of clients) client.on('error', () => {});
  await Promise.all(clients.map((client) => client.connect()));
  try {
    await clients[0]!.query('CREATE TABLE bare AS SELECT * FROM alarms LIMIT 1');
    await clients[0]!.query('CREATE UNIQUE INDEX bare_key ON bare (owner, id)');
    const { rows } = await clients[0]!.query('SELECT * FROM bare');
    const names = Object.keys(rows[0]);
    const marks = names.map((_, index) => `$${index + 1}`);
    const text = `INSERT INTO bare (${names.join(', ')}) VALUES (${marks.join(', ')})`;
    const id = names.indexOf('id');
    return await count(async (loop) => {
      const values = Object.values(rows[0]);
      values[id] = randomUUID();
      await clients[loop]!.query({ name: 'bare', text, values });
    });
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

/**
 * Bare row inserts per second of the database.
 *
 * @param location an installation without running processes
 * @param loops how many loops insert in parallel
 */
export function bareInserts(location: DataLocation, loops: number, count: Count): Promise<number> {
  return 'folder' in location ? intoSqlite(location.folder, count) : intoPostgres(location.uri, loops, count);
}

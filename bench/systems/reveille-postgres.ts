/** Reveille on PostgreSQL: any number of chronosd on one database. */
import type pg from 'pg';
import { createDatabase, type Database, dropDatabase, settleDatabase, withClient } from '../databases.ts';
import type { Workbench } from '../workbench.ts';
import { SEED_OWNER, setSeedAlarm } from './agent.ts';
import { startChronosd } from './chronosd.ts';
import { type Copies, copiesOf, copyRows, identityOf, POSTGRES, pendingCopies } from './copies.ts';
import { type ReveilleInstallation, type ReveilleSystem, type Running, Unavailable } from './system.ts';

/** Copies made by one statement. */
const CHUNK = 250_000;
const TABLES = ['alarms', 'occurrences'];

async function columnsOf(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
    [table],
  );
  return rows.map(({ name }) => name);
}

async function insertCopies(client: pg.Client, copies: Copies): Promise<void> {
  const own = identityOf(POSTGRES, copies);
  for (const table of TABLES) {
    const columns = await columnsOf(client, table);
    await client.query(copyRows(POSTGRES, { table, columns, own, seed: `owner = '${SEED_OWNER}'` }, copies));
  }
}

/** What chronosd keeps per owner, computed afresh: every loaded alarm is active and owes one occurrence. */
async function refreshOwners(client: pg.Client): Promise<void> {
  await client.query(`
    INSERT INTO owners (owner, open_at_most)
    SELECT owner, count(*) FROM occurrences GROUP BY owner
    ON CONFLICT (owner) DO UPDATE SET open_at_most = excluded.open_at_most`);
}

async function addCopies(
  database: Database,
  copies: readonly Copies[],
  onProgress?: (added: number) => void,
): Promise<void> {
  await withClient(database.uri, async (client) => {
    let added = 0;
    for (const range of copies) {
      for (let from = range.from; from < range.until; from += CHUNK) {
        const until = Math.min(from + CHUNK, range.until);
        await insertCopies(client, { ...range, from, until });
        added += until - from;
        onProgress?.(added);
      }
    }
    await refreshOwners(client);
  });
  await settleDatabase(database);
}

/** Makes, once, a database with one alarm in it: what every installation starts from. */
async function makeTemplate(bench: Workbench): Promise<Database> {
  const database = await createDatabase(bench);
  const chronosd = await startChronosd(bench, { uri: database.uri }).catch((error: Error) => {
    throw new Unavailable(error.message);
  });
  await setSeedAlarm(chronosd.url);
  await chronosd.stop();
  return database;
}

async function installCopy(bench: Workbench, template: Database): Promise<ReveilleInstallation> {
  const database = await createDatabase(bench, template);
  const running: Running[] = [];
  return {
    uri: database.uri,
    place: { uri: database.uri },
    load: (series) => addCopies(database, series.map(copiesOf)),
    addPending: (from, until, onProgress) => addCopies(database, [pendingCopies(from, until, Date.now())], onProgress),
    async start(target = bench.sink.url) {
      const chronosd = await startChronosd(bench, { uri: database.uri }, { CHRONOS_ROUTER_WAKE_URL: target });
      running.push(chronosd);
      return chronosd;
    },
    async remove() {
      await Promise.all(running.map((chronosd) => chronosd.stop()));
      await dropDatabase(bench, database);
    },
  };
}

export function reveilleOnPostgres(bench: Workbench): ReveilleSystem {
  let template: Promise<Database> | undefined;
  return {
    name: 'reveille-postgres',
    title: 'Reveille, PostgreSQL',
    settings: 'chronosd with its default settings.',
    store: 'postgres',
    loadRate: 25_000,
    async install() {
      template ??= makeTemplate(bench);
      return installCopy(bench, await template);
    },
  };
}

/** Reveille on PostgreSQL: any number of chronosd processes on one database. */
import type pg from 'pg';
import { bucketOf, OWNED_TABLES } from '../../src/chronos/store/sharding/buckets.ts';
import type { CitusCluster } from '../../test/support/postgres/citus.ts';
import {
  createDatabase,
  type Database,
  databaseBytes,
  dropDatabase,
  settleDatabase,
  withClient,
} from '../databases.ts';
import type { Workbench } from '../workbench.ts';
import { SEED_OWNER, setSeedAlarm } from './agent.ts';
import { startChronosd } from './chronosd.ts';
import { type Copies, copiesOf, copyRows, identityOf, POSTGRES, pendingCopies } from './copies.ts';
import { type ReveilleInstallation, type ReveilleSystem, type Running, type System, Unavailable } from './system.ts';

/** Copies per statement. */
const CHUNK = 250_000;
const TABLES = ['definitions', 'progress'];

async function columnsOf(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
    [table],
  );
  return rows.map(({ name }) => name);
}

async function insertCopies(client: pg.Client, copies: Copies): Promise<void> {
  const { rows } = await client.query<{ buckets: string }>('SELECT buckets FROM bucketing');
  const identity = identityOf(POSTGRES, copies);
  const own = { ...identity, bucket: bucketOf(identity.owner!, Number(rows[0]!.buckets)) };
  for (const table of TABLES) {
    const columns = await columnsOf(client, table);
    await client.query(copyRows(POSTGRES, { table, columns, own, seed: `owner = '${SEED_OWNER}'` }, copies));
  }
}

/**
 * Recomputes the counters that chronosd keeps per owner: every loaded alarm is active and has one pending occurrence.
 */
async function refreshOwners(client: pg.Client): Promise<void> {
  await client.query(`
    INSERT INTO owners (bucket, owner, open_at_most)
    SELECT bucket, owner, count(*) FROM occurrences GROUP BY bucket, owner
    ON CONFLICT (bucket, owner) DO UPDATE SET open_at_most = excluded.open_at_most`);
}

async function addCopies(
  database: Pick<Database, 'uri'>,
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

/** Creates, once, a database with one alarm: the start of every installation. */
async function makeTemplate(bench: Workbench, buckets: number): Promise<Database> {
  const database = await createDatabase(bench);
  const settings = { CHRONOS_POSTGRES_BUCKETS: String(buckets) };
  const chronosd = await startChronosd(bench, { uri: database.uri }, settings).catch((error: Error) => {
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
    location: { uri: database.uri },
    load: (series) => addCopies(database, series.map(copiesOf)),
    addPending: (from, until, onProgress) => addCopies(database, [pendingCopies(from, until, Date.now())], onProgress),
    bytes: () => databaseBytes(database),
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

/** @param buckets 1 for one server, as by default */
export function reveilleOnPostgres(bench: Workbench, buckets = 1): ReveilleSystem {
  let template: Promise<Database> | undefined;
  return {
    name: 'reveille-postgres',
    title: 'Reveille, PostgreSQL',
    settings: 'chronosd with its default settings.',
    store: 'postgres',
    loadRate: 25_000,
    async install() {
      template ??= makeTemplate(bench, buckets);
      return installCopy(bench, await template);
    },
  };
}

/** On a Citus cluster with distributed tables; every installation empties them. */
export function reveilleOnCitus(bench: Workbench, cluster: CitusCluster): System {
  const { uri } = cluster;
  return {
    name: 'reveille-citus',
    title: `Reveille, Citus with ${cluster.workers.length} workers`,
    settings: 'chronosd with its default settings.',
    store: 'postgres',
    loadRate: 2_000,
    async install() {
      await cluster.run(
        Object.keys(OWNED_TABLES)
          .map((table) => `DELETE FROM ${table}`)
          .join('; '),
      );
      const seeding = await startChronosd(bench, { uri });
      await setSeedAlarm(seeding.url);
      await seeding.stop();
      const running: Running[] = [];
      return {
        load: (series) => addCopies({ uri }, series.map(copiesOf)),
        async start(target = bench.sink.url) {
          const chronosd = await startChronosd(bench, { uri }, { CHRONOS_ROUTER_WAKE_URL: target });
          running.push(chronosd);
          return chronosd;
        },
        remove: () => Promise.all(running.map((chronosd) => chronosd.stop())).then(() => {}),
      };
    },
  };
}

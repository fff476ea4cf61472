/** Work of a PostgreSQL server for a load: log volume, updates that changed no index, processor time. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { withClient } from './databases.ts';
import { descendantSeconds } from './processes.ts';
import type { Workbench } from './workbench.ts';

/** Figures per job; `null` where unknown, or where no row was updated. */
export type DatabaseWork = {
  walBytes: number;
  /** Page images in those bytes: the first change to a page after a checkpoint logs one. */
  walImages: number;
  walRecords: number;
  /** Share of updates that changed no index: heap-only tuples. */
  hotShare: number | null;
  /** Processor time of the server and its backends, µs. */
  serverMicroseconds: number | null;
};

type Counters = { records: number; images: number; bytes: number; updates: number; hot: number; seconds?: number };

const READ = `
  SELECT wal_records::float8 AS records, wal_fpi::float8 AS images, wal_bytes::float8 AS bytes,
    (SELECT COALESCE(sum(n_tup_upd), 0)::float8 FROM pg_stat_user_tables) AS updates,
    (SELECT COALESCE(sum(n_tup_hot_upd), 0)::float8 FROM pg_stat_user_tables) AS hot
  FROM pg_stat_wal`;

/** Backends publish their counters at most once per second, and when they are idle. */
const PUBLISHED_AFTER_MS = 1_200;

async function read(client: pg.Client, bench: Workbench): Promise<Counters> {
  await client.query('SELECT pg_stat_clear_snapshot()');
  const { rows } = await client.query<Counters>(READ);
  const pid = Number(readFileSync(join(bench.postgres.dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const seconds = descendantSeconds(pid);
  return { ...rows[0]!, ...(seconds === undefined ? {} : { seconds }) };
}

/** Starts to count on a database. The returned function reports the work since then, per job of `jobs` jobs. */
export async function countDatabaseWork(
  bench: Workbench,
  uri: string,
): Promise<(jobs: number) => Promise<DatabaseWork>> {
  const before = await withClient(uri, (client) => read(client, bench));
  return async (jobs) => {
    const seconds = await withClient(uri, (client) => read(client, bench)).then((now) => now.seconds);
    await new Promise((resolve) => setTimeout(resolve, PUBLISHED_AFTER_MS));
    const after = await withClient(uri, (client) => read(client, bench));
    const bytes = after.bytes - before.bytes;
    const updates = after.updates - before.updates;
    return {
      walBytes: bytes / jobs,
      walImages: (after.images - before.images) / jobs,
      walRecords: (after.records - before.records) / jobs,
      hotShare: updates === 0 ? null : (after.hot - before.hot) / updates,
      serverMicroseconds:
        seconds === undefined || before.seconds === undefined ? null : (1e6 * (seconds - before.seconds)) / jobs,
    };
  };
}

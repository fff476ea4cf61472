/** Databases on the benchmark's server: copies of a template, so that every installation starts with the same rows. */
import pg from 'pg';
import type { Workbench } from './workbench.ts';

/** Runs statements on their own connection. */
export async function withClient<T>(uri: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export type Database = { name: string; uri: string };

export async function createDatabase({ postgres }: Workbench, template?: Database): Promise<Database> {
  const name = await postgres.createDatabase(template ? `TEMPLATE ${template.name}` : '');
  return { name, uri: postgres.uri(name) };
}

/** Runs the work of autovacuum and the checkpointer before a measurement, so that it does not run during one. */
export async function settleDatabase({ uri }: Pick<Database, 'uri'>): Promise<void> {
  await withClient(uri, async (client) => {
    await client.query('VACUUM (ANALYZE)');
    await client.query('CHECKPOINT');
  });
}

/** Size of a database on disk. */
export async function databaseBytes({ uri }: Pick<Database, 'uri'>): Promise<number> {
  const { rows } = await withClient(uri, (client) =>
    client.query<{ bytes: number }>('SELECT pg_database_size(current_database())::float8 AS bytes'),
  );
  return rows[0]!.bytes;
}

export async function dropDatabase({ postgres }: Workbench, { name }: Database): Promise<void> {
  await postgres.dropDatabase(name);
}

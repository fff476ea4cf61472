/** Reveille on PostgreSQL: any number of chronosd on one database. */
import pg from 'pg';
import type { Workbench } from '../workbench.ts';
import { SEED_OWNER, setSeedAlarm } from './agent.ts';
import { startChronosd } from './chronosd.ts';
import { type Copies, copiesOf, copyRows, identityOf, POSTGRES, pendingCopies } from './copies.ts';
import { type ReveilleInstallation, type ReveilleSystem, type Running, Unavailable } from './system.ts';

/** Copies made by one statement. */
const CHUNK = 250_000;

type Client = pg.Client;

export async function withDatabase<T>(uri: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

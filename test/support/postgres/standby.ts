/** A streaming standby of a test's server. */
import { chmodSync, chownSync, cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { reservePort } from '../ports.ts';
import { findBinaries, makeFolder } from './binaries.ts';
import { PostgresServer } from './server.ts';

/** The files of a running cluster that must not be copied. */
const OF_THE_PRIMARY = ['postmaster.pid', 'postmaster.opts'];

/** Copies a running cluster between the two calls that PostgreSQL has for it (its manual, "Low-Level API backup"). */
async function copyCluster(primary: PostgresServer, folder: string): Promise<void> {
  const client = new pg.Client({ connectionString: primary.uri() });
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', true)");
    cpSync(primary.dataFolder, folder, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
    writeFileSync(join(folder, 'backup_label'), rows[0].labelfile);
  } finally {
    await client.end();
  }
  chmodSync(folder, 0o700);
  for (const name of OF_THE_PRIMARY) rmSync(join(folder, name), { force: true });
  for (const segment of readdirSync(join(folder, 'pg_wal'), { withFileTypes: true }))
    if (segment.isFile()) rmSync(join(folder, 'pg_wal', segment.name));
}

/**
 * Starts a hot standby that streams from the primary.
 *
 * @param options.synchronous the primary waits for it at every commit from now on
 * @param options.port of its listener; a free port by default
 */
export async function startStandby(
  primary: PostgresServer,
  options: { synchronous?: boolean; port?: number } = {},
): Promise<PostgresServer> {
  const binaries = await findBinaries();
  const folder = makeFolder('reveille-standby-', binaries.account);
  const port = options.port ?? (await reservePort());
  const standby = new PostgresServer(folder, port, binaries);
  await copyCluster(primary, standby.dataFolder);
  writeFileSync(join(standby.dataFolder, 'standby.signal'), '');
  standby.configure({
    port: String(port),
    primary_conninfo: `${primary.uri()}?application_name=standby`,
    hot_standby: 'on',
  });
  const { account } = binaries;
  if (account) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
      chownSync(join(entry.parentPath, entry.name), account.uid, account.gid);
  }
  await standby.start();
  if (options.synchronous) {
    await primary.run("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await primary.run('SELECT pg_reload_conf()');
  }
  return standby;
}

/** Makes a standby the primary; resolves when it accepts writes. */
export async function promote(standby: PostgresServer): Promise<void> {
  await standby.run('SELECT pg_promote(true)');
}

/** A test's own Citus cluster: a coordinator and workers, where Citus is installed from the distribution or by hand. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Engine } from '../cluster/engine.ts';
import { type PostgresServer, startPostgres } from './server.ts';

const DATABASE = 'reveille';

/** The folders of programs and libraries of the PostgreSQL of `pg_config`. */
function installed(): { programs: { initdb: string; postgres: string }; library: string } | undefined {
  const { status, stdout } = spawnSync('pg_config', ['--bindir', '--pkglibdir'], { encoding: 'utf8' });
  if (status !== 0) return undefined;
  const [programs, libraries] = stdout.trim().split('\n') as [string, string];
  return {
    programs: { initdb: join(programs, 'initdb'), postgres: join(programs, 'postgres') },
    library: join(libraries, 'citus.so'),
  };
}

/** Why Citus is not available here, and the remedy; or nothing. */
export function noCitus(): string | undefined {
  if (process.env.REVEILLE_TEST_CITUS_URI) return undefined;
  const found = installed();
  if (found && existsSync(found.library) && existsSync(found.programs.postgres)) return undefined;
  return 'Citus is not installed in the PostgreSQL that pg_config names; install it, or name the coordinator of an empty cluster in REVEILLE_TEST_CITUS_URI';
}

export class CitusCluster implements Engine {
  /** Triggers on distributed tables are not supported. */
  readonly takesTriggers = false;
  /** The database that is distributed over the workers, as chronosd connects to it. */
  readonly uri: string;
  /** None where the cluster is not the test's. */
  readonly coordinator: PostgresServer | undefined;
  /** None where the cluster is not the test's. */
  readonly workers: readonly PostgresServer[];

  private constructor(uri: string, coordinator: PostgresServer | undefined, workers: readonly PostgresServer[]) {
    this.uri = uri;
    this.coordinator = coordinator;
    this.workers = workers;
  }

  /** Starts one, or uses the one that the environment names. */
  static async start(count = 2): Promise<CitusCluster> {
    const given = process.env.REVEILLE_TEST_CITUS_URI;
    if (given) return new CitusCluster(given, undefined, []);
    const { programs } = installed()!;
    // The servers connect to each other on loopback, unencrypted and without passwords.
    const settings = {
      shared_preload_libraries: 'citus',
      max_connections: '150',
      max_prepared_transactions: '200',
      'citus.node_conninfo': 'sslmode=disable',
    };
    const start = () => startPostgres(settings, { programs, initdb: ['--auth=trust'] });
    const [coordinator, ...workers] = (await Promise.all(Array.from({ length: count + 1 }, start))) as [
      PostgresServer,
      ...PostgresServer[],
    ];
    const cluster = new CitusCluster(coordinator.uri(DATABASE), coordinator, workers);
    try {
      for (const server of [coordinator, ...workers]) {
        await server.run(`CREATE DATABASE ${DATABASE}`);
        await server.run('CREATE EXTENSION citus', DATABASE);
      }
      await coordinator.run(`SELECT citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`, DATABASE);
      for (const { port } of workers) await coordinator.run(`SELECT citus_add_node('127.0.0.1', ${port})`, DATABASE);
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** Runs statements on the coordinator. */
  async run(sql: string): Promise<pg.QueryResult> {
    const client = new pg.Client({ connectionString: this.uri });
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }

  async readUri(): Promise<string> {
    return this.uri;
  }

  async close(): Promise<void> {
    await Promise.all([this.coordinator, ...this.workers].map((server) => server?.remove()));
  }
}

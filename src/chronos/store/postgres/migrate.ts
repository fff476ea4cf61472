/**
 * Updates the schema while other replicas may do the same.
 *
 * A replica starts a migration by inserting its row into the ledger, in the transaction that applies it. A second
 * replica waits at the ledger's primary key until the first has committed, and then finds the work done.
 */
import pg from 'pg';
import type { Logger } from '../../../kit/log/log.ts';
import { type Migration, readMigrations } from '../../../kit/sqlite/migrations.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Server } from './address.ts';
import { errorText, isConflict, isConnectionLost, SQLSTATE, sqlState, storeError } from './postgres-error.ts';
import { prepareSession } from './session.ts';

const MIGRATIONS = new URL('./migrations/', import.meta.url);

const CREATE_LEDGER = `
  CREATE TABLE IF NOT EXISTS chronos_migrations (
    version    BIGINT PRIMARY KEY,
    name       TEXT   NOT NULL,
    sha256     TEXT   NOT NULL,
    applied_at BIGINT NOT NULL
  )`;
const READ_LEDGER = 'SELECT version, name, sha256 FROM chronos_migrations ORDER BY version';
const ENTER = `
  INSERT INTO chronos_migrations (version, name, sha256, applied_at)
  VALUES ($1, $2, $3, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))`;

/** The migration that sets the number of buckets, and the statements that follow it for one bucket. */
const BUCKETS = 'buckets';
const FIRST_BUCKETS = ['INSERT INTO bucketing (only_one, buckets) VALUES (1, 1)'];

/** How often a migration is retried after a conflict with another replica. */
const ATTEMPTS = 20;

type Applied = { version: number; name: string; sha256: string };

/** Files with this prefix contain optional optimisations for PostgreSQL, which another engine may not support. */
const isOptional = ({ name }: Migration) => name.startsWith('optional-');

/**
 * The statements of a file, each of which ends with its line. Citus sends the text of a definition to its servers, and
 * refuses one with several statements.
 */
function statementsOf({ sql }: Migration): string[] {
  const found = sql.match(/(?:\$\$[\s\S]*?\$\$|(?!;\s*$)[\s\S])+/gm) ?? [];
  return found.filter((statement) => /^;?\s*[A-Z]/m.test(statement)).map((statement) => statement.replace(/^;/, ''));
}

class Migrator {
  readonly #client: pg.Client;
  readonly #migrations: readonly Migration[];
  readonly #server: string;
  readonly #log: Logger;
  readonly #firstBuckets: readonly string[];

  constructor(
    client: pg.Client,
    migrations: readonly Migration[],
    server: string,
    log: Logger,
    firstBuckets: readonly string[],
  ) {
    this.#firstBuckets = firstBuckets;
    this.#client = client;
    this.#migrations = migrations;
    this.#server = server;
    this.#log = log;
  }

  async run(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const applied = await this.#readLedger();
      this.#checkHistory(applied);
      const next = this.#migrations[applied.length];
      if (!next) return;
      try {
        await (isOptional(next) ? this.#applyOptional(next) : this.#apply(next));
        attempt = 0;
      } catch (thrown) {
        // Another replica was faster, or conflicted: the ledger has the migrations it applied.
        if (!isConflict(thrown) || attempt >= ATTEMPTS) throw this.#failure(next, thrown);
      }
    }
  }

  /** The number of applied and missing migrations. Changes nothing. */
  async inspect(): Promise<SchemaState> {
    const applied = (await this.#findLedger()) ?? [];
    this.#checkHistory(applied);
    return { applied: applied.length, missing: this.#migrations.length - applied.length };
  }

  /** The ledger, if there is one. */
  async #findLedger(): Promise<Applied[] | undefined> {
    try {
      return (await this.#client.query<Applied>(READ_LEDGER)).rows;
    } catch (thrown) {
      if (sqlState(thrown) !== SQLSTATE.UNDEFINED_TABLE) throw this.#failure(undefined, thrown);
      return undefined;
    }
  }

  async #readLedger(): Promise<Applied[]> {
    const found = await this.#findLedger();
    if (found) return found;
    try {
      await this.#client.query(CREATE_LEDGER);
    } catch (thrown) {
      // "IF NOT EXISTS" does not see a table that another replica is creating at this moment.
      const made = [SQLSTATE.DUPLICATE_TABLE, '42710'].includes(sqlState(thrown) ?? '');
      if (!made && !isConflict(thrown)) throw this.#failure(undefined, thrown);
    }
    return this.#readLedger();
  }

  #checkHistory(applied: readonly Applied[]): void {
    const newest = Number(applied.at(-1)?.version ?? 0);
    if (newest > this.#migrations.length)
      throw new ReveilleError(
        'conflict',
        `the database ${this.#server} was written by a newer Reveille (schema ${newest}, this one knows ${this.#migrations.length}); start that version or a later one`,
      );
    applied.forEach((past, index) => {
      const migration = this.#migrations[index];
      if (Number(past.version) === index + 1 && past.sha256 === migration?.sha256) return;
      throw new ReveilleError(
        'conflict',
        `the database ${this.#server} has applied migration ${past.version} (${past.name}) with other contents than this Reveille has; start the version that wrote it`,
      );
    });
  }

  async #apply(migration: Migration): Promise<void> {
    await this.#client.query('BEGIN');
    try {
      await this.#client.query(ENTER, [migration.version, migration.name, migration.sha256]);
      for (const statement of statementsOf(migration)) await this.#client.query(statement);
      if (migration.name === BUCKETS) for (const sql of this.#firstBuckets) await this.#client.query(sql);
      await this.#client.query('COMMIT');
    } catch (thrown) {
      if (!isConnectionLost(thrown)) await this.#client.query('ROLLBACK');
      throw thrown;
    }
  }

  /** Runs the statements one by one, each in its own transaction: repeating one changes nothing. */
  async #applyOptional(migration: Migration): Promise<void> {
    for (const statement of statementsOf(migration)) {
      try {
        await this.#client.query(statement);
      } catch (thrown) {
        if (isConnectionLost(thrown) || isConflict(thrown)) throw thrown;
        this.#log.info(
          { reason: errorText(thrown), migration: migration.name },
          'this engine does not support an optional statement; it is skipped',
        );
      }
    }
    await this.#client.query(ENTER, [migration.version, migration.name, migration.sha256]);
  }

  #failure(migration: Migration | undefined, thrown: unknown): ReveilleError {
    const code = sqlState(thrown);
    if (thrown instanceof ReveilleError) return thrown;
    const errorText = thrown instanceof Error ? thrown.message : String(thrown);
    if (code === SQLSTATE.INSUFFICIENT_PRIVILEGE || code === '3F000')
      return new ReveilleError(
        'unavailable',
        `the user of CHRONOS_POSTGRES_URI may not create tables in ${this.#server} (${errorText}); grant it CREATE on the schema, or give it a schema of its own`,
        { retryable: false, cause: thrown },
      );
    if (code === SQLSTATE.DUPLICATE_TABLE)
      return new ReveilleError(
        'conflict',
        `the database ${this.#server} contains tables of another program (${errorText}); give Reveille a database or a schema of its own`,
        { cause: thrown },
      );
    const known = storeError(thrown);
    if (known.code !== 'internal' || !migration) return known;
    const message = `migration ${migration.version} (${migration.name}) of ${this.#server} failed: ${errorText}`;
    return new ReveilleError('internal', message, { retryable: false, cause: thrown });
  }
}

export type MigrateOptions = { folder?: URL | string; firstBuckets?: readonly string[] | undefined };

/**
 * Updates a database to the newest schema.
 *
 * @param options the statements that give new tables their buckets (default: one); the folder of the migrations, for tests
 * @throws ReveilleError `conflict` when the database is newer, has another history or contains tables of another
 *   program.
 *   `unavailable` when it is unreachable (retryable) or tables may not be created (not retryable).
 *   `internal` when a file fails.
 */
export function migrate(
  server: Server,
  connection: pg.ClientConfig,
  log: Logger,
  { folder = MIGRATIONS, firstBuckets = FIRST_BUCKETS }: MigrateOptions = {},
): Promise<void> {
  return withMigrator(server, connection, log, { folder, firstBuckets }, (migrator) => migrator.run());
}

/** The number of migrations that a database has and lacks. */
export type SchemaState = { applied: number; missing: number };

/**
 * Determines the work of {@link migrate} without changing anything.
 *
 * @throws ReveilleError as {@link migrate}, as far as a check without changes can detect it
 */
export function inspectSchema(server: Server, connection: pg.ClientConfig, log: Logger): Promise<SchemaState> {
  return withMigrator(server, connection, log, {}, (migrator) => migrator.inspect());
}

async function withMigrator<T>(
  server: Server,
  connection: pg.ClientConfig,
  log: Logger,
  { folder = MIGRATIONS, firstBuckets = FIRST_BUCKETS }: MigrateOptions,
  work: (migrator: Migrator) => Promise<T>,
): Promise<T> {
  const migrations = readMigrations(folder);
  // A migration of a large table, or the wait for another replica's migration, has no time limit.
  const client = new pg.Client({ ...connection, pipeline: false, query_timeout: 0 });
  client.on('error', (error) =>
    log.debug({ reason: errorText(error) }, 'the connection was lost during the migrations'),
  );
  try {
    await client.connect();
    await prepareSession(client, server.name);
    await client.query('SET statement_timeout = 0');
    // Citus changes the views of tables that it distributes only after changes of one shard at a time.
    await client
      .query("SET citus.multi_shard_modify_mode = 'sequential'")
      .catch((error: unknown) => log.debug({ reason: errorText(error) }, 'this engine has no settings of Citus'));
    return await work(new Migrator(client, migrations, server.name, log, firstBuckets));
  } catch (thrown) {
    throw storeError(thrown);
  } finally {
    await client.end().catch((error: unknown) => log.debug({ reason: errorText(error) }, 'closing a lost connection'));
  }
}

/** The PostgreSQL database that alarms move into. */

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { parseAddress, type Server } from '../postgres/address.ts';
import { type Buckets, ONE_BUCKET } from '../postgres/buckets.ts';
import { inspectSchema, migrate, type SchemaState } from '../postgres/migrate.ts';
import { PrimaryPool } from '../postgres/pool.ts';
import { errorText, SQLSTATE, sqlState, storeError } from '../postgres/postgres-error.ts';
import { prepareSession } from '../postgres/session.ts';
import type { Statement } from '../postgres/statement.ts';
import { readTargetState, type TargetPhase, type TargetState } from '../postgres/transfer-state.ts';
import { readBuckets } from '../sharding/buckets.ts';
import { keyOf, keyParameters, MOVING_TABLES, type MovingTable, ownerOf, type Values } from './tables.ts';
import {
  ANALYZE,
  ANYTHING,
  BEGIN,
  clear,
  count,
  OPEN,
  PAGE,
  page,
  put,
  REPLICAS,
  RESTART,
  TAKE,
  TURN,
  WITHDRAW,
} from './target-statements.ts';

// Why the database rejects a batch.

const NUL_IN_TEXT = /^22(021|P05)$/;

/** Another process holds the move. */
function takenOver(name: string): ReveilleError {
  return new ReveilleError(
    'conflict',
    `another process moves alarms into ${name}, or gave this move up; let it finish, then run this again`,
  );
}

/** Why a batch was rejected. */
function refusalOf(table: MovingTable, rows: readonly Values[], thrown: unknown): ReveilleError {
  const code = sqlState(thrown);
  if (code === SQLSTATE.UNIQUE_VIOLATION)
    return new ReveilleError(
      'conflict',
      `the database contains ${table.name} that this move did not copy (${errorText(thrown)}); give the move up with "reveille migrate --abandon" and move into an empty database`,
      { cause: thrown },
    );
  if (code === undefined || !/^2[23]/.test(code)) return storeError(thrown);
  const where = NUL_IN_TEXT.test(code) ? findNul(table, rows) : undefined;
  return new ReveilleError(
    'conflict',
    `PostgreSQL cannot store ${where ?? `a row of ${table.name}`} (${errorText(thrown)}); correct it in the SQLite file, or keep the file with "reveille migrate --abandon"`,
    { cause: thrown },
  );
}

/** Describes the value that contains U+0000; only columns of bytes can store it. */
function findNul(table: MovingTable, rows: readonly Values[]): string | undefined {
  const names = table.columns.split(', ');
  for (const row of rows) {
    const at = row.findIndex(
      (value, index) => typeof value === 'string' && value.includes('\0') && !table.bytes.has(names[index]!),
    );
    if (at >= 0)
      return `the ${names[at]} of ${JSON.stringify(keyOf(table, row))} in ${table.name}, which contains U+0000`;
  }
  return undefined;
}

/** The application names of chronosd's connections, and of this one. */
const REPLICA = 'chronosd';
const APPLICATION = 'reveille migrate';
/** A connection that is silent for this time is dead. */
const SILENCE_MS = 60_000;
/** Counting or emptying a large table takes longer. */
const LONG_SILENCE_MS = 600_000;
/** A connection that has just been closed may still be listed. */
const LINGER_MS = 3_000;
const LINGER_STEP_MS = 100;

export type TargetOptions = { uri: string; clock: Clock; log: Logger };

export class Target {
  /** `host:port/database`. */
  readonly name: string;
  readonly #client: pg.Client;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The buckets of a database whose schema is up to date. */
  #buckets: Buckets = ONE_BUCKET;
  /** Distinguishes this process from another that moves the same file, or a copy of it. */
  readonly #holder = randomUUID();

  private constructor(name: string, client: pg.Client, { clock, log }: TargetOptions) {
    this.name = name;
    this.#client = client;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Finds the server that accepts writes, makes chronosd's checks, and updates its schema.
   *
   * @throws ReveilleError as `openPostgresStore` does
   */
  static async open(options: TargetOptions): Promise<Target> {
    const { server, connection } = await findPrimary(options);
    await migrate(server, connection, options.log);
    const target = await Target.#connect(server, connection, options);
    target.#buckets = await readBuckets(target);
    return target;
  }

  /** The same without changing anything: some or all tables may be missing. */
  static async inspect(options: TargetOptions): Promise<{ target: Target; schema: SchemaState }> {
    const { server, connection } = await findPrimary(options);
    const schema = await inspectSchema(server, connection, options.log);
    return { target: await Target.#connect(server, connection, options), schema };
  }

  static async #connect(server: Server, connection: pg.ClientConfig, options: TargetOptions): Promise<Target> {
    const client = new pg.Client(connection);
    // The running statement reports it.
    client.on('error', (error) => options.log.debug({ reason: errorText(error) }, 'the connection was lost'));
    const target = new Target(server.name, client, options);
    try {
      await client.connect();
      await prepareSession(client, server.name);
      await client.query(`SET statement_timeout = ${LONG_SILENCE_MS}`);
    } catch (thrown) {
      await target.close();
      throw storeError(thrown);
    }
    return target;
  }

  /** The database's state of the move. */
  state(): Promise<TargetState | undefined> {
    return readTargetState(this);
  }

  async isEmpty(): Promise<boolean> {
    const [row] = await this.query(ANYTHING, []);
    return row![0] === false;
  }

  async count({ name }: MovingTable): Promise<number> {
    const [row] = await this.query(count(name), [], LONG_SILENCE_MS);
    return row![0] as number;
  }

  /** Closes an empty database to chronosd until the move is complete. */
  async begin(source: string, transfer: string): Promise<TargetState> {
    await this.#change(BEGIN, [source, transfer, this.#holder, this.#clock.now()]);
    return (await this.state())!;
  }

  /** Replaces an abandoned move with another move of the same file. */
  async restart(former: TargetState, transfer: string): Promise<TargetState> {
    const { state, step } = former;
    await this.#change(RESTART, [transfer, this.#holder, this.#clock.now(), former.transfer, state, step]);
    return (await this.state())!;
  }

  /** Takes over an interrupted move. An earlier process of the move can store nothing from here on. */
  async resume(transfer: string): Promise<TargetState> {
    await this.#change(TAKE, [this.#holder, transfer]);
    return (await this.state())!;
  }

  /** Undoes {@link begin}. */
  async withdraw(transfer: string): Promise<void> {
    await this.#change(WITHDRAW, [transfer, this.#holder]);
  }

  /** Opens the database: the copy is complete. */
  async openForUse(transfer: string): Promise<void> {
    await this.#change(OPEN, [this.#clock.now(), transfer, this.#holder]);
  }

  /** Closes a database that is in use, or opens it again. */
  async changePhase(transfer: string, from: TargetPhase, to: TargetPhase): Promise<void> {
    await this.#change(TURN, [to, this.#clock.now(), transfer, from]);
  }

  /** Deletes all rows of the tables that move. */
  async clear(): Promise<void> {
    for (const { name } of MOVING_TABLES.toReversed()) await this.#send(clear(name), [], LONG_SILENCE_MS);
  }

  /**
   * Stores a batch together with its progress.
   *
   * @throws ReveilleError `conflict` when another process has taken the move over, or the database cannot store a row
   */
  async put(table: MovingTable, rows: readonly Values[], at: { transfer: string; step: number; progress: string }) {
    const values = [
      at.progress,
      at.transfer,
      this.#holder,
      at.step,
      rows.map((row) => this.#buckets.of(ownerOf(table, row))),
      ...table.bind(rows),
    ];
    const { rowCount } = await this.#send(put(table), values, SILENCE_MS, (thrown) => refusalOf(table, rows, thrown));
    if (rowCount !== rows.length) throw takenOver(this.name);
  }

  /** Prepares reading everything that was stored. */
  async analyze(): Promise<void> {
    for (const each of ANALYZE) await this.#send(each, [], LONG_SILENCE_MS);
  }

  /** The rows of a table in key order, page by page; the next page is loading while one is processed. */
  async *pages(table: MovingTable): AsyncGenerator<Values[]> {
    const read = async (after?: readonly unknown[]) => {
      const rows = await this.query(page(table, after !== undefined, this.#buckets.count), after ?? []);
      return rows.map((row) => row.map((value) => (value instanceof Buffer ? value.toString('utf8') : value)));
    };
    let next: Promise<Values[]> | undefined = read();
    while (next) {
      const page: Values[] = await next;
      const last = page.at(-1);
      next = last && page.length === PAGE ? read(keyParameters(table, last)) : undefined;
      // A consumer that stops early does not await the next page: ignore its failure.
      next?.catch(() => undefined);
      yield page;
    }
  }

  /**
   * Ensures that no chronosd is connected. Call it after the database has been closed to new ones: a chronosd that saw
   * it open is still connected. An engine that does not list its connections passes the check.
   *
   * @throws ReveilleError `conflict`
   */
  async refuseReplicas(): Promise<void> {
    const until = this.#clock.monotonic() + LINGER_MS;
    for (;;) {
      const replicas = await this.#replicas();
      if (replicas === 0) return;
      if (this.#clock.monotonic() >= until)
        throw new ReveilleError(
          'conflict',
          `a chronosd is connected to ${this.name}; stop every chronosd that uses this database, and run this again`,
        );
      await wait(this.#clock, LINGER_STEP_MS);
    }
  }

  async close(): Promise<void> {
    await this.#client.end().catch((error: unknown) => this.#log.debug({ reason: errorText(error) }, 'closing'));
  }

  /** Runs a statement in a transaction of its own. */
  async query(statement: Statement, values: readonly unknown[], silenceMs = SILENCE_MS): Promise<Values[]> {
    return (await this.#send(statement, values, silenceMs)).rows;
  }

  async #replicas(): Promise<number> {
    try {
      const [row] = await this.query(REPLICAS, [REPLICA, APPLICATION]);
      return row![0] as number;
    } catch (error) {
      const unknown = error instanceof ReveilleError && sqlState(error.cause)?.startsWith('42');
      if (!unknown) throw error;
      this.#log.debug({ reason: errorText(error) }, 'this engine does not list its connections');
      return 0;
    }
  }

  /** Sends a statement; later ones need not wait for its answer. */
  async #send(
    { name, text }: Statement,
    values: readonly unknown[],
    silenceMs = SILENCE_MS,
    translate: (thrown: unknown) => unknown = storeError,
  ): Promise<pg.QueryArrayResult> {
    const query: pg.QueryArrayConfig & { query_timeout: number } = {
      name,
      text,
      values: [...values],
      rowMode: 'array',
      query_timeout: silenceMs,
    };
    try {
      return await this.#client.query(query);
    } catch (thrown) {
      throw translate(thrown);
    }
  }

  /** Runs a statement that writes the row of `arrivals`, unless another process has written it. */
  async #change(change: Statement, values: readonly unknown[]): Promise<void> {
    if ((await this.#send(change, values)).rowCount !== 1) throw takenOver(this.name);
  }
}

async function findPrimary(options: TargetOptions): Promise<{ server: Server; connection: pg.ClientConfig }> {
  const { uri, clock, log } = options;
  const pool = new PrimaryPool(parseAddress(uri), { size: 1, clock, log });
  try {
    await pool.connect();
    const server = pool.primary;
    return { server, connection: { ...pool.clientConfig(server), application_name: APPLICATION } };
  } finally {
    await pool.close();
  }
}

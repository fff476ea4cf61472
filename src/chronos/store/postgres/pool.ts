/**
 * Connections to the server that currently accepts writes.
 *
 * All connections go to one server at a time. When it is lost, or is no primary any more, all connections are closed.
 * The servers of the address are then tried in turn, the last good one first, until one accepts writes. So the next
 * statement after a failover finds the promoted standby.
 */
import pg from 'pg';
import { type CancelTimer, type Clock, wait } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { Server } from './address.ts';
import { errorText, isConflict, isConnectionLost, SQLSTATE, sqlState, storeError } from './postgres-error.ts';
import { prepareSession, STATEMENT_TIMEOUT_MS } from './session.ts';
import type { Call, Row, Statement } from './statement.ts';

// Limits concurrency; further callers wait in a queue.

type Waiting = { admit: () => void; refuse: () => void };

export class ConcurrencyLimit {
  readonly #clock: Clock;
  readonly #maxWaitMs: number;
  readonly #tooLong: () => Error;
  readonly #line: Waiting[] = [];
  #free: number;

  /**
   * @param limit maximum number of concurrent callers
   * @param maxWaitMs how long a caller waits in the queue
   * @param tooLong the error for callers who waited longer
   */
  constructor(clock: Clock, limit: number, maxWaitMs: number, tooLong: () => Error) {
    this.#clock = clock;
    this.#free = limit;
    this.#maxWaitMs = maxWaitMs;
    this.#tooLong = tooLong;
  }

  /** Resolves when the caller may proceed, first come first served. Every call is followed by one {@link leave}. */
  enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      let cancel: CancelTimer = () => {};
      const waiting: Waiting = {
        admit() {
          cancel();
          resolve();
        },
        refuse: () => {
          this.#line.splice(this.#line.indexOf(waiting), 1);
          reject(this.#tooLong());
        },
      };
      cancel = this.#clock.after(this.#maxWaitMs, waiting.refuse);
      this.#line.push(waiting);
    });
  }

  leave(): void {
    const next = this.#line.shift();
    if (next) next.admit();
    else this.#free++;
  }
}

/** How long a new connection may take. */
const CONNECT_TIMEOUT_MS = 3_000;
/** How long a caller waits for a free connection. */
const MAX_WAIT_MS = 8_000;
/**
 * If the server exceeds its own time limit by this much, the connection counts as dead: a half-open connection reports
 * nothing.
 */
const SILENCE_MS = STATEMENT_TIMEOUT_MS + 2_000;
const IDLE_MS = 60_000;
/** Retries, delays and the give-up time when a server has no free connection left. */
const CROWDED_ROUNDS = 20;
const CROWDED_MS = 1_000;
const CROWDED_PAUSE_MS = 50;
/** Immediate retries of a transaction that conflicted with another one. */
const CONFLICT_RETRIES = 8;

const INT8 = pg.types.builtins.INT8;

/** Integers are returned as numbers: instants and counters are far below 2⁵³. */
const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format: 'text') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** Runs statements: the pool, each in a transaction of its own, or one transaction. */
export type Executor = {
  query(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
};

type ServerConnections = { server: Server; pool: pg.Pool };
type Failure = { server: Server; error: ReveilleError };

export class PrimaryPool implements Executor {
  readonly #servers: readonly Server[];
  readonly #size: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Callers wait here and not in a server's pool, where they would be stuck when that server is given up. */
  readonly #concurrency: ConcurrencyLimit;
  /** Called when the pool connects to another primary: clocks, for example, must be compared again. */
  onPrimary: (() => void) | undefined;
  /** Checks every new connection before it is used. */
  inspect: ((connection: Executor) => Promise<void>) | undefined;
  #line: ServerConnections | undefined;
  #finding: Promise<ServerConnections> | undefined;
  #lastGood = 0;
  #closed = false;
  #cancelLimit: CancelTimer = () => {};

  constructor(servers: readonly Server[], { size, clock, log }: { size: number; clock: Clock; log: Logger }) {
    this.#servers = servers;
    this.#size = size;
    this.#clock = clock;
    this.#log = log;
    const tooSlow = () => new ReveilleError('unavailable', 'PostgreSQL is too slow to keep up; try again later');
    this.#concurrency = new ConcurrencyLimit(clock, size, MAX_WAIT_MS, tooSlow);
  }

  /** The last server that accepted writes. */
  get primary(): Server {
    return this.#servers[this.#lastGood]!;
  }

  /** The configuration of every client. */
  clientConfig(server: Server): pg.ClientConfig {
    return {
      ...server.connection,
      application_name: 'chronosd',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: SILENCE_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      pipeline: true,
      types: TYPES,
    };
  }

  /** Ensures that a server accepts writes; see {@link primary}. */
  async connect(): Promise<void> {
    try {
      await this.#find();
    } catch (thrown) {
      throw storeError(thrown);
    }
  }

  /** Runs one statement in its own transaction; retries once after a conflict. */
  query(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#withConnection(async (client) => rowsOf(await client.query(queryOf(statement, values))));
  }

  /**
   * Runs several statements in one transaction. After a conflict it is retried from the start, so `work` must have no
   * other effects.
   *
   * @returns the result of `work`, once it is durable; when `work` throws, everything is rolled back
   */
  transaction<T>(work: (transaction: Executor) => Promise<T>): Promise<T> {
    return this.#withConnection(async (client) => {
      // Sent together with the first statement, which fails too if it fails.
      const begun = client.query('BEGIN');
      begun.catch(() => undefined);
      let lost = false;
      const query: Executor['query'] = async (statement, values) => {
        try {
          return rowsOf(await client.query(queryOf(statement, values)));
        } catch (thrown) {
          lost ||= isConnectionLost(thrown);
          throw thrown;
        }
      };
      let result: T;
      try {
        result = await work({ query });
        await begun;
      } catch (thrown) {
        if (!lost) await client.query('ROLLBACK');
        throw lost || thrown instanceof ReveilleError || isServerError(thrown) ? thrown : new CallerError(thrown);
      }
      const { command } = await client.query('COMMIT');
      if (command !== 'COMMIT') throw new ReveilleError('internal', 'the transaction was rolled back');
      return result;
    });
  }

  /**
   * Runs several statements in one transaction and one round trip, so that none can depend on the result of another.
   *
   * @returns the rows of each, once they are durable; when one fails, all are rolled back
   */
  together(calls: readonly Call[]): Promise<Row[][]> {
    if (calls.length === 1) return this.query(calls[0]!.statement, calls[0]!.values).then((rows) => [rows]);
    return this.#withConnection(async (client) => {
      const sent = [
        client.query('BEGIN'),
        ...calls.map(({ statement, values }) => client.query(queryOf(statement, values))),
        client.query('COMMIT'),
      ];
      const answers = await Promise.allSettled(sent as Promise<pg.QueryArrayResult>[]);
      // The first failed statement has the cause; later ones report only that there is no transaction.
      const results = answers.map((answer) => {
        if (answer.status === 'rejected') throw answer.reason;
        return answer.value;
      });
      if (results.at(-1)!.command !== 'COMMIT') throw new ReveilleError('internal', 'the transaction was rolled back');
      return results.slice(1, -1).map(rowsOf);
    });
  }

  /** Lets running statements finish and closes all connections. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelLimit();
    const line = this.#line ?? (await this.#finding?.catch(() => undefined));
    this.#line = undefined;
    await line?.pool.end();
  }

  async #withConnection<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    await this.#concurrency.enter();
    try {
      return await this.#untilDone(work);
    } finally {
      this.#concurrency.leave();
    }
  }

  async #untilDone<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const { client, line } = await this.#acquire();
      try {
        const result = await work(client);
        client.release();
        return result;
      } catch (thrown) {
        if (thrown instanceof CallerError) {
          client.release();
          throw thrown.cause;
        }
        const lost = isConnectionLost(thrown);
        client.release(lost);
        if (lost) this.#giveUp(line, thrown);
        if (isConflict(thrown) && attempt <= CONFLICT_RETRIES) continue;
        throw storeError(thrown);
      }
    }
  }

  async #acquire(): Promise<{ client: pg.PoolClient; line: ServerConnections }> {
    for (let round = 1; ; round++) {
      const line = await this.#find();
      try {
        return { client: await line.pool.connect(), line };
      } catch (thrown) {
        if (sqlState(thrown) === SQLSTATE.TOO_MANY_CONNECTIONS && round < CROWDED_ROUNDS) {
          // The server works but has no free connection. Later callers queue for the existing connections.
          this.#limitToExisting(line.pool);
          if (line.pool.totalCount === 0) await wait(this.#clock, CROWDED_PAUSE_MS);
          continue;
        }
        // A lost server is detected when it accepts no more connections; the next round connects to its successor.
        this.#giveUp(line, thrown);
        if (round > 1 || this.#closed) throw storeError(thrown);
      }
    }
  }

  /** Limits the pool to its existing connections for a while. */
  #limitToExisting(pool: pg.Pool): void {
    pool.options.max = Math.max(1, pool.totalCount);
    this.#cancelLimit();
    this.#cancelLimit = this.#clock.after(CROWDED_MS, () => {
      pool.options.max = this.#size;
    });
  }

  #find(): Promise<ServerConnections> {
    if (this.#closed) return Promise.reject(new ReveilleError('unavailable', 'the store is closed'));
    if (this.#line) return Promise.resolve(this.#line);
    this.#finding ??= this.#tryAll().finally(() => {
      this.#finding = undefined;
    });
    return this.#finding;
  }

  async #tryAll(): Promise<ServerConnections> {
    const failures: Failure[] = [];
    const order = this.#servers.keys().toArray();
    for (const index of [this.#lastGood, ...order.filter((other) => other !== this.#lastGood)]) {
      const server = this.#servers[index]!;
      const pool = this.#makePool(server);
      try {
        (await pool.connect()).release();
      } catch (thrown) {
        void pool.end();
        this.#log.debug({ server: server.name, reason: errorText(thrown) }, 'not the server that accepts writes');
        failures.push({ server, error: storeError(thrown) });
        continue;
      }
      if (this.#closed) {
        await pool.end();
        throw new ReveilleError('unavailable', 'the store is closed');
      }
      this.#lastGood = index;
      this.#line = { server, pool };
      this.onPrimary?.();
      return this.#line;
    }
    throw noPrimary(failures);
  }

  #makePool(server: Server): pg.Pool {
    const pool = new pg.Pool({
      ...this.clientConfig(server),
      max: this.#size,
      idleTimeoutMillis: IDLE_MS,
      onConnect: (client) => {
        // A connection may break while a statement runs on it; the statement reports that.
        client.on('error', (error) =>
          this.#log.debug({ server: server.name, reason: errorText(error) }, 'a connection was lost'),
        );
        const query: Executor['query'] = async (statement, values) =>
          rowsOf(await client.query(queryOf(statement, values)));
        return Promise.all([prepareSession(client, server.name), this.inspect?.({ query })]).then(() => {});
      },
    });
    pool.on('error', (error) =>
      this.#log.debug({ server: server.name, reason: errorText(error) }, 'an idle connection was lost'),
    );
    return pool;
  }

  /** Leaves a server; the next caller searches for the one that accepts writes. */
  #giveUp(line: ServerConnections, reason: unknown): void {
    if (this.#line !== line) return;
    this.#line = undefined;
    this.#log.warn({ server: line.server.name, reason: errorText(reason) }, 'the connection to PostgreSQL was lost');
    // Ends when its last statement has ended. A rejection could only be about closing closed connections.
    line.pool
      .end()
      .catch((error: unknown) => this.#log.debug({ reason: errorText(error) }, 'closing lost connections'));
  }
}

/** An error in a transaction that does not come from the database. The caller gets it unchanged. */
class CallerError extends Error {
  constructor(cause: unknown) {
    super('a transaction was given up', { cause });
  }
}

function isServerError(thrown: unknown): boolean {
  return thrown instanceof pg.DatabaseError;
}

function noPrimary(failures: readonly Failure[]): ReveilleError {
  const first = failures[0]!.error;
  if (failures.length === 1) return first;
  const errors = failures.map(({ server, error }) => `${server.name}: ${error.message}`).join('; ');
  const retryable = failures.some(({ error }) => error.retryable);
  const message = `no server of CHRONOS_POSTGRES_URI accepts writes: ${errors}`;
  return new ReveilleError('unavailable', message, { retryable, cause: first });
}

function queryOf({ name, text }: Statement, values: readonly unknown[]): pg.QueryArrayConfig {
  return { name, text, values: values as unknown[], rowMode: 'array' };
}

function rowsOf({ rows }: pg.QueryArrayResult): Row[] {
  return rows;
}

/**
 * Group commit: concurrent operations share one transaction, and so one fsync. With `synchronous = FULL`, the fsync is
 * nearly the whole cost of a small write.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { sqliteCode, storageError } from './sqlite-error.ts';

/** Limit of operations in one transaction, so that it does not block the event loop too long. */
const OPERATIONS_PER_COMMIT = 512;

type Waiting = { operation: () => unknown; resolve: (value: never) => void; reject: (error: unknown) => void };
type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown };

function refusePromise(value: unknown): void {
  if (typeof value === 'object' && value !== null && 'then' in value) {
    throw new TypeError('an operation of a transaction must be synchronous, this one returned a promise');
  }
}

/** The error of an operation for its caller: SQLite's errors are translated, all others stay as they are. */
function operationError(thrown: unknown): unknown {
  return sqliteCode(thrown) === undefined ? thrown : storageError(thrown);
}

function lostTransaction(cause?: unknown): ReveilleError {
  const message = 'nothing was stored: SQLite rolled the transaction back; try again later';
  return new ReveilleError('unavailable', message, { cause });
}

/**
 * Runs every write of one database connection. Operations are synchronous functions that use that connection. They must
 * not begin or end a transaction.
 */
export class GroupCommit {
  readonly #db: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #rollbackTo: StatementSync;
  #queue: Waiting[] = [];
  #scheduled = false;
  #idle: (() => void)[] = [];
  readonly #onCommit: () => void;
  readonly #inMemory: Undo;

  /**
   * @param options.onCommit called after each transaction is on disk
   * @param options.undo for operations that also change memory; their changes are undone with their rows
   */
  constructor(
    db: DatabaseSync,
    { onCommit = () => {}, undo = new Undo() }: { onCommit?: () => void; undo?: Undo } = {},
  ) {
    this.#db = db;
    this.#onCommit = onCommit;
    this.#inMemory = undo;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#rollback = db.prepare('ROLLBACK');
    this.#savepoint = db.prepare('SAVEPOINT operation');
    this.#release = db.prepare('RELEASE operation');
    this.#rollbackTo = db.prepare('ROLLBACK TO operation');
  }

  /**
   * Queues an operation for the next shared transaction, which starts after the current turn of the event loop.
   *
   * @returns the operation's result, once the transaction is on disk. Rejects with the operation's own error (only this
   * operation is undone), or with `unavailable` if the transaction could not be stored (all of it is undone)
   */
  run<T>(operation: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ operation, resolve, reject });
      this.#schedule();
    });
  }

  /**
   * Runs an operation at once in its own transaction, before the queued ones.
   *
   * @returns the operation's result, when it is on disk
   * @throws the operation's own error, or `unavailable` if the transaction could not be stored; it is undone in both
   * cases
   */
  runNow<T>(operation: () => T): T {
    this.#open();
    let value: T;
    try {
      value = operation();
      refusePromise(value);
      this.#stillOpen();
    } catch (thrown) {
      this.#undo();
      throw operationError(thrown);
    }
    this.#close();
    return value;
  }

  /** Resolves when the queue is empty, including operations that are queued meanwhile. */
  drain(): Promise<void> {
    if (this.#queue.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const batch = this.#queue.slice(0, OPERATIONS_PER_COMMIT);
    this.#queue = this.#queue.slice(OPERATIONS_PER_COMMIT);
    if (this.#queue.length > 0) this.#schedule();
    if (batch.length === 1) this.#settleOne(batch[0]!);
    else this.#settleMany(batch);
    if (this.#queue.length > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** A single operation needs no savepoint, because it has its own transaction. */
  #settleOne({ operation, resolve, reject }: Waiting): void {
    let value: unknown;
    try {
      value = this.runNow(operation);
    } catch (error) {
      reject(error);
      return;
    }
    resolve(value as never);
  }

  #settleMany(batch: readonly Waiting[]): void {
    let outcomes: Outcome[];
    try {
      this.#open();
      try {
        outcomes = batch.map(({ operation }) => this.#attempt(operation));
      } catch (thrown) {
        this.#undo();
        throw thrown;
      }
      this.#close();
    } catch (thrown) {
      const error = storageError(thrown);
      for (const { reject } of batch) reject(error);
      return;
    }
    batch.forEach(({ resolve, reject }, index) => {
      const outcome = outcomes[index]!;
      if (outcome.ok) resolve(outcome.value as never);
      else reject(outcome.error);
    });
  }

  /** Runs one operation of several; throws only if the whole transaction is lost. */
  #attempt(operation: () => unknown): Outcome {
    this.#savepoint.run();
    const mark = this.#inMemory.mark();
    try {
      const value = operation();
      refusePromise(value);
      this.#stillOpen();
      this.#release.run();
      return { ok: true, value };
    } catch (thrown) {
      // After a full disk or an I/O error, SQLite may have rolled the transaction back by itself.
      if (!this.#db.isTransaction) throw sqliteCode(thrown) === undefined ? lostTransaction(thrown) : thrown;
      this.#rollbackTo.run();
      this.#release.run();
      this.#inMemory.backTo(mark);
      return { ok: false, error: operationError(thrown) };
    }
  }

  #open(): void {
    if (this.#db.isTransaction) {
      throw toReveilleError(new Error('an operation must not start another transaction on the same connection'));
    }
    try {
      this.#begin.run();
    } catch (thrown) {
      throw storageError(thrown);
    }
  }

  #close(): void {
    try {
      this.#commit.run();
    } catch (thrown) {
      this.#undo();
      throw storageError(thrown);
    }
    this.#inMemory.keep();
    this.#onCommit();
  }

  #stillOpen(): void {
    if (!this.#db.isTransaction) throw lostTransaction();
  }

  #undo(): void {
    if (this.#db.isTransaction) this.#rollback.run();
    this.#inMemory.backTo(0);
  }
}

export class Undo {
  #steps: (() => void)[] = [];

  /** Records how to undo a change that was just made. */
  note(step: () => void): void {
    this.#steps.push(step);
  }

  /** The current position, for {@link backTo}. */
  mark(): number {
    return this.#steps.length;
  }

  /** Undoes the changes since a position, latest first. */
  backTo(mark: number): void {
    for (const step of this.#steps.splice(mark).reverse()) step();
  }

  /** Makes the recorded changes permanent. */
  keep(): void {
    if (this.#steps.length > 0) this.#steps = [];
  }
}

/**
 * Moving the write-ahead log into the database file, on a thread of its own. SQLite would do it inside a commit, every
 * thousand pages, and whoever waits for that commit would wait for two more syncs and for the pages as well.
 */
import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../log/log.ts';

/** A process that commits less often in its life does without the thread, which costs some megabytes. */
const COMMITS_BEFORE_THREAD = 256;
/** A checkpoint begins this many commits after the one before, at the earliest. */
const COMMITS_BETWEEN = 32;
const MIB = 1024 * 1024;
/**
 * From how many bytes on SQLite does it inside a commit after all: what its default comes to, and what is set while
 * the thread runs, for a log that grows faster than the thread follows.
 */
const INLINE_BYTES = { alone: 4 * MIB, withThread: 64 * MIB };
/**
 * From how many bytes on the log is to start over, which it can only while the file has all of it. The thread goes on
 * without a pause then, until it finds little; what has come meanwhile is as little, and the connection moves it.
 */
const FULL_BYTES = 16 * MIB;
const LITTLE_BYTES = 1.6 * MIB;

/** What the thread says when a checkpoint has ended: how many pages of the log are in the file, or what went wrong. */
export type CheckpointReport = { moved: number; error?: undefined } | { error: string };

export class Checkpoints {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #log: Logger;
  readonly #pageBytes: number;
  #commits = 0;
  /** How many pages of the log were in the file when the thread looked last. */
  #moved = 0;
  #thread: Worker | undefined;
  #idle = true;
  /** No thread is to be started any more: closed, or it has failed. */
  #over = false;

  /**
   * @param db the connection that writes
   * @param path its file
   */
  constructor(db: DatabaseSync, path: string, log: Logger) {
    this.#db = db;
    this.#path = path;
    this.#log = log;
    this.#pageBytes = (db.prepare('PRAGMA page_size').get() as { page_size: number }).page_size;
  }

  /** To be called after each commit. Does not throw: what has been committed is not undone by what goes wrong here. */
  committed(): void {
    this.#commits++;
    if (this.#commits >= (this.#thread ? COMMITS_BETWEEN : COMMITS_BEFORE_THREAD)) this.#begin();
  }

  /** Ends the thread; resolves when it has let go of the file. */
  async close(): Promise<void> {
    this.#over = true;
    const thread = this.#thread;
    if (!thread) return;
    const gone = new Promise((resolve) => thread.once('exit', resolve));
    thread.ref();
    thread.postMessage('close');
    await gone;
  }

  #begin(): void {
    if (this.#over || !this.#idle) return;
    this.#commits = 0;
    this.#idle = false;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage('checkpoint');
    } catch (error) {
      this.#over = true;
      this.#log.warn({ err: error }, 'no thread for checkpoints can be had; they are made inside commits');
    }
  }

  #ended(report: CheckpointReport): void {
    this.#idle = true;
    if (report.error !== undefined) {
      this.#complain(report.error);
      return;
    }
    const found = report.moved - this.#moved;
    this.#moved = report.moved;
    if (report.moved * this.#pageBytes < FULL_BYTES || this.#over) return;
    if (found * this.#pageBytes > LITTLE_BYTES) this.#begin();
    else this.#startOver();
  }

  /** Moves the rest on the connection itself, between two transactions: its next one finds the log free. */
  #startOver(): void {
    this.#moved = 0;
    try {
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch (error) {
      this.#complain(error instanceof Error ? error.message : String(error));
    }
  }

  #complain(reason: string): void {
    this.#log.warn({ reason }, 'the write-ahead log could not be moved into the database file; trying again');
  }

  #start(): Worker {
    const thread = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), { workerData: this.#path });
    thread.unref();
    thread.on('message', (report: CheckpointReport) => this.#ended(report));
    thread.on('error', (error) => {
      this.#log.warn({ err: error }, 'the checkpoint thread ended; checkpoints are made inside commits from now on');
    });
    thread.on('exit', () => this.#withoutThread());
    this.#checkpointInline(INLINE_BYTES.withThread);
    return thread;
  }

  /** @param bytes of log from which on SQLite makes checkpoints inside commits */
  #checkpointInline(bytes: number): void {
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${bytes / this.#pageBytes}`);
  }

  #withoutThread(): void {
    this.#thread = undefined;
    if (!this.#over) this.#checkpointInline(INLINE_BYTES.alone);
    this.#over = true;
  }
}

/**
 * Moves the write-ahead log into the database file on a separate thread. SQLite would do it inside a commit, every
 * thousand pages, and that commit would take two more syncs and the time to move the pages.
 */
import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { thrownText } from '../../wire/errors.ts';
import type { Logger } from '../log/log.ts';

/** A process with fewer commits does not start the thread, which costs some megabytes. */
const COMMITS_BEFORE_THREAD = 256;
/** Minimum of commits between two checkpoints. */
const COMMITS_BETWEEN = 32;
const MIB = 1024 * 1024;
/**
 * Size of the log at which SQLite makes a checkpoint inside a commit: its default, and a larger one while the thread
 * runs, for a log that grows faster than the thread moves it.
 */
const INLINE_BYTES = { alone: 4 * MIB, withThread: 64 * MIB };
/**
 * Size of the log that triggers its reset, which is possible only while the file contains all of it. The thread then
 * works without a pause until little is left. The connection moves the rest.
 */
const FULL_BYTES = 16 * MIB;
const LITTLE_BYTES = 1.6 * MIB;

/** The thread's report after a checkpoint: the number of log pages in the file, or the error. */
export type CheckpointReport = { moved: number; error?: undefined } | { error: string };

export class Checkpoints {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #log: Logger;
  readonly #pageBytes: number;
  #commits = 0;
  /** Number of log pages in the file after the last checkpoint. */
  #moved = 0;
  #thread: Worker | undefined;
  #idle = true;
  /** No more threads are started: closed, or the thread has failed. */
  #isStopped = false;

  /**
   * @param db the writing connection
   * @param path its file
   */
  constructor(db: DatabaseSync, path: string, log: Logger) {
    this.#db = db;
    this.#path = path;
    this.#log = log;
    this.#pageBytes = (db.prepare('PRAGMA page_size').get() as { page_size: number }).page_size;
  }

  /** Call it after each commit. It does not throw, because the commit is already durable. */
  committed(): void {
    this.#commits++;
    if (this.#commits >= (this.#thread ? COMMITS_BETWEEN : COMMITS_BEFORE_THREAD)) this.#begin();
  }

  /** Ends the thread; resolves when it has released the file. */
  async close(): Promise<void> {
    this.#isStopped = true;
    const thread = this.#thread;
    if (!thread) return;
    const closed = new Promise((resolve) => thread.once('exit', resolve));
    thread.ref();
    thread.postMessage('close');
    await closed;
  }

  #begin(): void {
    if (this.#isStopped || !this.#idle) return;
    this.#commits = 0;
    this.#idle = false;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage('checkpoint');
    } catch (error) {
      this.#isStopped = true;
      this.#log.warn({ err: error }, 'the checkpoint thread cannot be started; checkpoints are made inside commits');
    }
  }

  #ended(report: CheckpointReport): void {
    this.#idle = true;
    if (report.error !== undefined) {
      this.#warn(report.error);
      return;
    }
    const found = report.moved - this.#moved;
    this.#moved = report.moved;
    if (report.moved * this.#pageBytes < FULL_BYTES || this.#isStopped) return;
    if (found * this.#pageBytes > LITTLE_BYTES) this.#begin();
    else this.#resetLog();
  }

  /** Moves the rest on the connection itself, between two transactions, so that the next one can reset the log. */
  #resetLog(): void {
    this.#moved = 0;
    try {
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch (error) {
      this.#warn(thrownText(error));
    }
  }

  #warn(reason: string): void {
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

  /** @param bytes size of the log at which SQLite makes checkpoints inside commits */
  #checkpointInline(bytes: number): void {
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${bytes / this.#pageBytes}`);
  }

  #withoutThread(): void {
    this.#thread = undefined;
    if (!this.#isStopped) this.#checkpointInline(INLINE_BYTES.alone);
    this.#isStopped = true;
  }
}

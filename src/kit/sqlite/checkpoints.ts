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
/**
 * From how many pages on SQLite does it inside a commit after all: its default, and what is set while the thread runs,
 * for a log that grows faster than the thread follows.
 */
const INLINE_PAGES = { alone: 1_000, withThread: 16_000 };
/**
 * From how many pages on the log is to start over, which it can only while the file has all of it. The thread goes on
 * without a pause then, until it finds few pages; what has come meanwhile is as little, and the connection moves it.
 */
const FULL_PAGES = 4_000;
const FEW_PAGES = 400;

/** What the thread says when a checkpoint has ended: how many pages of the log are in the file, or what went wrong. */
export type CheckpointReport = { moved: number; error?: undefined } | { error: string };

export class Checkpoints {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #log: Logger;
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
    if (report.moved < FULL_PAGES || this.#over) return;
    if (found > FEW_PAGES) this.#begin();
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
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${INLINE_PAGES.withThread}`);
    return thread;
  }

  #withoutThread(): void {
    this.#thread = undefined;
    if (!this.#over) this.#db.exec(`PRAGMA wal_autocheckpoint = ${INLINE_PAGES.alone}`);
    this.#over = true;
  }
}

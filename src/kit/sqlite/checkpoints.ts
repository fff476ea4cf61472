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
 * From how many pages on SQLite does it inside a commit after all: its default, and what is set while the thread runs.
 * A log that is written to without a pause starts over only there; by then the thread has left little to do.
 */
const INLINE_PAGES = { alone: 1_000, withThread: 16_000 };

/** What the thread says when a checkpoint has ended. */
export type CheckpointReport = { error?: string };

export class Checkpoints {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #log: Logger;
  #commits = 0;
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
    if (this.#over || !this.#idle) return;
    if (this.#commits < (this.#thread ? COMMITS_BETWEEN : COMMITS_BEFORE_THREAD)) return;
    try {
      this.#begin();
    } catch (error) {
      this.#over = true;
      this.#log.warn({ err: error }, 'no thread for checkpoints can be had; they are made inside commits');
    }
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
    this.#commits = 0;
    this.#idle = false;
    this.#thread ??= this.#start();
    this.#thread.postMessage('checkpoint');
  }

  #start(): Worker {
    const thread = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), { workerData: this.#path });
    thread.unref();
    thread.on('message', ({ error }: CheckpointReport) => {
      this.#idle = true;
      if (error !== undefined)
        this.#log.warn(
          { reason: error },
          'the write-ahead log could not be moved into the database file; trying again',
        );
    });
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

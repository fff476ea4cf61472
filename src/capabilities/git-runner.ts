/** Runs git operations in threads with a time and a memory limit: a hostile repository or remote can cause any cost. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../kit/clock/clock.ts';
import { KeyedQueue } from '../kit/queue/keyed-queue.ts';
import { type ErrorCode, ReveilleError } from '../wire/errors.ts';
import type { Job } from './git-operations.ts';
import type { Remote } from './git-remote.ts';
import type { JobMessage, ThreadData, ThreadMessage } from './git-thread.ts';

const MIB = 1024 * 1024;
const LOCAL_MS = 30_000;
const REMOTE_MS = 120_000;
/** Growth of this process since the start of the operation. */
const MAX_GROWTH_BYTES = 1024 * MIB;
/** A thread whose operation left the process this much larger is ended after it. */
const KEPT_GROWTH_BYTES = 64 * MIB;
const MEMORY_CHECK_MS = 50;
/** Limit of the thread's JavaScript heap; buffers count towards the growth of the process. */
const MAX_HEAP_MB = 512;

export type GitRunnerOptions = {
  clock: Clock;
  /** The workspace, as a real path. */
  root: string;
  localMs?: number;
  remoteMs?: number;
  maxGrowthBytes?: number;
};

/** One thread for writing operations and one for reading ones. Each runs one operation at a time. */
type Slot = { thread: Worker | undefined };

export class GitRunner {
  readonly #options: GitRunnerOptions;
  readonly #queue = new KeyedQueue();
  readonly #threads = { reading: { thread: undefined } as Slot, writing: { thread: undefined } as Slot };

  constructor(options: GitRunnerOptions) {
    this.#options = options;
  }

  /**
   * @param remote the remote to which the operation may send requests; without it none
   * @throws ReveilleError the operation's error, or `unavailable` when a limit ended it
   */
  async run(job: Job, { remote, signal }: { remote?: Remote | undefined; signal: AbortSignal }): Promise<string> {
    const isReading = /^(?:status|diff|log|show|branches)$/.test(job.operation);
    const kind = isReading ? 'reading' : 'writing';
    return this.#queue.run(kind, () => this.#runNow(this.#threads[kind], job, remote, signal));
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#threads).map(({ thread }) => thread?.terminate()));
  }

  #start(): Worker {
    const workerData: ThreadData = { root: this.#options.root };
    const thread = new Worker(new URL('./git-thread.ts', import.meta.url), {
      ...{ workerData, env: {}, argv: [], execArgv: [] },
      // Standard output carries MCP. A stream that is read would keep this process alive.
      ...{ stdin: false, stdout: true, stderr: true },
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    return thread;
  }

  async #runNow(slot: Slot, job: Job, remote: Remote | undefined, signal: AbortSignal): Promise<string> {
    const { clock, localMs = LOCAL_MS, remoteMs = REMOTE_MS, maxGrowthBytes = MAX_GROWTH_BYTES } = this.#options;
    if (signal.aborted) throw new ReveilleError('unavailable', 'git was ended: the call was cancelled');
    const before = process.memoryUsage.rss();
    const growth = () => process.memoryUsage.rss() - before;
    const ended = new AbortController();
    slot.thread ??= this.#start();
    const { thread } = slot;
    thread.ref();
    let hasAnswered = false;
    const limitMs = remote ? remoteMs : localMs;
    try {
      return await new Promise<string>((resolve, reject) => {
        const fail = (code: ErrorCode, message: string) => reject(new ReveilleError(code, message));
        const tooMuch = (bytes: number) =>
          fail('unavailable', `git was ended: it needed more than ${Math.round(bytes / MIB)} MB of memory`);
        const checkMemory = () => {
          if (growth() > maxGrowthBytes) tooMuch(maxGrowthBytes);
          else cancelCheck = clock.after(MEMORY_CHECK_MS, checkMemory);
        };
        let cancelCheck = clock.after(MEMORY_CHECK_MS, checkMemory);
        const cancelLimit = clock.after(limitMs, () =>
          fail('unavailable', `git was ended: it took more than ${limitMs / 1000} s`),
        );
        const onAbort = () => fail('unavailable', 'git was ended: the call was cancelled');
        const onMessage = (message: ThreadMessage) => {
          if ('request' in message) {
            if (!remote) fail('forbidden', 'this git operation may not use a remote');
            else void remote.send(message.request, ended.signal).then((answer) => thread.postMessage({ answer }));
            return;
          }
          hasAnswered = true;
          if ('text' in message) resolve(message.text);
          else fail(message.failed.code as ErrorCode, message.failed.message);
        };
        const onError = (error: NodeJS.ErrnoException) => {
          if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') tooMuch(MAX_HEAP_MB * MIB);
          else reject(error);
        };
        const onExit = (code: number) => fail('internal', `git ended with ${code} without an answer`);
        thread.on('message', onMessage).on('error', onError).on('exit', onExit);
        signal.addEventListener('abort', onAbort, { once: true });
        ended.signal.addEventListener('abort', () => {
          cancelCheck();
          cancelLimit();
          signal.removeEventListener('abort', onAbort);
          thread.off('message', onMessage).off('exit', onExit);
          // Keep the error listener while the thread is being ended; an unhandled error would end this process.
          if (hasAnswered) thread.off('error', onError);
        });
        const message: JobMessage = { job };
        thread.postMessage(message);
      });
    } finally {
      ended.abort(new Error('git has ended'));
      thread.unref();
      // A thread that answered has nothing left to do, and the next operation saves its start.
      if (!hasAnswered || growth() > KEPT_GROWTH_BYTES) {
        slot.thread = undefined;
        await thread.terminate();
      }
    }
  }
}

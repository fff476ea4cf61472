/**
 * Runs git operations, each in a thread of its own with a deadline and a bound of memory: a repository or a remote can be
 * made to cost as much as its author likes.
 */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../kit/clock/clock.ts';
import { type ErrorCode, ReveilleError } from '../wire/errors.ts';
import type { Job } from './git-operations.ts';
import type { Remote } from './git-remote.ts';
import type { ThreadData, ThreadMessage } from './git-thread.ts';

const LOCAL_MS = 30_000;
const REMOTE_MS = 120_000;
/** Of this process, above what it had when the operation began. */
const MAX_GROWTH_BYTES = 1024 * 1024 * 1024;
const LOOK_EVERY_MS = 50;
/** Of the thread's JavaScript heap; buffers count into the growth of the process. */
const MAX_HEAP_MB = 512;

export type GitRunnerOptions = {
  clock: Clock;
  /** The workspace; real. */
  root: string;
  localMs?: number;
  remoteMs?: number;
  maxGrowthBytes?: number;
};

export class GitRunner {
  readonly #options: GitRunnerOptions;
  /** Operations that write run one at a time, and so do those that read: together they have a bounded cost. */
  readonly #last = { write: Promise.resolve(), read: Promise.resolve() };

  constructor(options: GitRunnerOptions) {
    this.#options = options;
  }

  /**
   * @param remote where the operation may send requests; none without it
   * @throws ReveilleError what the operation refused, or `unavailable` when a bound ended it
   */
  async run(job: Job, { remote, signal }: { remote?: Remote | undefined; signal: AbortSignal }): Promise<string> {
    const queue = /^(?:status|diff|log|show|branches)$/.test(job.operation) ? 'read' : 'write';
    const turn = this.#last[queue].then(() => this.#start(job, remote, signal));
    this.#last[queue] = turn.then(
      () => {},
      () => {},
    );
    return turn;
  }

  async #start(job: Job, remote: Remote | undefined, signal: AbortSignal): Promise<string> {
    const { clock, root, localMs = LOCAL_MS, remoteMs = REMOTE_MS, maxGrowthBytes = MAX_GROWTH_BYTES } = this.#options;
    if (signal.aborted) throw new ReveilleError('unavailable', 'git was ended: the call was cancelled');
    const ended = new AbortController();
    const workerData: ThreadData = { root, job };
    const thread = new Worker(new URL('./git-thread.ts', import.meta.url), {
      ...{ workerData, env: {}, argv: [], execArgv: [] },
      // Standard output carries MCP, and the library writes to the console.
      ...{ stdin: false, stdout: true, stderr: true },
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    thread.stdout.resume();
    thread.stderr.resume();
    const before = process.memoryUsage.rss();
    const limitMs = remote ? remoteMs : localMs;
    try {
      return await new Promise<string>((resolve, reject) => {
        const fail = (code: ErrorCode, message: string) => reject(new ReveilleError(code, message));
        const look = () => {
          if (process.memoryUsage.rss() - before > maxGrowthBytes)
            fail(
              'unavailable',
              `git was ended: it needed more than ${Math.round(maxGrowthBytes / 1024 / 1024)} MB of memory`,
            );
          else cancelLook = clock.after(LOOK_EVERY_MS, look);
        };
        let cancelLook = clock.after(LOOK_EVERY_MS, look);
        const cancelLimit = clock.after(limitMs, () =>
          fail('unavailable', `git was ended: it took more than ${limitMs / 1000} s`),
        );
        const onAbort = () => fail('unavailable', 'git was ended: the call was cancelled');
        signal.addEventListener('abort', onAbort, { once: true });
        ended.signal.addEventListener('abort', () => {
          cancelLook();
          cancelLimit();
          signal.removeEventListener('abort', onAbort);
        });
        thread.on('message', (message: ThreadMessage) => {
          if ('text' in message) resolve(message.text);
          else if ('failed' in message) fail(message.failed.code as ErrorCode, message.failed.message);
          else if (!remote) fail('forbidden', 'git may ask no remote here');
          else void remote.send(message.request, ended.signal).then((answer) => thread.postMessage(answer));
        });
        thread.on('error', (error: NodeJS.ErrnoException) => {
          if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
            fail('unavailable', `git was ended: it needed more than ${MAX_HEAP_MB} MB of memory`);
          else reject(error);
        });
        thread.on('exit', (code) => fail('internal', `git ended with ${code} and said nothing`));
      });
    } finally {
      ended.abort(new Error('git has ended'));
      await thread.terminate();
    }
  }
}

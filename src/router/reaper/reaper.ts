/**
 * The router's side of the reaper: a small process that outlives a killed router, and ends the machines that no router
 * adopts (docs/internals/decisions/0007-process-machines.md).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { setPriority } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../kit/log/log.ts';

/** The last message of a router that stops its machines itself. */
export const SHUTDOWN_MESSAGE = 'farewell';

const PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url));

type ReaperOptions = {
  /** The router's data folder. */
  dataDir: string;
  /** How long the machines may outlive the router; 0: for ever. */
  orphanSeconds: number;
  log: Logger;
};

/** The folder for compiled code: without it, a start from TypeScript loads the compiler, which doubles its time. */
function compiledCode(): Record<string, string> {
  const folder = getCompileCacheDir();
  // Node creates a folder for its own version below the given one.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

/** The start of the first machine goes first. */
const PRIORITY = 15;

/** A reaper that ends is replaced at most this many times; more would not help. */
const REPLACEMENTS = 3;

export class Reaper {
  readonly #options: ReaperOptions;
  #child: ChildProcess | undefined;
  #replacements = 0;

  constructor(options: ReaperOptions) {
    this.#options = options;
  }

  /** Starts a reaper if none runs. The router works without one, so failures are only logged. */
  watch(): void {
    const { orphanSeconds, log } = this.#options;
    if (this.#child || orphanSeconds === 0) return;
    try {
      this.#child = this.#start();
    } catch (err) {
      log.warn({ err }, 'no reaper runs; machines would outlive a killed router');
    }
  }

  /** Ends the reaper: no machine is left to watch. */
  dismiss(): void {
    this.#child?.stdin?.end(SHUTDOWN_MESSAGE);
    this.#child = undefined;
    this.#replacements = 0;
  }

  /**
   * Hands the machines of an earlier router, which this one has not touched, to a reaper of their own: the earlier one
   * ended when this router came. Call it after the registry is closed.
   */
  leave(): void {
    this.watch();
    this.#child?.stdin?.end();
    this.#child = undefined;
  }

  #start(): ChildProcess {
    const dataDir = resolve(this.#options.dataDir);
    const folder = join(dataDir, 'machine-logs');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { O_APPEND, O_CREAT, O_WRONLY } = constants;
    const output = openSync(join(folder, 'undertaker.log'), O_WRONLY | O_CREAT | O_APPEND, 0o600);
    let child: ChildProcess;
    try {
      // It has its own session: signals of the router's terminal are not meant for it.
      child = spawn(process.execPath, [PROGRAM, dataDir, String(this.#options.orphanSeconds)], {
        cwd: dataDir,
        env: compiledCode(),
        stdio: ['pipe', 'ignore', output],
        detached: true,
      });
    } finally {
      closeSync(output);
    }
    if (child.pid !== undefined) setPriority(child.pid, PRIORITY);
    const gone = (why: unknown) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#options.log.warn({ why }, 'the reaper has ended');
      if (this.#replacements++ < REPLACEMENTS) this.watch();
    };
    child.once('error', gone);
    child.once('exit', (code, signal) => gone(signal ?? code));
    child.stdin?.on('error', (err) => this.#options.log.debug({ err }, 'the reaper does not accept messages'));
    // Neither it nor its pipe must keep the router from ending. The kernel closes the pipe when the router dies.
    child.unref();
    if (child.stdin && 'unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref();
    return child;
  }
}

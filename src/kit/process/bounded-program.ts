/**
 * Runs a program for a model with a time limit, a bounded output and only the given environment variables. Its end also
 * ends every process that it started.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { type Clock, wait } from '../clock/clock.ts';
import { processInfo } from './process-info.ts';

/** More output than this ends the program, because it might never stop. */
const FLOOD_BYTES = 16 * 1024 * 1024;
/** Wait for the pipes after the end of a program: a descendant may keep them open. */
const PIPES_MS = 200;
/**
 * Maximum rounds of {@link endLeftProcesses}; processes that start others as fast as they are ended are left after
 * that. With its pauses, killed processes have at least eight seconds to disappear.
 */
const SWEEPS = 200;
const LONGEST_PAUSE_MS = 50;
/** Number of consecutive process lists without another process. */
const QUIET_LISTS = 3;

export type ProgramRun = {
  command: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** Bytes kept of stdout and of stderr: the beginning and the end. */
  keptBytes: number;
  signal?: AbortSignal | undefined;
  /** Every other process in the sandbox is ended with it; see {@link isSandboxed}. */
  isSandboxed?: boolean;
};

export type ProgramEnd = {
  /** `null` when a signal ended it. */
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** The limit that ended it, if one did. */
  ended: 'timeout' | 'flood' | 'cancelled' | undefined;
  /** Number of processes outside its process group that were ended after it. */
  left: number;
};

/** Keeps the beginning and the end of a stream. */
class BoundedOutput {
  readonly #most: number;
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  bytes = 0;

  constructor(most: number) {
    this.#most = Math.max(2, most);
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length;
    const half = this.#most / 2;
    const headSpace = Math.floor(half) - this.#head.length;
    if (headSpace > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, headSpace)]);
    const rest = headSpace > 0 ? chunk.subarray(headSpace) : chunk;
    if (rest.length > 0) this.#tail = Buffer.concat([this.#tail, rest]).subarray(-Math.ceil(half));
  }

  get text(): string {
    const left = this.bytes - this.#head.length - this.#tail.length;
    const gap = left > 0 ? `\n[… ${left} bytes are omitted …]\n` : '';
    return `${this.#head.toString('utf8')}${gap}${this.#tail.toString('utf8')}`.toWellFormed();
  }
}

/**
 * Whether this process runs in a sandbox with its own PID namespace below bubblewrap. Every other process there
 * descends from this one.
 *
 * @param setting the value of {@link ROOM_VARIABLE}
 */
export function isSandboxed(setting: string | undefined): boolean {
  try {
    return setting === '1' && process.platform === 'linux' && readFileSync('/proc/1/comm', 'utf8').trim() === 'bwrap';
  } catch {
    return false;
  }
}

/**
 * Ends every process of the sandbox except this one and its ancestors, and waits until they have disappeared.
 *
 * @returns the number of ended processes
 */
async function endLeftProcesses(clock: Clock): Promise<number> {
  const ancestors = new Set<number>();
  for (let pid: number | undefined = process.pid; pid !== undefined && pid > 0; pid = processInfo(pid)?.parent)
    ancestors.add(pid);
  const found = new Set<number>();
  const ended = new Set<number>();
  let quietLists = 0;
  for (let round = 0; round < SWEEPS; round++) {
    const pids = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
    const others = pids.filter((pid) => !ancestors.has(pid));
    const left = others.filter(isRunning);
    const justEnded = others.filter((pid) => !left.includes(pid) && !ended.has(pid));
    // A process that ended after the list was made may have started another one that is not on the list. So a list
    // counts only if every other process had ended before it was made. A list is not made in one instant, so the last
    // few must agree.
    quietLists = left.length === 0 && justEnded.length === 0 ? quietLists + 1 : 0;
    if (quietLists === QUIET_LISTS) break;
    for (const pid of justEnded) ended.add(pid);
    const known = found.size;
    for (const pid of left) {
      found.add(pid);
      end(pid);
    }
    // A killed process needs CPU time once more before it disappears, which takes longer on a busy computer.
    if (left.length > 0 && found.size === known) await wait(clock, Math.min(round, LONGEST_PAUSE_MS));
  }
  return found.size;
}

function isRunning(pid: number): boolean {
  const state = processInfo(pid)?.state;
  return state !== undefined && state !== 'Z' && state !== 'X';
}

function end(target: number): void {
  try {
    process.kill(target, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}

/**
 * Runs a program to its end. Rejects when it cannot be started. Run one at a time in a sandbox: the end of one ends all
 * other processes.
 */
export async function runBounded(clock: Clock, run: ProgramRun): Promise<ProgramEnd> {
  const { command, cwd, env, timeoutMs, keptBytes, signal } = run;
  const [program, ...args] = command;
  const [stdout, stderr] = [new BoundedOutput(keptBytes), new BoundedOutput(keptBytes)];
  let ended: ProgramEnd['ended'];
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const endGroup = () => {
    if (child.pid !== undefined) end(-child.pid);
  };
  const giveUp = (why: NonNullable<ProgramEnd['ended']>) => {
    ended ??= why;
    endGroup();
  };
  const keep = (kept: BoundedOutput) => (chunk: Buffer) => {
    kept.add(chunk);
    if (stdout.bytes + stderr.bytes > FLOOD_BYTES) giveUp('flood');
  };
  child.stdout.on('data', keep(stdout));
  child.stderr.on('data', keep(stderr));
  const cancel = clock.after(timeoutMs, () => giveUp('timeout'));
  const onAbort = () => giveUp('cancelled');
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  try {
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const [code, exitSignal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (exit, exitSignal) => resolve([exit, exitSignal]));
    });
    endGroup();
    const left = run.isSandboxed ? await endLeftProcesses(clock) : 0;
    const pipeTimeout = new Promise<void>((resolve) => clock.after(PIPES_MS, resolve));
    await Promise.race([closed, pipeTimeout]);
    child.stdout.destroy();
    child.stderr.destroy();
    return { code, signal: exitSignal, stdout: stdout.text, stderr: stderr.text, ended, left };
  } finally {
    cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}

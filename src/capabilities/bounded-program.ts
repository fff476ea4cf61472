/**
 * Running a program that a model asked for: within a time, with a bounded output, with no variables but those it is
 * given, and with an end that takes everything along that it has started.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { type Clock, wait } from '../kit/clock/clock.ts';

/** More output than this ends the program: nobody reads it, and it may never stop. */
const FLOOD_BYTES = 16 * 1024 * 1024;
/** Between the end of a program and that of its pipes: a descendant may hold them. */
const PIPES_MS = 200;
/**
 * Each round ends what was there; what starts others as fast as it is ended is given up after these. With the pauses
 * of {@link endLeftProcesses}, what has been ended has at least eight seconds to be gone.
 */
const SWEEPS = 200;
const LONGEST_PAUSE_MS = 50;
/** So many lists in a row without anybody else on them. */
const QUIET_LISTS = 3;

export type ProgramRun = {
  command: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** What is kept of stdout and stderr each: the beginning and the end. */
  keptBytes: number;
  signal?: AbortSignal | undefined;
  /** Everything else that runs in the room is ended with it; see {@link isSandboxed}. */
  isSandboxed?: boolean;
};

export type ProgramEnd = {
  /** `null` where a signal ended it. */
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** Why it was ended, if it was. */
  ended: 'timeout' | 'flood' | 'cancelled' | undefined;
  /** Processes that it left behind outside of its group, and that were ended. */
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
    const room = Math.floor(half) - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)]);
    const rest = room > 0 ? chunk.subarray(room) : chunk;
    if (rest.length > 0) this.#tail = Buffer.concat([this.#tail, rest]).subarray(-Math.ceil(half));
  }

  get text(): string {
    const left = this.bytes - this.#head.length - this.#tail.length;
    const gap = left > 0 ? `\n[… ${left} bytes are left out …]\n` : '';
    return `${this.#head.toString('utf8')}${gap}${this.#tail.toString('utf8')}`.toWellFormed();
  }
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

/**
 * Whether this process is in a room, with process numbers of its own below a bubblewrap: whatever else runs there, we
 * have started.
 *
 * @param told what {@link ROOM_VARIABLE} says
 */
export function isSandboxed(told: string | undefined): boolean {
  try {
    return told === '1' && process.platform === 'linux' && readFileSync('/proc/1/comm', 'utf8').trim() === 'bwrap';
  } catch {
    return false;
  }
}

/**
 * Ends every process of the room but this one and those that it descends from, and waits until they are gone.
 *
 * @returns how many were seen
 */
async function endLeftProcesses(clock: Clock): Promise<number> {
  const spared = new Set<number>();
  for (let pid: number | undefined = process.pid; pid !== undefined && pid > 0; pid = parentOf(pid)) spared.add(pid);
  const found = new Set<number>();
  const ended = new Set<number>();
  let quiet = 0;
  for (let round = 0; round < SWEEPS; round++) {
    const there = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
    const others = there.filter((pid) => !spared.has(pid));
    const left = others.filter(isRunning);
    const justEnded = others.filter((pid) => !left.includes(pid) && !ended.has(pid));
    // Who was there when the list was made and has ended since may have started another one in between, which is not on
    // the list. So a list counts only when all who could start anything had ended before it was made; and since a list is
    // not made in one instant, the last few must agree.
    quiet = left.length === 0 && justEnded.length === 0 ? quiet + 1 : 0;
    if (quiet === QUIET_LISTS) break;
    for (const pid of justEnded) ended.add(pid);
    const known = found.size;
    for (const pid of left) {
      found.add(pid);
      end(pid);
    }
    // A killed process needs a processor once more before it is gone, and on a busy computer it waits for that.
    if (left.length > 0 && found.size === known) await wait(clock, Math.min(round, LONGEST_PAUSE_MS));
  }
  return found.size;
}

function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

function end(target: number): void {
  try {
    process.kill(target, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** Runs a program to its end. Rejects when it cannot be started. One at a time in a room: what is left is ended. */
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
    const [code, by] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (exit, exitSignal) => resolve([exit, exitSignal]));
    });
    endGroup();
    const left = run.isSandboxed ? await endLeftProcesses(clock) : 0;
    const late = new Promise<void>((resolve) => clock.after(PIPES_MS, resolve));
    await Promise.race([closed, late]);
    child.stdout.destroy();
    child.stderr.destroy();
    return { code, signal: by, stdout: stdout.text, stderr: stderr.text, ended, left };
  } finally {
    cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}

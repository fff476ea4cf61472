/**
 * Passes a notification to a program: started without a shell, with JSON on its standard input. Status 0 means
 * delivered. The program gets none of Reveille's secrets and has a time limit. Of its output, only the beginning of
 * stderr is kept, for error messages.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Settings } from '../../wire/settings.ts';
import type { Clock } from '../clock/clock.ts';
import { inheritedVariables } from '../process/inherited-variables.ts';
import type { Delivery } from './outbox.ts';

export type CommandOptions = {
  /** This process's variables; the program gets an allow-list of them. */
  readonly variables: Settings;
  /** Additional variables of the program. */
  readonly more?: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

const TIMEOUT_MS = 30_000;
const SHOWN_BYTES = 1000;
/** A program that daemonizes may leave its pipes to a child. After its exit, they are read for this long. */
const PIPES_MS = 1000;

const ENDING = 'this process is shutting down';

const HAS_GROUPS = process.platform !== 'win32';

/** Ends the program and its children. */
function end(child: ChildProcess): void {
  try {
    if (HAS_GROUPS && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    // It has already ended.
  }
}

/** Keeps the beginning of stderr, and drains the rest so that the program does not block. */
function beginningOf(child: ChildProcess): () => string {
  const kept: Buffer[] = [];
  let size = 0;
  const keep = (chunk: Buffer) => {
    if (size >= SHOWN_BYTES) return;
    kept.push(chunk.subarray(0, SHOWN_BYTES - size));
    size += chunk.length;
  };
  child.stderr?.on('data', keep);
  child.stdout?.resume();
  return () => Buffer.concat(kept).toString('utf8').replaceAll(/\s+/g, ' ').trim();
}

/** Runs once; never rejects. */
export function runNotice(
  [program, ...args]: readonly [string, ...string[]],
  notice: string,
  { variables, more, clock, signal }: CommandOptions,
): Promise<Delivery> {
  if (signal.aborted) return Promise.resolve({ result: 'later', why: ENDING });
  return new Promise((resolve) => {
    let why: string | undefined;
    const child = spawn(program, args, {
      env: { ...inheritedVariables(variables), ...more },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: HAS_GROUPS,
      windowsHide: true,
    });
    const errorOutput = beginningOf(child);
    const abort = (reason: string) => {
      why ??= reason;
      end(child);
    };
    const stop = () => abort(ENDING);
    const cancels = [clock.after(TIMEOUT_MS, () => abort(`it did not end within ${TIMEOUT_MS / 1000} s`))];
    signal.addEventListener('abort', stop);
    const settle = (delivery: Delivery) => {
      for (const cancel of cancels) cancel();
      signal.removeEventListener('abort', stop);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve(delivery);
    };
    const ended = (code: number | null, killedBy: NodeJS.Signals | null) => {
      if (code === 0 && why === undefined) return settle({ result: 'done' });
      const how = why ?? (code === null ? `it was ended by ${killedBy}` : `it ended with status ${code}`);
      const text = errorOutput();
      settle({ result: 'later', why: `${program}: ${how}${text === '' ? '' : `: ${text}`}` });
    };
    child.on('error', (error) => settle({ result: 'later', why: `${program} cannot be started: ${error.message}` }));
    child.on('exit', (code, killedBy) => void cancels.push(clock.after(PIPES_MS, () => ended(code, killedBy))));
    child.on('close', ended);
    // A program may ignore its input.
    child.stdin.on('error', () => {});
    child.stdin.end(notice);
  });
}

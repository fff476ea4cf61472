/**
 * A notice to a program: started without a shell, with the notice as JSON on its standard input. Status 0 says that it
 * took it. It gets none of our secrets, a limited time, and what it prints is kept only as far as an error is explained
 * by it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Settings } from '../../wire/settings.ts';
import type { Clock } from '../clock/clock.ts';
import { inheritedVariables } from '../process/inherited-variables.ts';
import type { Delivery } from './outbox.ts';

export type CommandOptions = {
  /** Our own variables; the program gets an allow-list of them. */
  readonly variables: Settings;
  /** What it gets besides. */
  readonly more?: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

const TIMEOUT_MS = 30_000;
const SHOWN_BYTES = 1000;
/** A program that daemonizes may leave its pipes to a child; what has ended is not waited for longer. */
const PIPES_MS = 1000;

const ENDING = 'this process is shutting down';

const HAS_GROUPS = process.platform !== 'win32';

/** Ends the program and what it has started. */
function end(child: ChildProcess): void {
  try {
    if (HAS_GROUPS && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

/** Keeps the beginning of what is printed, and lets the rest pass so that the program does not hang. */
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
    const said = beginningOf(child);
    const giveUp = (reason: string) => {
      why ??= reason;
      end(child);
    };
    const stop = () => giveUp(ENDING);
    const cancels = [clock.after(TIMEOUT_MS, () => giveUp(`it did not end within ${TIMEOUT_MS / 1000} s`))];
    signal.addEventListener('abort', stop);
    const settle = (carried: Delivery) => {
      for (const cancel of cancels) cancel();
      signal.removeEventListener('abort', stop);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve(carried);
    };
    const ended = (code: number | null, killedBy: NodeJS.Signals | null) => {
      if (code === 0 && why === undefined) return settle({ result: 'done' });
      const how = why ?? (code === null ? `it was ended by ${killedBy}` : `it ended with status ${code}`);
      const words = said();
      settle({ result: 'later', why: `${program}: ${how}${words === '' ? '' : `: ${words}`}` });
    };
    child.on('error', (error) => settle({ result: 'later', why: `${program} cannot be started: ${error.message}` }));
    child.on('exit', (code, killedBy) => void cancels.push(clock.after(PIPES_MS, () => ended(code, killedBy))));
    child.on('close', ended);
    // A program that does not read its input is no error.
    child.stdin.on('error', () => {});
    child.stdin.end(notice);
  });
}

/** The computer for probes: programs by absolute path, without a shell, with limited environment, output and time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { inheritedVariables } from '../../kit/process/inherited-variables.ts';
import { hiddenBlanked } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost } from './idle.ts';

const LONGEST_OUTPUT_BYTES = 64 * 1024;
const LONGEST_REASON_CHARACTERS = 200;

/** Variables with which a program finds the user's display, besides the common ones. */
const DISPLAY_VARIABLES = ['DISPLAY', 'XAUTHORITY'];

/** @param environment ours; a program gets the allowed part of it */
export function programHost(environment: IdleHost['environment']): IdleHost {
  const display = Object.fromEntries(DISPLAY_VARIABLES.flatMap((name) => pair(name, environment[name])));
  // Users compare reasons, so all programs report them in one language.
  const childEnvironment = { ...inheritedVariables(environment), ...display, LC_ALL: 'C' };
  return {
    platform: process.platform,
    environment,
    uid: process.getuid?.(),
    exists: existsSync,
    run: (path, args, signal) => runProgram(path, args, childEnvironment, signal),
  };
}

const pair = (name: string, value: string | undefined) => (value === undefined ? [] : [[name, value] as const]);

function runProgram(
  path: string,
  args: readonly string[],
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (message: string, cause?: unknown) => reject(new ReveilleError('unavailable', message, { cause }));
    if (signal.aborted) return reject(signal.reason);
    if (!isAbsolute(path)) return fail(`${path} is not an absolute path`);
    // A group of its own, so that its children end with it.
    const child = spawn(path, args, {
      env,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
    });
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    let bytes = 0;
    const finish = (settle: () => void) => {
      signal.removeEventListener('abort', abort);
      settle();
    };
    const abort = () => {
      end(child);
      finish(() => reject(signal.reason));
    };
    const keep = (stream: 'stdout' | 'stderr') => (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= LONGEST_OUTPUT_BYTES) return output[stream].push(chunk);
      end(child);
      return finish(() => fail(`${path} wrote more than ${LONGEST_OUTPUT_BYTES / 1024} KiB`));
    };
    child.stdout.on('data', keep('stdout'));
    child.stderr.on('data', keep('stderr'));
    child.on('error', (error: NodeJS.ErrnoException) =>
      finish(() => fail(`${path} could not be run (${error.code ?? error.name})`, error)),
    );
    child.on('close', (status, killedBy) =>
      finish(() => {
        if (status === 0) return resolve(Buffer.concat(output.stdout).toString('utf8'));
        const errorLine = firstLine(Buffer.concat(output.stderr).toString('utf8'));
        return fail(`${path} ended with ${killedBy ?? status}${errorLine && `: ${errorLine}`}`);
      }),
    );
    signal.addEventListener('abort', abort);
  });
}

/** Ends a program and its children, and closes its output. */
function end(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
  if (child.pid !== undefined && process.platform !== 'win32') {
    try {
      process.kill(-child.pid, 'SIGKILL');
      return;
    } catch {
      // The group has ended, or (on macOS) has only dead members. Only the child may still run.
    }
  }
  child.kill('SIGKILL');
}

/** The first line of a program's error output, safe to display. */
function firstLine(text: string): string {
  const line = text.split('\n').find((candidate) => candidate.trim() !== '') ?? '';
  return hiddenBlanked(line)
    .replace(/\p{Z}+/gu, ' ')
    .trim()
    .slice(0, LONGEST_REASON_CHARACTERS);
}

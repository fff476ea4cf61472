/** A program that a test starts, waits for and ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { atEnd, type Owner } from '../../support/temporary.ts';

/**
 * Starts a program that reports its readiness on a file descriptor, and ends it after the test.
 *
 * @param announcesOn the descriptor, 1 or 3
 * @returns the line that it wrote
 */
export async function startProgram(
  t: Owner,
  path: string,
  args: readonly string[],
  announcesOn: 1 | 3,
): Promise<{ line: string; child: ChildProcess }> {
  const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
  let complaints = '';
  child.stderr!.on('data', (chunk) => {
    complaints += chunk;
  });
  atEnd(t, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const announcement = child.stdio[announcesOn] as NodeJS.ReadableStream;
  const line = await new Promise<string>((resolve, reject) => {
    let output = '';
    announcement.on('data', (chunk) => {
      output += chunk;
      if (output.includes('\n')) resolve(output.slice(0, output.indexOf('\n')));
    });
    child.on('error', reject);
    child.on('exit', (status) => reject(new Error(`${path} ended with ${status}: ${complaints}`)));
  });
  return { line, child };
}

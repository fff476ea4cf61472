/** Starting real processes and waiting for them. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** The program under test: the sources, unless a test of the package names the installed one. */
export const PROGRAM =
  process.env.REVEILLE_TEST_PROGRAM ?? join(import.meta.dirname, '..', '..', '..', 'bin', 'reveille.mjs');
export const START_LIMIT_MS = 60_000;

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/**
 * The first line that a process prints on its piped stdout, such as its address.
 *
 * @throws when it ends before, with the end of its piped stderr
 */
export function firstLine(child: ChildProcess): Promise<string> {
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors = (errors + chunk).slice(-2000);
  });
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', resolve);
    child.once('close', (status, signal) => reject(new Error(`the process ended (${signal ?? status}):\n${errors}`)));
  });
}

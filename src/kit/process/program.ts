/** Finds the program of a command, so that an error names a missing program instead of an exit code. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** Whether a path is a file that this process may run. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * @param name a path, or a name to search for
 * @param path the value of PATH
 * @param cwd its working folder; by default this process's
 * @returns whether the program can be run
 */
export function isProgram(name: string, path: string | undefined, cwd = '.'): boolean {
  // Windows finds programs by their extensions; the start will report a missing one.
  if (process.platform === 'win32') return true;
  if (name.includes('/')) return isExecutable(resolve(cwd, name));
  return (path ?? '').split(delimiter).some((folder) => folder !== '' && isExecutable(join(folder, name)));
}

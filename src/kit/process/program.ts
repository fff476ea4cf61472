/** Finding the program that a command names, so that a missing one is told by name instead of by an exit code. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * @param name a path, or a name to look for
 * @param path as the variable PATH has it
 * @param cwd where it is to run; where we run unless told
 * @returns whether such a program can be run
 */
export function isProgram(name: string, path: string | undefined, cwd = '.'): boolean {
  // Windows finds programs by extensions of its own; the start will tell.
  if (process.platform === 'win32') return true;
  if (name.includes('/')) return isExecutable(resolve(cwd, name));
  return (path ?? '').split(delimiter).some((folder) => folder !== '' && isExecutable(join(folder, name)));
}

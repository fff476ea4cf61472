/** The location of the package's own files (manifests, skills). */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

function findRoot(from: string): string {
  if (existsSync(join(from, 'package.json'))) return from;
  const above = dirname(from);
  if (above === from) throw new Error('package.json is missing above the program');
  return findRoot(above);
}

/** The folder of `package.json`, from the sources as well as from a build. */
export const PACKAGE_ROOT = findRoot(import.meta.dirname);
/** The program for child processes. */
export const PROGRAM = join(PACKAGE_ROOT, 'bin', 'reveille.mjs');

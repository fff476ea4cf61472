/**
 * Programs: whether a command's program can be run, so that an error names a missing one, and the locations of its
 * code, which must be readable wherever its user keeps it. Reads the disk.
 */
import { accessSync, constants, realpathSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { isWithin, PRIVATE_FOLDERS } from './view.ts';

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

/** Folders with files of many programs or of a user. A file in one of them does not grant the folder. */
const SHARED_FOLDERS = [...PRIVATE_FOLDERS, '/home', '/Users', '/var', '/srv', '/mnt', '/media', '/run', '/dev/shm'];
const SHARED_IN_HOME = ['.local', '.local/share', '.config', '.cache', '.local/state'];
/** Folders of programs; their libraries are beside these folders. */
const PROGRAM_FOLDER = /^(?:s?bin|shims|libexec)$/;
const SCRIPT = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/;

/** The path without links; `undefined` for one that does not exist or cannot be reached. */
export function realOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** `undefined` also for paths that this user cannot reach. */
function statOrUndefined(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Whether a folder contains more than one program or project: a home, its parents, a temporary folder. */
export function isTooBroad(folder: string, home: string): boolean {
  const homes = [home, homedir(), realOrUndefined(home) ?? home, '/root'];
  return (
    [...SHARED_FOLDERS, ...homes].some((path) => isWithin(path, folder)) ||
    homes.some((path) => SHARED_IN_HOME.some((name) => folder === join(path, name)))
  );
}

/** The folder of all that a program loads, from its real path: its packages, its prefix, or its own folder. */
function folderOf(file: string, home: string): string {
  const packages = file.indexOf('/node_modules/');
  if (packages !== -1) return file.slice(0, packages + '/node_modules'.length);
  const folder = dirname(file);
  const prefix = prefixOf(folder);
  return [prefix, folder].find((path) => !isTooBroad(path, home)) ?? file;
}

const prefixOf = (folder: string) => (PROGRAM_FOLDER.test(basename(folder)) ? dirname(folder) : folder);

/** A program's path may be a link: both the link and its target are needed. */
function codeOf(path: string, home: string): string[] {
  const real = realOrUndefined(path);
  const found = real === undefined ? undefined : statOrUndefined(real);
  if (real === undefined || !found?.isFile()) return [];
  const isCode = (found.mode & 0o111) !== 0 || SCRIPT.test(real);
  return isCode
    ? [real, folderOf(real, home), folderOf(join(realpathSync(dirname(path)), basename(path)), home)]
    : [real];
}

/**
 * The files that a program must read: its code, the programs on its `PATH`, and the files and folders named in its
 * arguments and variables.
 *
 * @param words the operator's arguments, never those of a model
 * @param home the person's home folder
 */
export function toolsOf(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string | undefined,
  named: readonly string[],
  home: string,
): string[] {
  const folders = (env.PATH ?? '').split(delimiter).filter((path) => isAbsolute(path));
  const onPath = (name: string) => folders.flatMap((folder) => codeOf(join(folder, name), home));
  const programs = args.flatMap((arg) => {
    if (arg.includes('/')) return codeOf(resolve(cwd ?? '/', arg), home);
    return arg === '' ? [] : onPath(arg);
  });
  const prefixes = folders.flatMap((path) => {
    const folder = realOrUndefined(path);
    return folder === undefined ? [] : ([prefixOf(folder), folder].find((one) => !isTooBroad(one, home)) ?? []);
  });
  const files = named.filter((path) => {
    const found = statOrUndefined(path);
    return found?.isFile() || (found?.isDirectory() && !isTooBroad(path, home));
  });
  return [...new Set([...codeOf(process.execPath, home), ...programs, ...prefixes, ...files])];
}

/** Where the code of a program is: what it must be able to read wherever its user keeps it. Reads the disk. */
import { realpathSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { isWithin, PRIVATE_FOLDERS } from './view.ts';

/** Folders that hold the files of many programs, or of a user. Nobody names one of them by naming a file in it. */
const SHARED_FOLDERS = [...PRIVATE_FOLDERS, '/home', '/Users', '/var', '/srv', '/mnt', '/media', '/run', '/dev/shm'];
const SHARED_IN_HOME = ['.local', '.local/share', '.config', '.cache', '.local/state'];
/** Programs are there, and what they load is beside. */
const PROGRAM_FOLDER = /^(?:s?bin|shims|libexec)$/;
const SCRIPT = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/;

function realOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** `undefined` also for what this user cannot reach. */
function statOrUndefined(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Whether a folder holds more than one program or one project: a home, a folder above one, a temporary folder. */
export function isTooBroad(folder: string, home: string): boolean {
  const homes = [home, homedir(), realOrUndefined(home) ?? home, '/root'];
  return (
    [...SHARED_FOLDERS, ...homes].some((path) => isWithin(path, folder)) ||
    homes.some((path) => SHARED_IN_HOME.some((name) => folder === join(path, name)))
  );
}

/** The folder with everything that a program loads, from its real path: its packages, its prefix, or where it is. */
function folderOf(file: string, home: string): string {
  const packages = file.indexOf('/node_modules/');
  if (packages !== -1) return file.slice(0, packages + '/node_modules'.length);
  const folder = dirname(file);
  const prefix = prefixOf(folder);
  return [prefix, folder].find((path) => !isTooBroad(path, home)) ?? file;
}

const prefixOf = (folder: string) => (PROGRAM_FOLDER.test(basename(folder)) ? dirname(folder) : folder);

/** A file on the way to a program may be a link: both ends of it are needed. */
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
 * What a program reads of its own: its code, that of the programs on its `PATH`, and the files and folders that words
 * and variables name.
 *
 * @param words of the operator's; words of a model must not be among them
 * @param home of the person
 */
export function toolsOf(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string | undefined,
  named: readonly string[],
  home: string,
): string[] {
  const folders = (env.PATH ?? '').split(delimiter).filter((path) => isAbsolute(path));
  const onPath = (word: string) => folders.flatMap((folder) => codeOf(join(folder, word), home));
  const programs = words.flatMap((word) => {
    if (word.includes('/')) return codeOf(resolve(cwd ?? '/', word), home);
    return word === '' ? [] : onPath(word);
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

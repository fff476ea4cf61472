/** A check of a file or folder on the machine: whether it has changed. Nothing outside what the agent may read is seen. */
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { comparedWith, digestOf, type Finding, NotAllowed, outputOf, Undecided } from './finding.ts';

/** How much of a file is read. A change after that shows in its size or its time. */
const READ_BYTES = 1024 * 1024;
/** Entries of a folder that are looked at. */
export const ENTRIES_MAX = 10_000;
const SHOWN_BYTES = 4096;

/**
 * The real path behind a path that the agent may read; `real` is absent where there is nothing.
 *
 * @param folder the machine's folder, for relative paths
 * @param isReadable whether the agent may read a real path
 * @throws NotAllowed when the agent may not read it
 */
export async function readablePath(
  path: string,
  folder: string | undefined,
  isReadable: (path: string) => boolean,
): Promise<{ asked: string; real: string | undefined }> {
  if (!isAbsolute(path) && folder === undefined)
    throw new NotAllowed('the machine has no folder, so the path must be absolute; or register it with --dir');
  const asked = resolve(folder ?? '/', path);
  const real = await realOf(asked);
  // Absence is information too: the nearest folder that exists must be readable.
  let outer = real;
  for (let path = asked; outer === undefined; ) {
    path = dirname(path);
    outer = await realOf(path);
  }
  if (!isReadable(outer)) throw new NotAllowed('the path is not in a folder that the agent may read');
  return { asked, real };
}

/**
 * @param folder as in {@link readablePath}
 * @throws Undecided when it cannot be read, NotAllowed when the agent may not read it
 */
export async function lookAtPath(
  path: string,
  folder: string | undefined,
  isReadable: (path: string) => boolean,
  last: string | undefined,
): Promise<Finding> {
  const { real } = await readablePath(path, folder, isReadable);
  if (real === undefined) return comparedWith(last, 'missing', 'the path, which does not exist,');
  const { file, handle } = await openReadable(real, isReadable);
  try {
    const found = await file.stat();
    if (found.isDirectory()) return await lookAtFolder(handle, last);
    if (!found.isFile()) throw new Undecided('the path is neither a file nor a folder');
    const content = digestOf(await beginningOf(file));
    return comparedWith(last, digestOf(`file ${found.size} ${found.mtimeMs} ${content}`), 'the file');
  } finally {
    await file.close();
  }
}

/** An opened file or folder: its real path, and a path that leads to it whatever happens to its name. */
export type Opened = { file: FileHandle; path: string; handle: string };

/**
 * Opens a real path that the agent may read. The caller closes it.
 *
 * @throws Undecided when it cannot be read, or leads elsewhere meanwhile
 */
export async function openReadable(real: string, isReadable: (path: string) => boolean): Promise<Opened> {
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(unreadable);
  try {
    const place = await placeOf(file, real);
    if (place === undefined || !isReadable(place.path)) throw new Undecided('the path was replaced while it was read');
    return { file, ...place };
  } catch (thrown) {
    await file.close();
    throw thrown;
  }
}

/** Linux: what is opened stays reachable below this path, whatever happens to its name. */
const DESCRIPTORS = '/proc/self/fd';
const HAS_DESCRIPTORS = process.platform === 'linux' && existsSync(DESCRIPTORS);

/**
 * Where an opened file is, and a path to it. Its own path may lead elsewhere meanwhile. `undefined`: it is not there.
 * On other systems a program of the same user that exchanges a folder at the right moments is not noticed.
 */
async function placeOf(file: FileHandle, real: string): Promise<{ path: string; handle: string } | undefined> {
  if (HAS_DESCRIPTORS) {
    const handle = `${DESCRIPTORS}/${file.fd}`;
    return { path: await readlink(handle).catch(unreadable), handle };
  }
  const found = await file.stat();
  const now = (await realOf(real)) === real ? await stat(real).catch(unreadable) : undefined;
  return now?.ino === found.ino && now.dev === found.dev ? { path: real, handle: real } : undefined;
}

export async function realOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    return unreadable(thrown);
  }
}

export function unreadable(thrown: unknown): never {
  const { code = 'unknown' } = thrown as NodeJS.ErrnoException;
  throw new Undecided(`the path cannot be read (${code})`);
}

async function beginningOf(file: FileHandle): Promise<Uint8Array> {
  const buffer = Buffer.alloc(READ_BYTES);
  let length = 0;
  while (length < READ_BYTES) {
    const { bytesRead } = await file.read(buffer, length, READ_BYTES - length, length).catch(unreadable);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** Names, sizes and times of the entries; not what is in them. */
async function lookAtFolder(folder: string, last: string | undefined): Promise<Finding> {
  const names = (await readdir(folder).catch(unreadable)).sort();
  if (names.length > ENTRIES_MAX) throw new Undecided(`the folder has more than ${ENTRIES_MAX} entries`);
  const lines: string[] = [];
  for (const name of names) {
    // What a link leads to may be outside.
    const found = await lstat(join(folder, name)).catch(() => undefined);
    const about = found === undefined || found.isSymbolicLink() ? '' : `${found.size} ${found.mtimeMs}`;
    lines.push(`${JSON.stringify(name)} ${about}`);
  }
  const output = outputOf(names.map((name) => JSON.stringify(name)).join('\n'), SHOWN_BYTES);
  const compared = comparedWith(last, digestOf(`folder\n${lines.join('\n')}`), 'the folder');
  return { ...compared, ...(output !== undefined && { output }) };
}

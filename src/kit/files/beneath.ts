/**
 * A file system beneath one folder. No operation follows a symbolic link, neither in the middle of a path nor at its
 * end, so no operation reads, writes or removes anything outside the folder.
 *
 * Linux: each component is opened relative to the descriptor of its parent (`/proc/self/fd/<n>/<name>`) with
 * `O_NOFOLLOW`, so a link that replaces a folder during the operation is refused too. Other systems, and Linux without
 * `/proc`: each component is checked with `lstat` first. A process of the same user that replaces a folder between the
 * check and the use is not detected there.
 */
import { randomBytes } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_NOCTTY = 0, O_RDONLY, O_WRONLY } = constants;
/** Linux: opens the name itself, without permission to read it and without an effect on a device. */
const O_PATH = 0o10000000;
const DESCRIPTORS = '/proc/self/fd';
const HAS_DESCRIPTORS = process.platform === 'linux' && existsSync(DESCRIPTORS);
const LONGEST_PATH = 4096;

/** A failed operation. `path` is relative to the folder, so a message never reveals the folder. */
export class BeneathError extends Error {
  /**
   * The system's code, or `ELOOP` for a symbolic link, `EFBIG` for a file over its limit, `EINVAL` for a path that is
   * not allowed, `ENOTSUP` for a device, a FIFO or a socket.
   */
  readonly code: string;
  readonly path: string;

  constructor(code: string, path: string, reason: string = code) {
    super(`${JSON.stringify(path.slice(0, 200))}: ${reason}`);
    this.code = code;
    this.path = path;
  }
}

export type EntryKind = 'file' | 'folder' | 'link' | 'special';
export type Entry = { readonly name: string; readonly kind: EntryKind };

type Kinds = { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean };

const kindOf = (stats: Kinds): EntryKind => {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'folder';
  return stats.isSymbolicLink() ? 'link' : 'special';
};

/**
 * The components of a relative path. Empty for the folder itself.
 *
 * @throws BeneathError `EINVAL` for an absolute path, `..`, NUL, or a path or drive in Windows syntax
 */
export function componentsOf(path: string): string[] {
  if (path === '' || path === '.') return [];
  const names = path.split('/');
  const isInvalid = (name: string) =>
    name === '' ||
    name === '.' ||
    name === '..' ||
    name.includes('\0') ||
    (process.platform === 'win32' && /[\\:]/.test(name));
  if (path.length > LONGEST_PATH || names.some(isInvalid))
    throw new BeneathError('EINVAL', path, 'must be a relative path without ".." and empty components');
  return names;
}

export class Beneath {
  readonly #root: string;
  readonly #descriptor: number | undefined;

  /** @param root an existing folder; its own links are resolved once, in the constructor */
  constructor(root: string) {
    const real = realpathSync(root);
    this.#descriptor = HAS_DESCRIPTORS ? openSync(real, O_PATH | O_DIRECTORY | O_NOFOLLOW) : undefined;
    this.#root = this.#descriptor === undefined ? real : `${DESCRIPTORS}/${this.#descriptor}/.`;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }

  /** `undefined` for a path that does not exist, including one whose parent is a file or a link. */
  lstat(path: string): BigIntStats | undefined {
    try {
      return this.#at(path, (systemPath) => lstatSync(systemPath, { bigint: true }));
    } catch (thrown) {
      if (thrown instanceof BeneathError && /^(?:ENOENT|ENOTDIR|ELOOP)$/.test(thrown.code)) return undefined;
      throw thrown;
    }
  }

  kind(path: string): EntryKind | undefined {
    const stats = this.lstat(path);
    return stats && kindOf(stats);
  }

  /** The bytes of a link. */
  readlink(path: string): Buffer {
    return this.#at(path, (systemPath) => readlinkSync(systemPath, 'buffer'));
  }

  /** @param most limit of entries; more fail with `EFBIG` */
  list(path: string, most = Number.POSITIVE_INFINITY): Entry[] {
    return this.#at(path, (systemPath) => {
      const folder = openFolder(systemPath);
      try {
        const entries = readdirSync(folder.systemPath, { withFileTypes: true });
        if (entries.length > most) throw new BeneathError('EFBIG', path, `has more than ${most} entries`);
        return entries.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
      } finally {
        folder.close();
      }
    });
  }

  /**
   * Opens a regular file. A device, a FIFO or a socket is refused before it is opened.
   *
   * @param flags of `open(2)`; with `O_CREAT`, `O_EXCL` must be set as well
   * @returns a descriptor that the caller closes
   */
  open(path: string, flags: number, mode = 0o666): number {
    return this.#at(path, (systemPath) => {
      const safe = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
      if (flags & O_CREAT) {
        if (!(flags & O_EXCL)) throw new BeneathError('EINVAL', path, 'O_CREAT needs O_EXCL');
        return openSync(systemPath, safe, mode);
      }
      // On Linux the checked descriptor is opened again, so it is the same file.
      const named = HAS_DESCRIPTORS ? openSync(systemPath, O_PATH | O_NOFOLLOW) : undefined;
      try {
        requireFile(path, kindOf(named === undefined ? lstatSync(systemPath) : fstatSync(named)));
        const opened = openSync(named === undefined ? systemPath : `${DESCRIPTORS}/${named}`, named ? flags : safe);
        if (named === undefined && !fstatSync(opened).isFile()) {
          closeSync(opened);
          requireFile(path, 'special');
        }
        return opened;
      } finally {
        if (named !== undefined) closeSync(named);
      }
    });
  }

  /** A whole regular file; `EFBIG` if it is longer than `maxBytes`. */
  read(path: string, maxBytes: number): Buffer {
    const descriptor = this.open(path, O_RDONLY);
    try {
      const tooBig = () => new BeneathError('EFBIG', path, `is longer than ${maxBytes} bytes`);
      const { size } = fstatSync(descriptor);
      if (size > maxBytes) throw tooBig();
      const whole = Buffer.allocUnsafe(size + 1);
      let length = 0;
      for (;;) {
        const more = readSync(descriptor, whole, length, whole.length - length, null);
        if (more === 0) return whole.subarray(0, length);
        length += more;
        // The file grew after its size was read. The caller must read it again.
        if (length > size) throw size === maxBytes ? tooBig() : new BeneathError('EAGAIN', path, 'changes while read');
      }
    } finally {
      closeSync(descriptor);
    }
  }

  /**
   * Writes a whole file: a new file is written beside it and renamed. An existing entry (a file with other names, a
   * link) is replaced, not written to.
   *
   * @param temporary the name of the new file until it is renamed; `EEXIST` if the name is taken
   */
  write(
    path: string,
    bytes: Uint8Array,
    { mode = 0o666, temporary }: { mode?: number; temporary?: string } = {},
  ): void {
    const parent = path.slice(0, path.lastIndexOf('/') + 1);
    const beside = temporary ?? `${parent}.${randomBytes(8).toString('hex')}.new`;
    const descriptor = this.open(beside, O_WRONLY | O_CREAT | O_EXCL, mode);
    try {
      try {
        for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
      } finally {
        closeSync(descriptor);
      }
      this.rename(beside, path);
    } catch (thrown) {
      this.unlink(beside);
      throw thrown;
    }
  }

  mkdir(path: string, mode = 0o777): void {
    this.#at(path, (systemPath) => mkdirSync(systemPath, mode));
  }

  /** Makes the names in a folder durable, and sets its mode. Windows has neither, and does not open a folder. */
  settleFolder(path: string, mode: number): void {
    if (process.platform === 'win32') return;
    const folder = this.#at(path, (systemPath) => openSync(systemPath, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    try {
      fsyncSync(folder);
      fchmodSync(folder, mode);
    } finally {
      closeSync(folder);
    }
  }

  /** Creates a folder and its parents; existing folders stay unchanged. */
  mkdirs(path: string): void {
    const names = componentsOf(path);
    for (let depth = 1; depth <= names.length; depth++) {
      const folder = names.slice(0, depth).join('/');
      const kind = this.kind(folder);
      if (kind === undefined) this.mkdir(folder);
      else if (kind !== 'folder')
        throw new BeneathError(kind === 'link' ? 'ELOOP' : 'ENOTDIR', folder, 'is not a folder');
    }
  }

  rmdir(path: string): void {
    this.#at(path, rmdirSync);
  }

  /** Removes a name of a file, a link or a FIFO. */
  unlink(path: string): void {
    this.#at(path, unlinkSync);
  }

  rename(from: string, to: string): void {
    this.#at(from, (source) => this.#at(to, (target) => renameSync(source, target)));
  }

  /** @param target stored unchanged; this class never follows it */
  symlink(target: string | Buffer, path: string): void {
    this.#at(path, (systemPath) => symlinkSync(target, systemPath));
  }

  /** Opens the parents of a path one by one and calls `act` with a system path of its last component. */
  #at<T>(path: string, act: (systemPath: string) => T): T {
    const names = componentsOf(path);
    const last = names.pop();
    let parent: Folder = { systemPath: this.#root, close() {} };
    try {
      for (const name of names) {
        const next = openFolder(`${parent.systemPath}/${name}`);
        parent.close();
        parent = next;
      }
      return act(last === undefined ? parent.systemPath : `${parent.systemPath}/${last}`);
    } catch (thrown) {
      if (thrown instanceof BeneathError) throw thrown;
      throw new BeneathError((thrown as NodeJS.ErrnoException).code ?? 'EIO', path);
    } finally {
      parent.close();
    }
  }
}

type Folder = { readonly systemPath: string; close(): void };

/** @throws with the code `ELOOP` for a link, `ENOTDIR` for a file */
function openFolder(systemPath: string): Folder {
  const linkOr = (code: string) =>
    lstatSync(systemPath, { throwIfNoEntry: false })?.isSymbolicLink()
      ? Object.assign(new Error(), { code: 'ELOOP' })
      : { code };
  if (!HAS_DESCRIPTORS) {
    if (lstatSync(systemPath).isDirectory()) return { systemPath, close() {} };
    throw linkOr('ENOTDIR');
  }
  try {
    const descriptor = openSync(systemPath, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    return { systemPath: `${DESCRIPTORS}/${descriptor}/.`, close: () => closeSync(descriptor) };
  } catch (thrown) {
    throw linkOr((thrown as NodeJS.ErrnoException).code ?? 'EIO');
  }
}

function requireFile(path: string, kind: EntryKind): void {
  if (kind === 'file') return;
  if (kind === 'folder') throw new BeneathError('EISDIR', path, 'is a folder');
  if (kind === 'link') throw new BeneathError('ELOOP', path, 'is a symbolic link');
  throw new BeneathError('ENOTSUP', path, 'is a device, a FIFO or a socket');
}

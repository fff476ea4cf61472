/**
 * Writes below one folder without following a link, whatever other processes change there. On Linux each name is opened
 * relative to its opened parent, with `O_NOFOLLOW`, through `/proc/self/fd`. Elsewhere each name is checked first, and a
 * process of the same user could still race the check.
 */
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';

const DIRECTORY = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);

const hasDescriptors = process.platform === 'linux' && existsSync('/proc/self/fd');

const notFolder = (path: string, cause?: unknown) =>
  new ReveilleError('conflict', `${path} is no longer a folder; another process changed it`, { cause });

export class FolderRoot {
  readonly #path: string;
  readonly #root: FileHandle | undefined;

  private constructor(path: string, root: FileHandle | undefined) {
    this.#path = path;
    this.#root = root;
  }

  /** Opens an existing folder. Its own path may contain links. */
  static async open(path: string): Promise<FolderRoot> {
    return new FolderRoot(path, hasDescriptors ? await open(path, DIRECTORY) : undefined);
  }

  /** Creates a folder for its owner only. An existing one stays. */
  async makeFolder(path: string): Promise<void> {
    await this.#inParent(path, async (name) => {
      await mkdir(name, { mode: 0o700 }).catch(async (thrown: NodeJS.ErrnoException) => {
        if (thrown.code !== 'EEXIST' || !(await lstat(name)).isDirectory()) throw thrown;
      });
    });
  }

  /** @throws EEXIST when the name exists, a link included */
  makeFile(path: string, mode: number): Promise<FileHandle> {
    return this.#inParent(path, (name) => open(name, NEW_FILE, mode));
  }

  /** @throws EEXIST when the name exists */
  async makeLink(path: string, target: string): Promise<void> {
    await this.#inParent(path, (name) => symlink(target, name));
  }

  /** Makes the names in a folder durable, and sets its mode. */
  async settleFolder(path: string, mode: number): Promise<void> {
    // Windows has neither, and does not open a folder.
    if (process.platform === 'win32') return;
    const folder = await this.#inParent(path, (name) => open(name, DIRECTORY));
    try {
      await folder.sync();
      await folder.chmod(mode);
    } finally {
      await folder.close();
    }
  }

  async close(): Promise<void> {
    await this.#root?.close();
  }

  /** Calls `act` with a path that names the entry in its opened parent. */
  async #inParent<T>(path: string, act: (name: string) => Promise<T>): Promise<T> {
    const names = path.split('/');
    const last = names.pop()!;
    if (!this.#root) {
      let at = this.#path;
      for (const name of names) {
        at = join(at, name);
        if (!(await lstat(at)).isDirectory()) throw notFolder(at);
      }
      return act(join(at, last));
    }
    let parent = this.#root;
    try {
      for (const name of names) {
        const next = await open(`/proc/self/fd/${parent.fd}/${name}`, DIRECTORY).catch((cause: Error) => {
          throw notFolder(join(this.#path, path), cause);
        });
        if (parent !== this.#root) await parent.close();
        parent = next;
      }
      return await act(`/proc/self/fd/${parent.fd}/${last}`);
    } finally {
      if (parent !== this.#root) await parent.close();
    }
  }
}

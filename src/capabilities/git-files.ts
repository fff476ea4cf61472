/**
 * The file system of one repository for `isomorphic-git`. The library may read `.git` and the `.gitignore` files, and
 * write objects, references, `HEAD`, `index` and `shallow`, nothing else. No link is followed. It reads {@link
 * CONFIGURATION} instead of the repository's own configuration.
 */
import { type Beneath, BeneathError } from '../kit/files/beneath.ts';
import { ReveilleError } from '../wire/errors.ts';

const MIB = 1024 * 1024;
/** Limit for a file of the work tree, an object, or an index. */
export const MAX_FILE_BYTES = 64 * MIB;
export const MAX_PACK_BYTES = 256 * MIB;
const MAX_SETTINGS_BYTES = MIB;
/** Entries of one folder of `.git`. */
const MAX_NAMES = 100_000;

const CONFIGURATION = Buffer.from(
  '[core]\n\trepositoryformatversion = 0\n[remote "origin"]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
);

const WRITABLE = /^(?:HEAD|index|shallow|(?:objects|refs)\/.+)$/;
/** Errors that the library treats as a missing file. */
const MISSING = /^(?:ENOENT|ENOTDIR|EISDIR|EEXIST|ENOTEMPTY)$/;

/** The numbers of a file as the index keeps them. */
export type IndexStats = ReturnType<typeof indexStatsOf>;

type Stats = NonNullable<ReturnType<Beneath['lstat']>>;

const BILLION = 1_000_000_000n;

/** @param mode the type and mode in the index, if it differs from the file's */
export function indexStatsOf(stats: Stats, mode = Number(stats.mode)) {
  return {
    ctimeSeconds: Number(stats.ctimeNs / BILLION),
    ctimeNanoseconds: Number(stats.ctimeNs % BILLION),
    mtimeSeconds: Number(stats.mtimeNs / BILLION),
    mtimeNanoseconds: Number(stats.mtimeNs % BILLION),
    dev: Number(BigInt.asUintN(32, stats.dev)),
    ino: Number(BigInt.asUintN(32, stats.ino)),
    mode,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    size: Number(stats.size),
  };
}

/** The error for a refusal of the file system. */
function refusalOf({ code, message }: BeneathError): ReveilleError {
  if (code === 'ELOOP') return new ReveilleError('forbidden', `${message}, and git follows no links`);
  return new ReveilleError(
    code === 'EFBIG' ? 'invalid_request' : 'forbidden',
    `the git operation was refused: ${message}`,
  );
}

export type GitFilesOptions = {
  files: Beneath;
  /** `.git`, relative to the root of `files`. */
  gitdir: string;
  /** The library reads the repository's own configuration. Only `Repository.setting` sets this. */
  hasOwnConfiguration?: boolean;
};

/** The `fs` of the library. Paths begin with `/`, which is the root of `files`. */
export class GitFiles {
  readonly #files: Beneath;
  readonly #gitdir: string;
  readonly #configuration: Buffer | undefined;
  readonly #ignoreFiles = new Map<string, Buffer | BeneathError>();
  #refusal: ReveilleError | undefined;
  /** Which references the library may write; writes of others are dropped. */
  keepsReference: (name: string) => boolean = () => true;

  constructor({ files, gitdir, hasOwnConfiguration = false }: GitFilesOptions) {
    this.#files = files;
    this.#gitdir = gitdir;
    this.#configuration = hasOwnConfiguration ? undefined : CONFIGURATION;
  }

  /** Rethrows the first refusal: the library treats some errors as a missing file and continues. */
  throwRefusal(): void {
    if (this.#refusal) throw this.#refusal;
  }

  readonly promises = {
    readFile: (path: string, options?: string | { encoding?: BufferEncoding }) =>
      this.#run(path, (at, inside) => {
        const bytes = this.#read(at, inside);
        const encoding = typeof options === 'string' ? (options as BufferEncoding) : options?.encoding;
        return encoding ? bytes.toString(encoding) : bytes;
      }),
    writeFile: (path: string, content: string | Uint8Array) =>
      this.#run(path, (at, inside) => {
        this.#requireWritable(at, inside);
        if (inside!.startsWith('refs/') && !this.keepsReference(inside!)) return;
        const bytes = typeof content === 'string' ? Buffer.from(content) : content;
        if (inside!.startsWith('objects/')) this.#files.write(at, bytes, { mode: 0o444 });
        else this.#lockedWrite(at, bytes);
      }),
    unlink: (path: string) =>
      this.#run(path, (at, inside) => {
        if (inside !== 'shallow') throw new BeneathError('EINVAL', at, 'must not be removed by git');
        this.#files.unlink(at);
      }),
    mkdir: (path: string) =>
      this.#run(path, (at, inside) => {
        this.#requireWritable(`${at}/x`, inside === undefined ? undefined : `${inside}/x`);
        this.#files.mkdir(at);
      }),
    rmdir: (path: string) =>
      this.#run(path, (at) => {
        throw new BeneathError('EINVAL', at, 'must not be removed by git');
      }),
    readdir: (path: string) =>
      this.#run(path, (at, inside) => {
        if (inside === undefined) throw new BeneathError('ENOENT', at);
        return this.#files.list(at, MAX_NAMES).map(({ name }) => name);
      }),
    lstat: (path: string) => this.#stat(path),
    // Links are never followed, so stat and lstat are the same.
    stat: (path: string) => this.#stat(path),
    readlink: (path: string) =>
      this.#run(path, (at) => {
        throw new BeneathError('ENOENT', at);
      }),
    symlink: (_target: string, path: string) =>
      this.#run(path, (at) => {
        throw new BeneathError('EINVAL', at, 'must not be created by git');
      }),
  };

  #stat(path: string) {
    return this.#run(path, (at, inside) => {
      const stats = inside === undefined ? undefined : this.#files.lstat(at);
      if (!stats) throw new BeneathError('ENOENT', at);
      return {
        ...indexStatsOf(stats),
        isFile: () => stats.isFile(),
        isDirectory: () => stats.isDirectory(),
        isSymbolicLink: () => stats.isSymbolicLink(),
      };
    });
  }

  #read(at: string, inside: string | undefined): Buffer {
    if (inside === 'config' && this.#configuration) return this.#configuration;
    if (inside !== undefined && inside !== 'info/exclude') return this.#files.read(at, limitOf(inside));
    if (inside === undefined && !/(?:^|\/)\.gitignore$/.test(at)) throw new BeneathError('ENOENT', at);
    let found = this.#ignoreFiles.get(at);
    if (found === undefined) {
      try {
        found = this.#files.read(at, MAX_SETTINGS_BYTES);
      } catch (thrown) {
        // As in git, a .gitignore that is a link counts as missing.
        found = new BeneathError('ENOENT', at);
        if (!(thrown instanceof BeneathError)) throw thrown;
      }
      this.#ignoreFiles.set(at, found);
    }
    if (found instanceof BeneathError) throw found;
    return found;
  }

  /** Locks a file like git does, so that both can work in one repository. */
  #lockedWrite(at: string, bytes: Uint8Array): void {
    const temporary = `${at}.lock`;
    if (this.#files.kind(temporary) !== undefined)
      throw new BeneathError('EBUSY', temporary, 'another git process is working here, or has ended early');
    this.#files.write(at, bytes, { temporary });
  }

  #requireWritable(at: string, inside: string | undefined): void {
    if (inside === undefined || !WRITABLE.test(inside))
      throw new BeneathError('EINVAL', at, 'must not be written by git');
  }

  async #run<T>(path: unknown, action: (at: string, inside: string | undefined) => T): Promise<T> {
    // The library probes its file system without a path.
    if (typeof path !== 'string') throw new BeneathError('ENOENT', '');
    this.throwRefusal();
    const at = path
      .replace(/^\/+/, '')
      .replace(/\/{2,}/g, '/')
      .replace(/\/$/, '');
    const prefix = `${this.#gitdir}/`;
    const inside = at === this.#gitdir ? '' : at.startsWith(prefix) ? at.slice(prefix.length) : undefined;
    try {
      return action(at, inside);
    } catch (thrown) {
      if (thrown instanceof BeneathError && !MISSING.test(thrown.code)) this.#refusal ??= refusalOf(thrown);
      throw thrown;
    }
  }
}

function limitOf(inside: string): number {
  if (/^objects\/pack\//.test(inside)) return MAX_PACK_BYTES;
  return /^(?:config|HEAD|refs\/)/.test(inside) ? MAX_SETTINGS_BYTES : MAX_FILE_BYTES;
}

/**
 * A repository of the workspace: its settings, references, trees and index. Its content may come from a model or any
 * remote, so every name is checked and every size is bounded. No program of the repository runs: filters, hooks,
 * drivers and helpers are not supported.
 */
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import * as git from 'isomorphic-git';
import { GitIndexManager } from 'isomorphic-git/managers';
import { FileSystem } from 'isomorphic-git/models';
import { type Beneath, componentsOf } from '../kit/files/beneath.ts';
import { ReveilleError } from '../wire/errors.ts';
import { withoutTrailing } from '../wire/text.ts';
import { GitFiles, type IndexStats } from './git-files.ts';

export const MAX_FILES = 100_000;
const MAX_DEPTH = 200;
const OID = /^[0-9a-f]{40}$/;
const BRANCH_REFERENCE =
  /^refs\/heads\/(?!.*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)))[^\0-\x20\x7f~^:?*[\\.-][^\0-\x20\x7f~^:?*[\\]*(?<![./])$/;

/** Files that refer outside the repository or to an unsupported layout. */
const UNSUPPORTED_FILES = ['commondir', 'config.worktree', 'objects/info/alternates', 'objects/info/http-alternates'];

export type Mode = '100644' | '100755' | '120000' | '160000';
export type Blob = { readonly oid: string; readonly mode: Mode };
export type Tree = Map<string, Blob>;
export type Commit = Awaited<ReturnType<typeof git.readCommit>>['commit'] & { readonly oid: string };

/** The library's index entry of a file. */
export type IndexEntry = Omit<IndexStats, 'mode'> & {
  readonly path: string;
  readonly oid: string;
  readonly mode: number;
  readonly flags: { stage: number; assumeValid: boolean; skipWorktree?: boolean; intentToAdd?: boolean };
};

export type Index = {
  readonly entriesMap: ReadonlyMap<string, IndexEntry>;
  readonly unmergedPaths: readonly string[];
  insert(entry: { filepath: string; stats: IndexStats; oid: string }): void;
  delete(entry: { filepath: string }): void;
};

export type Head = {
  /** `undefined` when no branch is checked out. */
  readonly branch: string | undefined;
  /** `undefined` before the first commit. */
  readonly oid: string | undefined;
};

export const refuse = (what: string): never => {
  throw new ReveilleError('forbidden', what);
};

/** Whether a file system could treat the name as `.git`: Windows and macOS ignore case and some characters. */
export function isGitName(name: string): boolean {
  const plain = name.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '').split(':')[0]!;
  const lower = withoutTrailing(plain.toLowerCase(), '. ');
  return lower === '.git' || /^\.?git~[1-9]$/.test(lower);
}

/** @throws ReveilleError `forbidden` for a path that is not allowed in a tree or an index */
export function requirePath(path: string): void {
  if (componentsOf(path).some(isGitName))
    refuse(`the git operation was refused: it names the path ${JSON.stringify(path.slice(0, 200))}`);
}

export const shortOf = (oid: string): string => oid.slice(0, 7);

export class Repository {
  readonly files: Beneath;
  /** Relative to the root of `files`; empty for the root itself. */
  readonly folder: string;
  readonly gitdir: string;
  readonly #gitFiles: GitFiles;
  readonly #cache = {};

  private constructor(files: Beneath, folder: string) {
    this.files = files;
    this.folder = folder;
    this.gitdir = folder === '' ? '.git' : `${folder}/.git`;
    this.#gitFiles = new GitFiles({ files, gitdir: this.gitdir });
  }

  /**
   * The repository that a folder belongs to.
   *
   * @throws ReveilleError `not_found` where there is none, `forbidden` for one that refers outside or has an
   *   unsupported layout
   */
  static async find(files: Beneath, start: string): Promise<Repository> {
    const names = componentsOf(start);
    if (start !== '' && files.kind(start) !== 'folder')
      throw new ReveilleError(
        'invalid_request',
        `folder must be a folder of the workspace (got ${JSON.stringify(start.slice(0, 200))})`,
      );
    if (names.some(isGitName)) refuse('folder must not be in a .git folder');
    for (let depth = names.length; depth >= 0; depth--) {
      const found = new Repository(files, names.slice(0, depth).join('/'));
      const kind = files.kind(found.gitdir);
      if (kind === undefined) continue;
      if (kind !== 'folder') refuse('this repository is not used: its .git is not a folder');
      await found.#inspect();
      return found;
    }
    const shown = JSON.stringify((start || '.').slice(0, 200));
    throw new ReveilleError('not_found', `there is no git repository at ${shown} of the workspace; init makes one`);
  }

  /** Creates the files of an empty repository in an existing folder. */
  static init(files: Beneath, folder: string, branch: string, remote?: string): Repository {
    const created = new Repository(files, folder);
    const config = [
      '[core]',
      'repositoryformatversion = 0',
      'filemode = true',
      'bare = false',
      'logallrefupdates = true',
    ];
    if (remote !== undefined) {
      const quoted = JSON.stringify(remote);
      config.push('[remote "origin"]', `url = ${quoted}`, 'fetch = +refs/heads/*:refs/remotes/origin/*');
      config.push(`[branch "${branch}"]`, 'remote = origin', `merge = refs/heads/${branch}`);
    }
    for (const name of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags'])
      files.mkdirs(`${created.gitdir}/${name}`);
    const text = config.map((line) => (line.startsWith('[') ? line : `\t${line}`)).join('\n');
    files.write(`${created.gitdir}/config`, Buffer.from(`${text}\n`));
    files.write(`${created.gitdir}/HEAD`, Buffer.from(`ref: refs/heads/${branch}\n`));
    return created;
  }

  /** The common arguments of the library's functions. */
  get access() {
    return { fs: this.#gitFiles, dir: `/${this.folder}`, gitdir: `/${this.gitdir}`, cache: this.#cache };
  }

  keepReferences(isKept: (name: string) => boolean): void {
    this.#gitFiles.keepsReference = isKept;
  }

  throwRefusal(): void {
    this.#gitFiles.throwRefusal();
  }

  /** The path of a file of the work tree, beneath the root of `files`. */
  at(path: string): string {
    return [this.folder, path].filter(Boolean).join('/');
  }

  async #inspect(): Promise<void> {
    for (const name of UNSUPPORTED_FILES)
      if (this.files.kind(`${this.gitdir}/${name}`) !== undefined)
        refuse(`this repository is not used: its .git/${name} refers outside the repository`);
    for (const name of ['config', 'HEAD', 'index', 'info', 'objects', 'refs'])
      if (this.files.kind(`${this.gitdir}/${name}`) === 'link')
        refuse(`this repository is not used: its .git/${name} is a link`);
    const objectformat = await this.setting('extensions.objectformat');
    const refstorage = await this.setting('extensions.refstorage');
    if (objectformat !== undefined && objectformat !== 'sha1') refuse('only repositories with SHA-1 objects are read');
    if (refstorage !== undefined && refstorage !== 'files')
      refuse('only repositories that keep references as files are read');
  }

  /** A value of the repository's own configuration. Includes are not followed. */
  async setting(path: string): Promise<string | undefined> {
    const { files, gitdir } = this;
    const fs = new GitFiles({ files, gitdir, hasOwnConfiguration: true });
    const value: unknown = await git.getConfig({ fs, gitdir: `/${gitdir}`, path });
    fs.throwRefusal();
    return value === undefined ? undefined : String(value);
  }

  async head(): Promise<Head> {
    const text = this.files.read(`${this.gitdir}/HEAD`, 4096).toString('utf8').trim();
    if (OID.test(text)) return { branch: undefined, oid: text };
    const reference = text.startsWith('ref:') ? text.slice(4).trim() : '';
    if (!BRANCH_REFERENCE.test(reference)) return refuse('this repository is not used: its .git/HEAD names no branch');
    return { branch: reference.slice('refs/heads/'.length), oid: await this.reference(reference) };
  }

  /** The commit or tag that a full reference names. */
  async reference(name: string): Promise<string | undefined> {
    try {
      return await git.resolveRef({ ...this.access, ref: name });
    } catch (thrown) {
      this.throwRefusal();
      if (thrown instanceof git.Errors.NotFoundError) return undefined;
      throw thrown;
    }
  }

  /** Sets a branch; if it is checked out, `HEAD` follows. */
  async setBranch(name: string, oid: string): Promise<void> {
    await git.writeRef({ ...this.access, ref: `refs/heads/${name}`, value: oid, force: true });
  }

  async checkOutBranch(name: string): Promise<void> {
    const target = `refs/heads/${name}`;
    await git.writeRef({ ...this.access, ref: 'HEAD', value: target, force: true, symbolic: true });
  }

  /**
   * The commit that a revision names: a commit, a branch, a tag, `HEAD`, and its ancestors as `~2` and `^2`.
   *
   * @throws ReveilleError `not_found`
   */
  async commitOf(revision: string): Promise<Commit> {
    const [, base = revision, steps = ''] = /^([^~^]*)((?:[~^]\d*)*)$/.exec(revision) ?? [];
    let commit = await this.readCommit(await this.#oidOf(base === '@' ? 'HEAD' : base, revision));
    for (const [, kind, count] of steps.matchAll(/([~^])(\d*)/g)) {
      const n = count === '' ? 1 : Number(count);
      if (n > 10_000) throw notFound(revision);
      const ancestors = kind === '~' ? Array<number>(n).fill(0) : n === 0 ? [] : [n - 1];
      for (const parent of ancestors) {
        const next = commit.parent[parent];
        if (next === undefined) throw notFound(revision);
        commit = await this.readCommit(next);
      }
    }
    return commit;
  }

  async #oidOf(base: string, revision: string): Promise<string> {
    if (base === 'HEAD') {
      const { oid } = await this.head();
      if (oid === undefined) throw new ReveilleError('not_found', 'there is no commit yet');
      return oid;
    }
    for (const name of [
      `refs/heads/${base}`,
      `refs/tags/${base}`,
      `refs/remotes/${base}`,
      `refs/remotes/${base}/HEAD`,
      base,
    ]) {
      if (!name.startsWith('refs/') || /\.\.|\/\/|@\{/.test(name)) continue;
      const oid = await this.reference(name);
      if (oid !== undefined) return oid;
    }
    if (/^[0-9a-f]{4,40}$/.test(base)) {
      try {
        return base.length === 40 ? base : await git.expandOid({ ...this.access, oid: base });
      } catch (thrown) {
        this.throwRefusal();
        if (thrown instanceof git.Errors.AmbiguousError)
          throw new ReveilleError('invalid_request', `${base} names several objects`);
      }
    }
    throw notFound(revision);
  }

  async readCommit(oid: string): Promise<Commit> {
    try {
      const { commit, oid: peeled } = await git.readCommit({ ...this.access, oid });
      return { ...commit, oid: peeled };
    } catch (thrown) {
      this.throwRefusal();
      if (thrown instanceof git.Errors.NotFoundError) throw notFound(oid);
      throw thrown;
    }
  }

  async tree(oid: string | undefined): Promise<Tree> {
    const files: Tree = new Map();
    if (oid !== undefined) await this.#addTree(files, new Map(), oid, '', 0);
    this.throwRefusal();
    return files;
  }

  async #addTree(
    files: Tree,
    known: Map<string, git.TreeObject>,
    oid: string,
    prefix: string,
    depth: number,
  ): Promise<void> {
    if (depth > MAX_DEPTH) refuse(`the git operation was refused: a tree is more than ${MAX_DEPTH} folders deep`);
    const tree = known.get(oid) ?? (await git.readTree({ ...this.access, oid })).tree;
    known.set(oid, tree);
    const names = new Set<string>();
    for (const { path: name, mode, oid: of, type } of tree) {
      const path = prefix + name;
      requirePath(path);
      if (names.has(name))
        refuse(`the git operation was refused: a tree names ${JSON.stringify(path.slice(0, 200))} twice`);
      names.add(name);
      if (type === 'tree') await this.#addTree(files, known, of, `${path}/`, depth + 1);
      else files.set(path, { oid: of, mode: modeOf(Number.parseInt(mode, 8)) });
      if (files.size > MAX_FILES) refuse(`the git operation was refused: a tree has more than ${MAX_FILES} files`);
    }
  }

  async headTree(): Promise<Tree> {
    const { oid } = await this.head();
    return this.tree(oid === undefined ? undefined : (await this.readCommit(oid)).tree);
  }

  async readBlob(oid: string): Promise<Buffer> {
    const { blob } = await git.readBlob({ ...this.access, oid });
    this.throwRefusal();
    return Buffer.from(blob);
  }

  writeBlob(content: Uint8Array): string {
    const wrapped = wrapBlob(content);
    const oid = createHash('sha1').update(wrapped).digest('hex');
    const folder = `${this.gitdir}/objects/${oid.slice(0, 2)}`;
    const path = `${folder}/${oid.slice(2)}`;
    if (this.files.kind(path) === 'file') return oid;
    this.files.mkdirs(folder);
    this.files.write(path, deflateSync(wrapped), { mode: 0o444 });
    return oid;
  }

  /** Reads the index, lets `edit` change it, and writes it if it was changed. */
  async index<T>(edit: (index: Index) => T | Promise<T>): Promise<T> {
    const { gitdir, cache } = this.access;
    const fs = new FileSystem(this.#gitFiles) as never;
    const result = await GitIndexManager.acquire({ fs, gitdir, cache }, (index) => {
      const read = index as unknown as Index;
      if (read.entriesMap.size > MAX_FILES)
        refuse(`the git operation was refused: the index has more than ${MAX_FILES} files`);
      for (const path of read.entriesMap.keys()) requirePath(path);
      return edit(read);
    });
    this.throwRefusal();
    return result as T;
  }
}

export const notFound = (revision: string): ReveilleError =>
  new ReveilleError('not_found', `there is no commit ${JSON.stringify(revision.slice(0, 200))} in this repository`);

function wrapBlob(content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]);
}

export function blobOid(content: Uint8Array): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}

export function modeOf(mode: number): Mode {
  const kind = mode >> 12;
  if (kind === 0o12) return '120000';
  if (kind === 0o16) return '160000';
  return mode & 0o111 ? '100755' : '100644';
}

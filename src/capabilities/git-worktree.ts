/** The work tree of a repository: differences to the index, staging, and checking out another commit. */
import * as git from 'isomorphic-git';
import { BeneathError } from '../kit/files/beneath.ts';
import { ReveilleError } from '../wire/errors.ts';
import { indexStatsOf, MAX_FILE_BYTES } from './git-files.ts';
import {
  type Blob,
  blobOid,
  type Index,
  type IndexEntry,
  isGitName,
  MAX_FILES,
  type Mode,
  modeOf,
  type Repository,
  refuse,
  type Tree,
} from './git-repository.ts';

/** A file before and after; `undefined` where it does not exist. */
export type Change = {
  readonly path: string;
  readonly from: Blob | undefined;
  readonly to: Blob | undefined;
};

export type Untracked = { readonly path: string; readonly isRepository: boolean };

const shown = (path: string) => JSON.stringify(path.slice(0, 200));
const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')));

/** @returns whether a path is one of `paths` or below one; without `paths` every path is */
export function selector(paths: readonly string[] | undefined): (path: string) => boolean {
  if (paths === undefined || paths.includes('')) return () => true;
  return (path) => paths.some((one) => path === one || path.startsWith(`${one}/`));
}

export function changesBetween(from: Tree, to: Tree): Change[] {
  const paths = [...new Set([...from.keys(), ...to.keys()])].sort();
  const changes = paths.map((path) => ({ path, from: from.get(path), to: to.get(path) }));
  return changes.filter(({ from: one, to: other }) => one?.oid !== other?.oid || one?.mode !== other?.mode);
}

export const indexTree = (index: Index): Tree =>
  new Map(
    [...index.entriesMap]
      .filter(([, { flags }]) => flags.stage === 0 && !flags.intentToAdd)
      .map(([path, { oid, mode }]) => [path, { oid, mode: modeOf(mode) }]),
  );

export class WorkTree {
  readonly #repository: Repository;
  readonly #hasFileModes: boolean;
  readonly #hasLineEnds: boolean;
  /** Modification time of the index in nanoseconds; an entry of a file that is as new proves nothing about the file. */
  readonly #indexWritten: bigint;

  private constructor(
    repository: Repository,
    settings: { filemode: string | undefined; autocrlf: string | undefined },
  ) {
    this.#repository = repository;
    this.#hasFileModes = settings.filemode !== 'false' && process.platform !== 'win32';
    this.#hasLineEnds = settings.autocrlf === 'true' || settings.autocrlf === 'input';
    this.#indexWritten = repository.files.lstat(`${repository.gitdir}/index`)?.mtimeNs ?? 0n;
  }

  static async open(repository: Repository): Promise<WorkTree> {
    const [filemode, autocrlf] = [await repository.setting('core.filemode'), await repository.setting('core.autocrlf')];
    return new WorkTree(repository, { filemode, autocrlf });
  }

  /** The content of a file or link as an object contains it. */
  read(path: string, mode: Mode): Buffer {
    const { files } = this.#repository;
    const at = this.#repository.at(path);
    if (mode === '120000') return files.readlink(at);
    const content = files.read(at, MAX_FILE_BYTES);
    // As in git, a file with a NUL near its beginning is not text.
    if (!this.#hasLineEnds || content.subarray(0, 8000).includes(0)) return content;
    return Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');
  }

  #modeAt(path: string, entry: IndexEntry | undefined) {
    const stats = this.#repository.files.lstat(this.#repository.at(path));
    if (!stats?.isFile() && !stats?.isSymbolicLink()) return undefined;
    const own = modeOf(Number(stats.mode));
    const kept = entry && entry.mode >> 12 === 0o10 && own !== '120000' && !this.#hasFileModes;
    return { stats, mode: kept ? modeOf(entry.mode) : own };
  }

  /** The differences between the index and the files. Submodules are ignored. */
  changes(index: Index, isSelected: (path: string) => boolean): Change[] {
    const changes: Change[] = [];
    for (const [path, entry] of index.entriesMap) {
      const from: Blob = { oid: entry.oid, mode: modeOf(entry.mode) };
      const { stage, assumeValid, skipWorktree } = entry.flags;
      if (!isSelected(path) || stage !== 0 || assumeValid || skipWorktree || from.mode === '160000') continue;
      const found = this.#modeAt(path, entry);
      if (found === undefined) {
        changes.push({ path, from, to: undefined });
        continue;
      }
      const isRacy = found.stats.mtimeNs >= this.#indexWritten;
      if (!isRacy && found.mode === from.mode && isSameFile(entry, found.stats)) continue;
      const to: Blob = { oid: blobOid(this.read(path, found.mode)), mode: found.mode };
      if (to.oid !== from.oid || to.mode !== from.mode) changes.push({ path, from, to });
    }
    return changes.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /**
   * Files that are neither in the index nor ignored by a `.gitignore`. Nested repositories are listed but not entered.
   *
   * @param isWhole list each file, not only the outermost folder without a file in the index
   */
  async untracked(index: Index, isSelected: (path: string) => boolean, isWhole: boolean): Promise<Untracked[]> {
    const folders = new Set<string>();
    for (const path of index.entriesMap.keys())
      for (let folder = parentOf(path); folder !== '' && !folders.has(folder); folder = parentOf(folder))
        folders.add(folder);
    const found: Untracked[] = [];
    const isIgnored = (filepath: string) => git.isIgnored({ ...this.#repository.access, filepath });
    const visit = async (folder: string, mayStop: boolean): Promise<boolean> => {
      for (const { name, kind } of this.#list(folder)) {
        const path = folder === '' ? name : `${folder}/${name}`;
        if (isGitName(name) || kind === 'special') continue;
        if (kind !== 'folder') {
          if (index.entriesMap.has(path) || !isSelected(path) || (await isIgnored(path))) continue;
          if (mayStop) return true;
          if (found.push({ path, isRepository: false }) > MAX_FILES)
            refuse(`there are more than ${MAX_FILES} new files`);
          continue;
        }
        const entry = index.entriesMap.get(path);
        if (entry && modeOf(entry.mode) === '160000') continue;
        const isKnown = folders.has(path);
        if (!isKnown && (await isIgnored(`${path}/`))) continue;
        if (!isKnown && this.#repository.files.kind(`${this.#repository.at(path)}/.git`) !== undefined) {
          if (!isSelected(path)) continue;
          if (mayStop) return true;
          found.push({ path: `${path}/`, isRepository: true });
        } else if (mayStop || isWhole || isKnown) {
          if ((await visit(path, mayStop)) && mayStop) return true;
        } else if (await visit(path, true)) found.push({ path: `${path}/`, isRepository: false });
      }
      return false;
    };
    await visit('', false);
    return found.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  #list(folder: string) {
    try {
      return this.#repository.files
        .list(this.#repository.at(folder), MAX_FILES)
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (thrown) {
      // The folder was removed or replaced since its parent was read, or it is not readable.
      if (thrown instanceof BeneathError && /^(?:ENOENT|ENOTDIR|ELOOP|EACCES|EPERM)$/.test(thrown.code)) return [];
      throw thrown;
    }
  }

  /** Stages the files that `paths` name. @returns the nested repositories that were not staged */
  async add(paths: readonly string[]): Promise<string[]> {
    const repository = this.#repository;
    for (const path of paths) this.#requireOwn(path);
    return repository.index(async (index) => {
      const isSelected = selector(paths);
      const changes = this.changes(index, isSelected);
      const untracked = await this.untracked(index, isSelected, true);
      repository.throwRefusal();
      const known = [...index.entriesMap.keys(), ...untracked.map(({ path }) => path.replace(/\/$/, ''))];
      for (const path of paths) {
        if (path === '' || known.some(selector([path]))) continue;
        const exists = repository.files.kind(repository.at(path)) !== undefined;
        const why = exists ? 'is ignored by a .gitignore file, or is an empty folder' : 'did not match any files';
        throw new ReveilleError('not_found', `${shown(path)} ${why}; nothing was staged`);
      }
      for (const { path, to } of changes) if (to === undefined) index.delete({ filepath: path });
      for (const { path } of changes.filter(({ to }) => to)) this.#stage(index, path);
      for (const { path, isRepository } of untracked) if (!isRepository) this.#stage(index, path);
      for (const path of index.unmergedPaths) if (isSelected(path)) this.#stage(index, path);
      return untracked.filter(({ isRepository }) => isRepository).map(({ path }) => path);
    });
  }

  #stage(index: Index, path: string): void {
    const found = this.#modeAt(path, index.entriesMap.get(path));
    if (found === undefined) {
      index.delete({ filepath: path });
      return;
    }
    const oid = this.#repository.writeBlob(this.read(path, found.mode));
    for (let folder = parentOf(path); folder !== ''; folder = parentOf(folder))
      if (index.entriesMap.has(folder)) index.delete({ filepath: folder });
    if (!index.entriesMap.has(path)) index.delete({ filepath: path });
    index.insert({ filepath: path, stats: indexStatsOf(found.stats, Number.parseInt(found.mode, 8)), oid });
  }

  /** A path beyond a link, or in a repository inside this one, belongs to neither this work tree nor its index. */
  #requireOwn(path: string): void {
    const names = path.split('/');
    if (path === '') return;
    for (let depth = 1; depth <= names.length; depth++) {
      const folder = names.slice(0, depth).join('/');
      const at = this.#repository.at(folder);
      const kind = this.#repository.files.kind(at);
      if (kind === 'link' && depth < names.length)
        refuse(`${shown(path)} is beyond the symbolic link ${shown(folder)}`);
      if (kind === 'folder' && this.#repository.files.kind(`${at}/.git`) !== undefined)
        refuse(`${shown(folder)} is a nested repository, which is not staged; set folder to work in it`);
    }
  }

  /**
   * Sets files and index to those of a tree. Nothing is written if an uncommitted change would be lost.
   *
   * @throws ReveilleError `conflict` naming the files
   */
  async checkOut(target: Tree): Promise<void> {
    const repository = this.#repository;
    const { files } = repository;
    const current = await repository.headTree();
    const blobs = changesBetween(current, target);
    await repository.index(async (index) => {
      if (index.unmergedPaths.length > 0) throw new ReveilleError('conflict', 'a merge has not been finished');
      const staged = indexTree(index);
      const needed = blobs.filter(({ path, to }) => !isSame(staged.get(path), to));
      const touched = new Set(needed.map(({ path }) => path));
      const edited = new Set(this.changes(index, (path) => touched.has(path)).map(({ path }) => path));
      const isRemoved = (path: string) =>
        touched.has(path) && !target.has(path) && staged.has(path) && !edited.has(path);
      const blocking = needed.filter(({ path, from }) => {
        if (!isSame(staged.get(path), from) || edited.has(path)) return true;
        if (from !== undefined) return false;
        for (let ancestor = path; ancestor !== ''; ancestor = parentOf(ancestor)) {
          const kind = files.kind(repository.at(ancestor));
          if (kind === undefined || isRemoved(ancestor)) continue;
          if (kind === 'folder') {
            // A folder may stay as a parent; a target file may replace it if all its content is removed.
            if (ancestor === path && this.#hasOthers(path, isRemoved)) return true;
          } else return true;
        }
        return false;
      });
      if (blocking.length > 0) {
        const list = blocking.slice(0, 20).map(({ path }) => `\n  ${shown(path)}`);
        throw new ReveilleError(
          'conflict',
          `${blocking.length} files would be overwritten; commit or move them first:${list.join('')}`,
        );
      }
      const contents = new Map<string, Buffer>();
      // Read all objects before writing: a missing object must not cause a partial checkout.
      let bytes = 0;
      for (const { path, to } of needed) {
        if (to === undefined || to.mode === '160000') continue;
        const content = await repository.readBlob(to.oid);
        // A tool that writes through such a link could write settings and hooks under a name that no rule checks.
        if (to.mode === '120000' && content.toString('utf8').split(/[/\\]/).some(isGitName))
          refuse(
            `the git operation was refused: ${shown(path)} is a symbolic link into a .git folder; nothing was changed`,
          );
        bytes += content.length;
        if (bytes <= 4 * MAX_FILE_BYTES) contents.set(path, content);
      }
      for (const { path, to } of needed) if (to === undefined || staged.has(path)) this.#remove(path, to === undefined);
      for (const { path, to } of needed) {
        if (to === undefined) index.delete({ filepath: path });
        else
          this.#write(
            index,
            path,
            to,
            contents.get(path) ?? (to.mode === '160000' ? undefined : await repository.readBlob(to.oid)),
          );
      }
    });
  }

  #hasOthers(folder: string, isRemoved: (path: string) => boolean): boolean {
    return this.#list(folder).some(({ name, kind }) => {
      const path = `${folder}/${name}`;
      return kind === 'folder' ? this.#hasOthers(path, isRemoved) : !isRemoved(path);
    });
  }

  /** @param withFolders also remove folders that become empty */
  #remove(path: string, withFolders: boolean): void {
    const { files } = this.#repository;
    const kind = files.kind(this.#repository.at(path));
    if (kind === 'file' || kind === 'link') files.unlink(this.#repository.at(path));
    if (!withFolders) return;
    for (let folder = parentOf(path); folder !== ''; folder = parentOf(folder)) {
      if (files.kind(this.#repository.at(folder)) !== 'folder' || this.#list(folder).length > 0) return;
      files.rmdir(this.#repository.at(folder));
    }
  }

  #write(index: Index, path: string, { oid, mode }: Blob, content: Buffer | undefined): void {
    const { files } = this.#repository;
    const at = this.#repository.at(path);
    if (parentOf(at) !== '') files.mkdirs(parentOf(at));
    if (mode !== '160000' && files.kind(at) === 'folder') files.rmdir(at);
    if (mode === '160000') files.mkdirs(at);
    else if (mode === '120000') files.symlink(content!, at);
    else files.write(at, content!, { mode: mode === '100755' ? 0o777 : 0o666 });
    index.insert({ filepath: path, stats: indexStatsOf(files.lstat(at)!, Number.parseInt(mode, 8)), oid });
  }
}

const isSame = (one: Blob | undefined, other: Blob | undefined) => one?.oid === other?.oid && one?.mode === other?.mode;

/** Whether a file is unchanged since the index entry: compares the same stat fields as git, without the owner. */
function isSameFile(entry: IndexEntry, stats: Parameters<typeof indexStatsOf>[0]): boolean {
  const now = indexStatsOf(stats);
  return (
    entry.mtimeSeconds === now.mtimeSeconds % 2 ** 32 &&
    entry.mtimeNanoseconds === now.mtimeNanoseconds &&
    entry.ctimeSeconds === now.ctimeSeconds % 2 ** 32 &&
    entry.ctimeNanoseconds === now.ctimeNanoseconds &&
    entry.ino === now.ino &&
    entry.size === now.size % 2 ** 32
  );
}

/**
 * Restores a backup into an empty or missing home, completely or not at all. All files are written to a folder beside
 * it, made durable and checked; the rename comes last.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { FileInUse, likelyOwner } from '../../kit/sqlite/file-owner.ts';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { checkSchemas, DATA_FOLDERS, DATABASES } from '../home/databases.ts';
import type { About, End, Visitor } from './archive.ts';
import { FolderRoot } from './beneath.ts';
import type { PartHead } from './entry.ts';
import { APPROVER_PATH, readBackup, sweep, syncFolder, writingError } from './make.ts';

const BUSY_MS = 1000;

/** A line of `config.yaml` that names a data folder: the restored data is in the home. */
const FOLDER_LINE = new RegExp(`^(?:${[...DATA_FOLDERS.keys()].join('|')})\\s*:.*$`, 'gm');

export type Restored = {
  readonly about: About;
  readonly end: End;
  /** Lines of `config.yaml` that named other folders, and became comments. */
  readonly folderLines: readonly string[];
  /** Whether the backup had an approver's key, and its result. */
  readonly approver: 'none' | 'restored' | 'kept another' | 'left out';
};

export type Restoring = {
  readonly file: string;
  readonly home: string;
  /** Returns the passphrase, or the key if known. */
  readonly passphrase: Buffer | (() => Promise<string>);
  /** The destination of the approver's key, if requested. */
  readonly approver?: string | undefined;
  /** Skips links that point outside the home, and is called for each; without it, such a backup is rejected. */
  readonly onOutsideLink?: ((path: string, why: string) => void) | undefined;
};

/** @throws ReveilleError `conflict` when the home is in use or not empty */
function checkEmpty(home: string): void {
  if (!existsSync(home)) return;
  const owner = likelyOwner(join(home, 'up'));
  if (owner !== undefined) throw new FileInUse(home, owner);
  const [entry] = readdirSync(home);
  if (entry === undefined) return;
  const remedy = 'name an empty folder with --home, or move this one away first';
  throw new ReveilleError('conflict', `${home} is not empty (${basename(entry)} is in it); ${remedy}`);
}

/** Writes the parts of a backup below a folder. Links come last, and are not followed. */
class Unpacking implements Visitor {
  readonly #root: FolderRoot;
  readonly #file: string;
  readonly #links: { path: string; target: string }[] = [];
  readonly #modes = new Map<string, number>();
  readonly #approver: string | undefined;
  #open: FileHandle | undefined;
  skipLink?: (path: string, why: string) => void;
  found: About | undefined;
  hasApprover = false;

  constructor(root: FolderRoot, file: string, approver: string | undefined) {
    this.#root = root;
    this.#file = file;
    this.#approver = approver;
  }

  about(about: About): void {
    checkSchemas(about.schemas, `${this.#file} was created by`);
    this.found = about;
  }

  async part(head: PartHead) {
    if (head.kind === 'link') {
      this.#links.push(head);
      return undefined;
    }
    if (head.kind === 'folder') {
      await this.#named(head.path, this.#root.makeFolder(head.path));
      this.#modes.set(head.path, head.mode);
      return undefined;
    }
    const isApprover = head.path === APPROVER_PATH;
    if (isApprover) this.hasApprover = true;
    if (isApprover && this.#approver === undefined) return undefined;
    const making = isApprover ? open(this.#approver!, 'wx', 0o600) : this.#root.makeFile(head.path, head.mode);
    const handle = await this.#named(head.path, making);
    this.#open = handle;
    return {
      write: async (bytes: Buffer) => void (await handle.writeFile(bytes)),
      close: async () => {
        await handle.sync();
        await this.closeFile();
      },
    };
  }

  // Some file systems treat two spellings as one name.
  async #named<T>(path: string, making: Promise<T>): Promise<T> {
    return making.catch((cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw cause;
      const message = `${this.#file} contains the entry ${JSON.stringify(path)}, whose name equals another entry's on this file system; restore it on another one`;
      throw new ReveilleError('invalid_request', message, { cause });
    });
  }

  /** Closes the file that is being written, if any. */
  async closeFile(): Promise<void> {
    await this.#open?.close();
    this.#open = undefined;
  }

  /** Creates links, and then sets the modes of folders, innermost first. */
  async finish(): Promise<void> {
    for (const { path, target } of this.#links) await this.#named(path, this.#root.makeLink(path, target));
    for (const [path, mode] of [...this.#modes].reverse()) await this.#root.settleFolder(path, mode);
  }

  /** Makes folders writable for their owner, outermost first, so that all can be deleted. */
  async unlock(): Promise<void> {
    for (const path of this.#modes.keys()) await this.#root.settleFolder(path, 0o700);
  }
}

/** Turns lines into comments that would point the next start to other folders. */
async function keepFoldersHere(folder: string): Promise<string[]> {
  const file = join(folder, 'config.yaml');
  if (!existsSync(file)) return [];
  const text = readFileSync(file, 'utf8');
  const lines = text.match(FOLDER_LINE) ?? [];
  if (lines.length > 0)
    await writeFile(
      file,
      text.replace(FOLDER_LINE, (line) => `# restored into this folder, was: ${line}`),
      { flush: true },
    );
  return lines;
}

function checkDatabases(folder: string): void {
  for (const { folder: name, file } of DATABASES) inspectDatabase(join(folder, name, file), BUSY_MS);
}

/** The last step: the rename to the home. An existing empty folder is removed. */
async function takeName(draft: string, home: string): Promise<void> {
  // On Windows an empty folder blocks a rename; elsewhere a folder that is no longer empty does.
  if (process.platform === 'win32' && existsSync(home)) await rmdir(home);
  await rename(draft, home);
  await syncFolder(dirname(home));
}

/**
 * @throws ReveilleError `conflict` for a home that is not empty or in use, or data of a newer version; `forbidden` for a
 *   wrong passphrase; `invalid_request` for a damaged file; `unavailable` for a disk error. Nothing is left then.
 */
export async function restoreBackup({ file, home, passphrase, approver, onOutsideLink }: Restoring): Promise<Restored> {
  checkEmpty(home);
  const draft = `${home}.restore-${process.pid}`;
  const approverDraft = approver === undefined ? undefined : `${approver}.restore-${process.pid}`;
  sweep(dirname(home), new RegExp(`^${RegExp.escape(basename(home))}\\.restore-(\\d+)$`));
  let root: FolderRoot | undefined;
  let unpacking: Unpacking | undefined;
  let isRestored = false;
  try {
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    if (approverDraft !== undefined) mkdirSync(dirname(approverDraft), { recursive: true, mode: 0o700 });
    root = await FolderRoot.open(draft);
    unpacking = new Unpacking(root, file, approverDraft);
    if (onOutsideLink) unpacking.skipLink = onOutsideLink;
    const end = await readBackup(file, passphrase, unpacking);
    const folderLines = await keepFoldersHere(draft);
    checkDatabases(draft);
    await unpacking.finish();
    await syncFolder(draft);
    checkEmpty(home);
    await takeName(draft, home);
    isRestored = true;
    const fate = await keyFate(unpacking.hasApprover, approver, approverDraft);
    return { about: unpacking.found!, end, folderLines, approver: fate };
  } catch (thrown) {
    throw writingError(thrown, `${home} was not restored`);
  } finally {
    await unpacking?.closeFile();
    if (!isRestored) await unpacking?.unlock().catch(() => {});
    await root?.close();
    rmSync(draft, { recursive: true, force: true });
    if (approverDraft !== undefined) rmSync(approverDraft, { force: true });
  }
}

/** An existing key is never overwritten. */
async function keyFate(
  hasKey: boolean,
  approver: string | undefined,
  draft: string | undefined,
): Promise<Restored['approver']> {
  if (!hasKey) return 'none';
  if (approver === undefined) return 'left out';
  if (existsSync(approver)) return 'kept another';
  await rename(draft!, approver);
  await syncFolder(dirname(approver));
  return 'restored';
}

/** Verifies a backup without writing. @returns its parts */
export async function checkBackup(
  file: string,
  passphrase: () => Promise<string>,
): Promise<{ about: About; end: End; parts: { path: string; size: number; sha256: string }[] }> {
  let about: About | undefined;
  const parts: { path: string; size: number; sha256: string }[] = [];
  const end = await readBackup(file, passphrase, {
    about(found) {
      checkSchemas(found.schemas, `${file} was created by`);
      about = found;
    },
    part: async () => undefined,
    summed: ({ path }, sum) => void parts.push({ path, ...sum }),
  });
  return { about: about!, end, parts };
}

/**
 * Restoring a backup: into a home that is empty or not there, whole or not at all. Everything is written to a folder
 * beside, made durable, looked at, and gets its name last.
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
import { APPROVER_PATH, escaped, readBackup, sweep, syncFolder, writingError } from './make.ts';

const BUSY_MS = 1000;

/** A line of `config.yaml` that names a data folder: what was restored lies in the home. */
const FOLDER_LINE = new RegExp(`^(?:${[...DATA_FOLDERS.keys()].join('|')})\\s*:.*$`, 'gm');

export type Restored = {
  readonly about: About;
  readonly end: End;
  /** Lines of `config.yaml` that named folders elsewhere, and were made remarks. */
  readonly folderLines: readonly string[];
  /** Whether the backup held an approver's key, and what became of it. */
  readonly approver: 'none' | 'restored' | 'kept another' | 'left out';
};

export type Restoring = {
  readonly file: string;
  readonly home: string;
  /** Asks for the passphrase; or the key, where it is at hand. */
  readonly passphrase: Buffer | (() => Promise<string>);
  /** Where the approver's key goes, when it is wanted. */
  readonly approver?: string | undefined;
  /** Leaves out links that lead out of the home, and calls this for each; without it, such a backup is refused. */
  readonly onOutsideLink?: ((path: string, why: string) => void) | undefined;
};

/** @throws ReveilleError `conflict` when somebody uses the home, or something is in it */
function checkEmpty(home: string): void {
  if (!existsSync(home)) return;
  const owner = likelyOwner(join(home, 'up'));
  if (owner !== undefined) throw new FileInUse(home, owner);
  const [entry] = readdirSync(home);
  if (entry === undefined) return;
  const remedy = 'name an empty folder with --home, or move this one away first';
  throw new ReveilleError('conflict', `${home} is not empty (${basename(entry)} is in it); ${remedy}`);
}

/** Writes the parts of a backup beneath a folder. Links come last, and nothing follows one. */
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
    checkSchemas(about.schemas, `${this.#file} was made by`);
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

  /** Some file systems take two spellings for one name. */
  async #named<T>(path: string, making: Promise<T>): Promise<T> {
    return making.catch((cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw cause;
      const message = `${this.#file} holds the entry ${JSON.stringify(path)}, whose name is that of another entry on this file system; restore it on another one`;
      throw new ReveilleError('invalid_request', message, { cause });
    });
  }

  /** Closes the file that was being written, if there is one. */
  async closeFile(): Promise<void> {
    await this.#open?.close();
    this.#open = undefined;
  }

  /** Makes links, and then gives folders their modes, the innermost first. */
  async finish(): Promise<void> {
    for (const { path, target } of this.#links) await this.#named(path, this.#root.makeLink(path, target));
    for (const [path, mode] of [...this.#modes].reverse()) await this.#root.settleFolder(path, mode);
  }

  /** Gives folders back to their owner, the outermost first, so that all can be deleted. */
  async unlock(): Promise<void> {
    for (const path of this.#modes.keys()) await this.#root.settleFolder(path, 0o700);
  }
}

/** Makes remarks of the lines that would have the next start look elsewhere for what lies here. */
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

/** The one step that makes it the home: a folder that is there, and empty, gives way. */
async function takeName(draft: string, home: string): Promise<void> {
  // On Windows an empty folder is in the way of a rename; elsewhere one that is not empty any more refuses it.
  if (process.platform === 'win32' && existsSync(home)) await rmdir(home);
  await rename(draft, home);
  await syncFolder(dirname(home));
}

/**
 * @throws ReveilleError `conflict` for a home that is not empty or in use, or data of a newer version; `forbidden` for a
 *   wrong passphrase; `invalid_request` for a damaged file; `unavailable` when the disk refuses. Nothing is left then
 */
export async function restoreBackup({ file, home, passphrase, approver, onOutsideLink }: Restoring): Promise<Restored> {
  checkEmpty(home);
  const draft = `${home}.restore-${process.pid}`;
  const approverDraft = approver === undefined ? undefined : `${approver}.restore-${process.pid}`;
  sweep(dirname(home), new RegExp(`^${escaped(basename(home))}\\.restore-(\\d+)$`));
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

/** A key that is there already is never written over. */
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

/** Reads a backup to its end, and writes nothing. @returns what it holds, part by part */
export async function checkBackup(
  file: string,
  passphrase: () => Promise<string>,
): Promise<{ about: About; end: End; parts: { path: string; size: number; sha256: string }[] }> {
  let about: About | undefined;
  const parts: { path: string; size: number; sha256: string }[] = [];
  const end = await readBackup(file, passphrase, {
    about(found) {
      checkSchemas(found.schemas, `${file} was made by`);
      about = found;
    },
    part: async () => undefined,
    summed: ({ path }, sum) => void parts.push({ path, ...sum }),
  });
  return { about: about!, end, parts };
}

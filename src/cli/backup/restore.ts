/**
 * Restores a backup into an empty or missing home, completely or not at all. All files are written to a folder beside
 * it, made durable and checked; the rename comes last.
 */
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rename, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Beneath } from '../../kit/files/beneath.ts';
import { FileInUse, likelyOwner } from '../../kit/sqlite/file-owner.ts';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { checkSchemas, DATA_FOLDERS, DATABASES } from '../home/databases.ts';
import type { About, End, Visitor } from './archive.ts';
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
  readonly approver: 'none' | 'restored' | 'same' | 'kept another' | 'left out';
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

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

/**
 * Writes the parts of a backup below a folder. Links come last, and no link is followed, whatever other processes change
 * there.
 */
export class Unpacking implements Visitor {
  readonly #root: Beneath;
  readonly #file: string;
  readonly #links: { path: string; target: string }[] = [];
  readonly #modes = new Map<string, number>();
  readonly #approver: string | undefined;
  #open: number | undefined;
  skipLink?: (path: string, why: string) => void;
  found: About | undefined;
  hasApprover = false;

  constructor(root: Beneath, file: string, approver: string | undefined) {
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
      this.#make(head.path, () => {
        if (this.#root.kind(head.path) !== 'folder') this.#root.mkdir(head.path, 0o700);
      });
      this.#modes.set(head.path, head.mode);
      return undefined;
    }
    const isApprover = head.path === APPROVER_PATH;
    if (isApprover) this.hasApprover = true;
    if (isApprover && this.#approver === undefined) return undefined;
    const file = this.#make(head.path, () =>
      isApprover ? openSync(this.#approver!, 'wx', 0o600) : this.#root.open(head.path, NEW_FILE, head.mode),
    );
    this.#open = file;
    return {
      write: async (bytes: Buffer) => writeFileSync(file, bytes),
      close: async () => {
        fsyncSync(file);
        this.closeFile();
      },
    };
  }

  #make<T>(path: string, make: () => T): T {
    try {
      return make();
    } catch (cause) {
      const { code = '' } = cause as NodeJS.ErrnoException;
      const name = JSON.stringify(path);
      if (code === 'ELOOP' || code === 'ENOTDIR')
        throw new ReveilleError('conflict', `the parent of ${name} is no longer a folder; another process changed it`, {
          cause,
        });
      if (code !== 'EEXIST') throw cause;
      // Some file systems treat two spellings as one name.
      const message = `${this.#file} contains the entry ${name}, whose name equals another entry's on this file system; restore it on another one`;
      throw new ReveilleError('invalid_request', message, { cause });
    }
  }

  /** Closes the file that is being written, if any. */
  closeFile(): void {
    if (this.#open !== undefined) closeSync(this.#open);
    this.#open = undefined;
  }

  /** Creates links, and then sets the modes of folders, innermost first. */
  finish(): void {
    for (const { path, target } of this.#links) this.#make(path, () => this.#root.symlink(target, path));
    for (const [path, mode] of [...this.#modes].reverse()) this.#make(path, () => this.#root.settleFolder(path, mode));
  }

  /** Makes folders writable for their owner, outermost first, so that all can be deleted. */
  unlock(): void {
    try {
      for (const path of this.#modes.keys()) this.#root.settleFolder(path, 0o700);
    } catch {
      // The draft is deleted as far as possible.
    }
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
  let root: Beneath | undefined;
  let unpacking: Unpacking | undefined;
  let isRestored = false;
  try {
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    if (approverDraft !== undefined) mkdirSync(dirname(approverDraft), { recursive: true, mode: 0o700 });
    root = new Beneath(draft);
    unpacking = new Unpacking(root, file, approverDraft);
    if (onOutsideLink) unpacking.skipLink = onOutsideLink;
    const end = await readBackup(file, passphrase, unpacking);
    const folderLines = await keepFoldersHere(draft);
    markLastRun(draft, unpacking.found!);
    checkDatabases(draft);
    unpacking.finish();
    await syncFolder(draft);
    checkEmpty(home);
    await takeName(draft, home);
    isRestored = true;
    const fate = await keyFate(unpacking.hasApprover, approver, approverDraft);
    return { about: unpacking.found!, end, folderLines, approver: fate };
  } catch (thrown) {
    throw writingError(thrown, `${home} was not restored`);
  } finally {
    unpacking?.closeFile();
    if (!isRestored) unpacking?.unlock();
    root?.close();
    rmSync(draft, { recursive: true, force: true });
    if (approverDraft !== undefined) rmSync(approverDraft, { force: true });
  }
}

/** Fires that fell due since the backup are late because Reveille was not running (`src/chronos/dispatch/absence.ts`). */
function markLastRun(home: string, { made_at: at }: About): void {
  const folder = join(home, 'chronos');
  if (!existsSync(folder)) return;
  const file = join(folder, 'alive');
  writeFileSync(file, '', { mode: 0o600 });
  utimesSync(file, new Date(at), new Date(at));
}

/** An existing key is never overwritten. */
async function keyFate(
  hasKey: boolean,
  approver: string | undefined,
  draft: string | undefined,
): Promise<Restored['approver']> {
  if (!hasKey) return 'none';
  if (approver === undefined) return 'left out';
  if (existsSync(approver)) return readFileSync(approver).equals(readFileSync(draft!)) ? 'same' : 'kept another';
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

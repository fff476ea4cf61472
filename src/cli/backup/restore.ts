/**
 * Restoring a backup: into a home that is empty or not there, whole or not at all. Everything is written to a folder
 * beside, made durable, looked at, and gets its name last.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, rename, rmdir, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { FileInUse, likelyOwner } from '../../kit/sqlite/file-owner.ts';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { checkSchemas, DATA_FOLDERS, DATABASES } from '../home/databases.ts';
import type { About, End, PartHead, Visitor } from './archive.ts';
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
  readonly passphrase: () => Promise<string>;
  /** Where the approver's key goes, when it is wanted. */
  readonly approver?: string | undefined;
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

/** Writes the parts of a backup below a folder. Links come last: nothing is ever written through one. */
class Unpacking implements Visitor {
  readonly #folder: string;
  readonly #file: string;
  readonly #links: { path: string; target: string }[] = [];
  readonly #modes: { path: string; mode: number }[] = [];
  readonly #approver: string | undefined;
  #open: FileHandle | undefined;
  found: About | undefined;
  hasApprover = false;

  constructor(folder: string, file: string, approver: string | undefined) {
    this.#folder = folder;
    this.#file = file;
    this.#approver = approver;
  }

  about(about: About): void {
    checkSchemas(about.schemas, `${this.#file} was made by`);
    this.found = about;
  }

  async part(head: PartHead) {
    const path = join(this.#folder, head.path);
    if (head.kind === 'link') {
      this.#links.push({ path, target: head.target });
      return undefined;
    }
    if (head.kind === 'folder') {
      await mkdir(path, { recursive: true, mode: 0o700 });
      this.#modes.push({ path, mode: head.mode });
      return undefined;
    }
    if (head.path === APPROVER_PATH) this.hasApprover = true;
    if (head.path === APPROVER_PATH && this.#approver === undefined) return undefined;
    const target = head.path === APPROVER_PATH ? this.#approver! : path;
    const handle = await open(target, 'wx', head.mode);
    this.#open = handle;
    return {
      write: async (bytes: Buffer) => void (await handle.writeFile(bytes)),
      close: async () => {
        await handle.sync();
        await this.giveUp();
      },
    };
  }

  /** Closes the file that was being written, if there is one. */
  async giveUp(): Promise<void> {
    await this.#open?.close();
    this.#open = undefined;
  }

  async finish(): Promise<void> {
    for (const { path, target } of this.#links) await symlink(target, path);
    for (const { path, mode } of this.#modes.reverse()) {
      await syncFolder(path);
      await chmod(path, mode);
    }
    await syncFolder(this.#folder);
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
export async function restoreBackup({ file, home, passphrase, approver }: Restoring): Promise<Restored> {
  checkEmpty(home);
  const draft = `${home}.restore-${process.pid}`;
  const approverDraft = approver === undefined ? undefined : `${approver}.restore-${process.pid}`;
  sweep(dirname(home), new RegExp(`^${escaped(basename(home))}\\.restore-(\\d+)$`));
  const unpacking = new Unpacking(draft, file, approverDraft);
  try {
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    if (approverDraft !== undefined) mkdirSync(dirname(approverDraft), { recursive: true, mode: 0o700 });
    const end = await readBackup(file, passphrase, unpacking);
    const folderLines = await keepFoldersHere(draft);
    checkDatabases(draft);
    await unpacking.finish();
    checkEmpty(home);
    await takeName(draft, home);
    const fate = await keyFate(unpacking.hasApprover, approver, approverDraft);
    return { about: unpacking.found!, end, folderLines, approver: fate };
  } catch (thrown) {
    throw writingError(thrown, `${home} was not restored`);
  } finally {
    await unpacking.giveUp();
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

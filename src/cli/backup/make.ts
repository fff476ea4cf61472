/** Creates a backup: one encrypted file, complete or absent; and verifies one. */
import { createWriteStream, existsSync, readdirSync, rmSync } from 'node:fs';
import { link, mkdir, open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { isAlive } from '../../kit/sqlite/file-owner.ts';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { isDamage, storageError } from '../../kit/sqlite/sqlite-error.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { DATABASES, databasePath, schemaVersion } from '../home/databases.ts';
import type { Home } from '../home/home.ts';
import { type About, type End, type Part, readArchive, type Visitor, writeArchive } from './archive.ts';
import { COPIES, filePart, inventory, type OmittedLink } from './inventory.ts';
import { sealing, unseal } from './sealed-stream.ts';

// Fixes the content of several databases while other processes write to them.
//
// A read transaction on each database (all are in WAL mode) fixes the content of its copy for as long as the copy
// takes, and blocks no writer. The transactions start within about a millisecond. If no database changed between the
// first and the last one, the copies show one instant; otherwise the attempt is repeated. Under constant load the
// order of {@link DATABASES} remains.

const BUSY_MS = 5000;
const ATTEMPTS = 40;
/** Pages per step, copied on a thread of SQLite. */
const PAGES = 1024;

/** One database with fixed content. */
type Fixed = {
  /** Its file, and its path in a home. */
  readonly source: string;
  readonly path: string;
  /** The number of migrations; 0 for a database without tables. */
  readonly schema: number;
  /** Writes the fixed content to a new file. */
  copyTo(file: string): Promise<void>;
};

type Cut = { readonly kind: 'instant' | 'ordered'; readonly databases: readonly Fixed[]; close(): void };

type Opened = { source: string; path: string; reader: DatabaseSync; watcher: DatabaseSync };

function openDatabase(source: string, path: string): Opened {
  inspectDatabase(source, BUSY_MS);
  const reader = new DatabaseSync(source, { readOnly: true, timeout: BUSY_MS });
  try {
    const mode = reader.prepare('PRAGMA journal_mode').get()?.journal_mode;
    if (mode !== 'wal') {
      const message = `${source} is in journal mode ${mode}, in which a copy would block its writers; start Reveille once, which sets WAL`;
      throw new ReveilleError('conflict', message);
    }
    return { source, path, reader, watcher: new DatabaseSync(source, { readOnly: true, timeout: BUSY_MS }) };
  } catch (thrown) {
    reader.close();
    throw thrown;
  }
}

const versionOf = ({ watcher }: Opened) => watcher.prepare('PRAGMA data_version').get()?.data_version;

/** @returns whether nothing changed meanwhile */
function fix(opened: readonly Opened[]): boolean {
  const before = opened.map(versionOf);
  for (const { reader } of opened) {
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM sqlite_schema').get();
  }
  return opened.every((database, index) => versionOf(database) === before[index]);
}

/**
 * Fixes the existing databases of an installation.
 *
 * @param settings with the data folders
 * @throws ReveilleError `unavailable` when one is damaged or cannot be read
 */
async function fixDatabases(settings: Settings): Promise<Cut> {
  const opened: Opened[] = [];
  const close = () => {
    for (const { reader, watcher } of opened) for (const db of [reader, watcher]) if (db.isOpen) db.close();
  };
  try {
    for (const known of DATABASES) {
      const source = databasePath(settings, known);
      if (existsSync(source)) opened.push(openDatabase(source, `${known.folder}/${known.file}`));
    }
    let isInstant = fix(opened);
    for (let attempt = 1; !isInstant && attempt < ATTEMPTS; attempt++) {
      for (const { reader } of opened) reader.exec('ROLLBACK');
      await pause(1);
      isInstant = fix(opened);
    }
    const databases = opened.map((database): Fixed => {
      const { source, path, reader } = database;
      return {
        source,
        path,
        schema: schemaVersion(reader),
        // The connection's own transaction stays open, so the copy has the fixed content.
        copyTo: async (file) => void (await backup(reader, file, { rate: PAGES })),
      };
    });
    return { kind: isInstant ? 'instant' : 'ordered', databases, close };
  } catch (thrown) {
    close();
    throw isDamage(thrown) ? storageError(thrown) : thrown;
  }
}

/** The path of an approver's key in a backup. */
export const APPROVER_PATH = 'approver.json';
const PIECE = 256 * 1024;
const NO_ROOM: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'ERR_SQLITE_ERROR']);

export type Making = {
  readonly home: Home;
  /** Settings with the data folders. */
  readonly settings: Settings;
  readonly file: string;
  readonly passphrase: string;
  readonly about: Pick<About, 'reveille' | 'made_at' | 'alarms'>;
  /** The file of the approver's key, if the backup includes it. */
  readonly approver?: string | undefined;
  readonly onProgress?: (bytes: number) => void;
  /** Called for each omitted link that points outside the home. */
  readonly onOmittedLink?: (link: OmittedLink) => void;
};

export type Made = { readonly about: About; readonly end: End; readonly bytes: number };
type Written = Made & { readonly key: Buffer };

/** Removes files of an interrupted backup, by the process id in the name. */
export function sweep(folder: string, name: RegExp): void {
  for (const entry of existsSync(folder) ? readdirSync(folder) : []) {
    const pid = name.exec(entry)?.[1];
    if (pid !== undefined && (Number(pid) === process.pid || !isAlive(Number(pid))))
      rmSync(join(folder, entry), { recursive: true, force: true });
  }
}

/** The error of a failed write, which left nothing behind. */
export function writingError(thrown: unknown, what: string): unknown {
  if (thrown instanceof ReveilleError || !(thrown instanceof Error) || !('code' in thrown)) return thrown;
  const { code, message } = thrown;
  const isFull = code === 'ERR_SQLITE_ERROR' ? /full|disk I\/O/.test(message) : NO_ROOM.has(code);
  const why = isFull ? `the disk is full (${message})` : message;
  const remedy = isFull ? 'free space, or name a file on another disk' : 'name a place that this user can write to';
  return new ReveilleError('unavailable', `${what}: ${why}; nothing was left behind: ${remedy}`, {
    retryable: false,
    cause: thrown,
  });
}

/** The databases as parts: each is copied beside the data, and the copy is removed after reading. */
async function* databaseParts(cut: Cut, copies: string): AsyncGenerator<Part> {
  for (const { path, copyTo } of cut.databases) {
    const copy = join(copies, basename(path));
    await copyTo(copy);
    const part = await filePart(copy, path);
    rmSync(copy, { force: true });
    yield part!;
  }
}

async function* partsOf(making: Making, cut: Cut, copies: string): AsyncGenerator<Part> {
  const folders = new Set(cut.databases.map(({ path }) => dirname(path)));
  for (const path of folders) yield { head: { kind: 'folder', path, mode: 0o700 } };
  yield* databaseParts(cut, copies);
  // After the databases: a key or token that a row refers to was written before the row.
  yield* inventory(making.home, making.settings, making.onOmittedLink ?? (() => {}));
  const key = making.approver === undefined ? undefined : await filePart(making.approver, APPROVER_PATH);
  if (key !== undefined) yield key;
}

async function writeAll(making: Making, cut: Cut, copies: string, draft: string): Promise<Written> {
  const schemas = Object.fromEntries(cut.databases.map(({ path, schema }) => [path, schema]));
  const about: About = { ...making.about, cut: cut.kind, schemas };
  const { key, seal } = await sealing(making.passphrase);
  let end: End | undefined;
  const archive = writeArchive(about, partsOf(making, cut, copies), (reached) => {
    end = reached;
  });
  let bytes = 0;
  async function* counted(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of source) {
      bytes += piece.length;
      making.onProgress?.(bytes);
      yield piece;
    }
  }
  await pipeline(
    Readable.from(archive, { objectMode: false }),
    createGzip({ level: 1 }),
    seal,
    counted,
    createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true }),
  );
  return { about, end: end!, bytes, key };
}

/**
 * @param secret returns the passphrase, or the key if known
 * @throws ReveilleError `forbidden` for a wrong passphrase, `invalid_request` for a damaged, truncated or foreign file,
 *   `not_found` for a missing one
 */
export async function readBackup(
  file: string,
  secret: Buffer | (() => Promise<string>),
  visitor: Visitor,
): Promise<End> {
  const source = await open(file, 'r').catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'there is no such file' : cause.message;
    throw new ReveilleError('not_found', `${file} cannot be read: ${why}`, { cause });
  });
  const plain = createGunzip();
  const feeding = pipeline(
    source.createReadStream({ highWaterMark: PIECE }),
    (bytes: AsyncIterable<Buffer>) => unseal(bytes, file, secret),
    plain,
  );
  // The reader also gets the file's error through the stream; it is reported once.
  const failed = feeding.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  try {
    return await readArchive(plain, file, visitor);
  } catch (thrown) {
    plain.destroy();
    const cause = await failed;
    throw cause instanceof ReveilleError ? cause : thrown;
  } finally {
    await source.close().catch(() => {});
  }
}

/**
 * Creates a backup, also while Reveille runs. It is read back and compared before it gets its name.
 *
 * @throws ReveilleError `conflict` for an existing file, `unavailable` when it cannot be written
 */
export async function makeBackup(making: Making): Promise<Made> {
  const file = resolve(making.file);
  const taken = () => new ReveilleError('conflict', `${file} exists and is not overwritten; name another file`);
  if (existsSync(file)) throw taken();
  const draft = `${file}.part-${process.pid}`;
  const copies = join(making.home.path, `.backup-${process.pid}`);
  sweep(dirname(file), new RegExp(`^${RegExp.escape(basename(file))}\\.part-(\\d+)$`));
  sweep(making.home.path, COPIES);
  let cut: Cut | undefined;
  try {
    cut = await fixDatabases(making.settings);
    await mkdir(copies, { mode: 0o700 });
    const { key, ...made } = await writeAll(making, cut, copies, draft);
    await readBackup(draft, key, { about: () => {}, part: async () => undefined });
    // A hard link fails for an existing name, where a rename would overwrite it; not every file system has links.
    await link(draft, file).catch(async (thrown: NodeJS.ErrnoException) => {
      if (thrown.code === 'EEXIST') throw taken();
      await rename(draft, file);
    });
    await syncFolder(dirname(file));
    return made;
  } catch (thrown) {
    throw writingError(thrown, `the backup ${file} was not made`);
  } finally {
    cut?.close();
    rmSync(draft, { force: true });
    rmSync(copies, { recursive: true, force: true });
  }
}

/** Makes names in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows does not open a folder.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

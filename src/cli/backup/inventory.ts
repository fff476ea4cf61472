/** The files of an installation that a backup contains: its whole home, except files that a start creates. */
import { constants, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isAbsolute, join, posix, relative, resolve, sep } from 'node:path';
import { systemCodeOf } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { DATA_FOLDERS, DATABASES, databasePath } from '../home/databases.ts';
import type { Home } from '../home/home.ts';
import type { Part } from './archive.ts';
import { linkProblem } from './entry.ts';

const PIECE = 256 * 1024;

/** Files of one computer or one run; every start creates them again. */
const MADE_ANEW = new Set(['run.json', 'up.lock', 'up.lock-journal', 'up.pid', 'neo/compiled', 'chronos/alive']);
/** Copies in progress, by process id. */
export const COPIES = /^\.backup-(\d+)$/;
/** Files of SQLite and of its owner beside a database. */
const BESIDE_DATABASE = ['', '-wal', '-shm', '-journal', '.lock', '.lock-journal', '.pid'];
/** Incomplete files: files are written beside, then renamed. */
const DRAFT = /\.[0-9a-f]{12}\.tmp$/;

const isGone = (thrown: unknown) => systemCodeOf(thrown) === 'ENOENT';

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (thrown) {
    if (isGone(thrown)) return undefined;
    throw thrown;
  }
}

async function* contentOf(file: FileHandle): AsyncGenerator<Buffer> {
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(PIECE), 0, PIECE, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** A file as a part, as it is now; a growing file is read to its current end. `undefined` when it is deleted. */
export async function filePart(source: string, path: string): Promise<Part | undefined> {
  let file: FileHandle;
  try {
    // Never through a link, and a pipe must not block: agents' programs write to some of these folders.
    file = await open(source, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (thrown) {
    if (isGone(thrown) || systemCodeOf(thrown) === 'ELOOP') return undefined;
    throw thrown;
  }
  const stat = await file.stat();
  if (!stat.isFile()) {
    await file.close();
    return undefined;
  }
  return { head: { kind: 'file', path, mode: stat.mode & 0o700 }, content: contentOf(file) };
}

/** A link that points outside the home, and is not in the backup. */
export type OmittedLink = { readonly path: string; readonly target: string };

type Walk = {
  /** A folder in the backup, and its path there. */
  readonly root: { readonly folder: string; readonly path: string };
  readonly skips: (path: string, source: string) => boolean;
  readonly onOmitted: (link: OmittedLink) => void;
};

/** A link's target in a backup: an absolute target inside the backup becomes relative. */
function targetIn({ folder, path: root }: Walk['root'], path: string, target: string): string {
  const inside = isAbsolute(target) ? relative(folder, target) : '..';
  if (inside.split(sep)[0] === '..' || isAbsolute(inside)) return target;
  return posix.relative(posix.dirname(path), posix.join(root, inside.split(sep).join('/'))) || '.';
}

/** Walks a folder, parents before their entries, names in order; links within the home stay links. */
async function* walk(folder: string, path: string, about: Walk): AsyncGenerator<Part> {
  const { root, skips, onOmitted } = about;
  const entries = unlessGone(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const source = join(folder, entry.name);
    const inside = path === '' ? entry.name : `${path}/${entry.name}`;
    if (skips(inside, source)) continue;
    if (entry.isDirectory()) {
      const stat = unlessGone(() => lstatSync(source));
      if (stat === undefined) continue;
      yield { head: { kind: 'folder', path: inside, mode: stat.mode & 0o700 } };
      yield* walk(source, inside, about);
    } else if (entry.isSymbolicLink()) {
      const written = unlessGone(() => readlinkSync(source));
      if (written === undefined) continue;
      const target = targetIn(root, inside, written);
      if (linkProblem(inside, target) === undefined) yield { head: { kind: 'link', path: inside, target } };
      else onOmitted({ path: inside, target: written });
    } else if (entry.isFile()) {
      const part = await filePart(source, inside);
      if (part !== undefined) yield part;
    }
  }
}

/** The data folders that a setting moved outside the home, with the settings' names. */
export function foldersElsewhere(home: Home, settings: Settings): [folder: string, path: string][] {
  return [...DATA_FOLDERS].flatMap(([variable, name]): [string, string][] => {
    const folder = resolve(settings[variable]!);
    return folder === join(home.path, name) ? [] : [[folder, name]];
  });
}

/** Every file of an installation except databases and files that a start creates. */
export async function* inventory(
  home: Home,
  settings: Settings,
  onOmitted: (link: OmittedLink) => void,
): AsyncGenerator<Part> {
  const besides = new Set(
    DATABASES.flatMap((known) => BESIDE_DATABASE.map((suffix) => resolve(databasePath(settings, known)) + suffix)),
  );
  const elsewhere = foldersElsewhere(home, settings);
  const replaced = new Set(elsewhere.map(([, name]) => name));
  const skips = (path: string, source: string) =>
    MADE_ANEW.has(path) || COPIES.test(path) || DRAFT.test(path) || besides.has(source);
  // A folder in the home that a setting has moved is an old one.
  yield* walk(home.path, '', {
    ...{ root: { folder: home.path, path: '' }, onOmitted },
    skips: (path, source) => replaced.has(path) || skips(path, source),
  });
  for (const [folder, name] of elsewhere) {
    if (unlessGone(() => lstatSync(folder)) === undefined) continue;
    yield { head: { kind: 'folder', path: name, mode: 0o700 } };
    yield* walk(folder, name, { root: { folder, path: name }, skips, onOmitted });
  }
}

/**
 * The progress of an upgrade on the disk: a note beside the service, and a copy of the data beside the data. After a power
 * cut the note shows which step is safe.
 */
import {
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { replacePrivateFile } from '../../kit/identity/private-file.ts';
import { foldersElsewhere } from '../backup/inventory.ts';
import type { CliContext } from '../context.ts';
import { schemasOf } from '../home/databases.ts';
import { ask } from './ask.ts';
import type { ServiceFolders } from './folders.ts';

const SYNC_MS = 120_000;
/** A new version that runs longer than this is not part of an attempt any more. */
const ATTEMPT_MS = 60_000;

const noteSchema = z.object({
  /**
   * `copying`: the data belongs to the earlier version, and its copy is incomplete. `trying`: the copy is complete, and
   * the new version may have started. `over`: the new version stays or was abandoned, and the copy is removed.
   */
  phase: z.enum(['copying', 'trying', 'over']).default('trying'),
  from: z.string(),
  to: z.string(),
  begun_at: z.string(),
  /** When the new version could start first. */
  tried_at: z.string().optional(),
  /** Each data folder, and the location of its copy. */
  copies: z.array(z.strictObject({ folder: z.string(), copy: z.string() })),
  schemas: z.record(z.string(), z.int()),
  /** The broken checks of the earlier version's doctor. */
  known: z.array(z.string()).default([]),
});
export type Note = z.output<typeof noteSchema>;

export const noteFile = ({ own }: ServiceFolders): string => join(own, 'upgrade.json');

/** A link to the earlier version, which the service uses while the note exists. */
export const earlierVersion = ({ own }: ServiceFolders): string => join(own, 'earlier');

export function readNote(place: ServiceFolders): Note | undefined {
  const file = noteFile(place);
  return existsSync(file) ? noteSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined;
}

export function writeNote(place: ServiceFolders, note: Note): void {
  const link = earlierVersion(place);
  mkdirSync(place.own, { recursive: true, mode: 0o700 });
  rmSync(link, { force: true });
  symlinkSync(note.from, link, process.platform === 'win32' ? 'junction' : 'dir');
  replacePrivateFile(noteFile(place), `${JSON.stringify(note, null, 2)}\n`);
}

/** Removes the copies, and then the note. */
export function forgetNote(place: ServiceFolders, note: Note): void {
  // An incomplete copy must never be restored.
  writeNote(place, { ...note, phase: 'over' });
  for (const { folder, copy } of note.copies)
    for (const path of [copy, failedOf(folder)]) rmSync(path, { recursive: true, force: true });
  rmSync(noteFile(place), { force: true });
  rmSync(earlierVersion(place), { force: true });
}

/** The data folders, each with the location of its copy: on the same disk, so that restoring is a rename. */
export function copiesOf({ home, settings }: CliContext): Note['copies'] {
  const folders = [home.path, ...foldersElsewhere(home, settings).map(([folder]) => folder)];
  return folders.filter((folder) => existsSync(folder)).map((folder) => ({ folder, copy: `${folder}.before-upgrade` }));
}

/** Copies the data, and syncs everything to the disk, the new version included. */
export async function makeCopies({ copies }: Note): Promise<void> {
  const mode = constants.COPYFILE_FICLONE;
  for (const { folder, copy } of copies) {
    rmSync(copy, { recursive: true, force: true });
    cpSync(folder, copy, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, mode });
  }
  await ask('sync', [], { limitMs: SYNC_MS });
}

const failedOf = (folder: string) => `${folder}.failed-upgrade`;

/** Restores the copies; may be repeated after an interruption. */
export function putBack({ copies }: Note): void {
  for (const { folder, copy } of copies) {
    if (!existsSync(copy)) continue;
    rmSync(failedOf(folder), { recursive: true, force: true });
    if (existsSync(folder)) renameSync(folder, failedOf(folder));
    renameSync(copy, folder);
    rmSync(failedOf(folder), { recursive: true, force: true });
  }
}

/** Whether the new version has migrated a database, which the earlier one could not read. */
export function isMigrated({ settings }: CliContext, { schemas }: Note): boolean {
  const now = schemasOf(settings);
  return Object.keys({ ...now, ...schemas }).some((path) => now[path] !== schemas[path]);
}

/** Whether the new version has accepted requests, which must not be undone without the user. */
export function cameUp({ home, settings }: CliContext, { tried_at }: Note): boolean {
  if (tried_at === undefined) return false;
  const triedAt = Date.parse(tried_at);
  const alive = statSync(join(settings.CHRONOS_DATA_DIR!, 'alive'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return alive > triedAt + ATTEMPT_MS || startedAt(home.runFile) > triedAt;
}

/** When the last `up` started that did not end by itself. */
function startedAt(runFile: string): number {
  try {
    return Date.parse(JSON.parse(readFileSync(runFile, 'utf8')).started_at) || 0;
  } catch {
    return 0;
  }
}

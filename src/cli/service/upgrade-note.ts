/**
 * How far an upgrade has come, on the disk: a note beside the service, and a copy of the data beside the data. Whoever
 * finds the note without its upgrade, after a power cut say, knows from it what is safe to do.
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
import type { ServicePlace } from './place.ts';

const SYNC_MS = 120_000;
/** A new version that has run for longer than this beyond its switch was nobody's attempt any more. */
const ATTEMPT_MS = 60_000;

const noteSchema = z.object({
  /**
   * `copying`: the data is that of the version before, its copy not whole. `trying`: the copy is whole, and the new
   * version may have been started. `over`: it stays or was given up, and the copy goes.
   */
  phase: z.enum(['copying', 'trying', 'over']).default('trying'),
  from: z.string(),
  to: z.string(),
  begun_at: z.string(),
  /** When the new version could be started first. */
  tried_at: z.string().optional(),
  /** Each folder of data, and where its copy lies. */
  copies: z.array(z.strictObject({ folder: z.string(), copy: z.string() })),
  schemas: z.record(z.string(), z.int()),
  /** What the doctor of the version before had found broken. */
  known: z.array(z.string()).default([]),
});
export type Note = z.output<typeof noteSchema>;

export const noteFile = ({ own }: ServicePlace): string => join(own, 'upgrade.json');

/** A link to the version before, by which the service finds it while the note is there. */
export const earlierVersion = ({ own }: ServicePlace): string => join(own, 'earlier');

export function readNote(place: ServicePlace): Note | undefined {
  const file = noteFile(place);
  return existsSync(file) ? noteSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined;
}

export function writeNote(place: ServicePlace, note: Note): void {
  const link = earlierVersion(place);
  mkdirSync(place.own, { recursive: true, mode: 0o700 });
  rmSync(link, { force: true });
  symlinkSync(note.from, link, process.platform === 'win32' ? 'junction' : 'dir');
  replacePrivateFile(noteFile(place), `${JSON.stringify(note, null, 2)}\n`);
}

/** Takes the copies away, and then the note. */
export function forgetNote(place: ServicePlace, note: Note): void {
  // Half a copy must never be put back.
  writeNote(place, { ...note, phase: 'over' });
  for (const { folder, copy } of note.copies)
    for (const path of [copy, failedOf(folder)]) rmSync(path, { recursive: true, force: true });
  rmSync(noteFile(place), { force: true });
  rmSync(earlierVersion(place), { force: true });
}

/** The folders that hold data, each with where its copy goes: on the same disk, so that going back is a rename. */
export function copiesOf({ home, settings }: CliContext): Note['copies'] {
  const folders = [home.path, ...foldersElsewhere(home, settings).map(([folder]) => folder)];
  return folders.filter((folder) => existsSync(folder)).map((folder) => ({ folder, copy: `${folder}.before-upgrade` }));
}

/** Copies the data, and has everything that was written until now put on the disk, the new version among it. */
export async function makeCopies({ copies }: Note): Promise<void> {
  const mode = constants.COPYFILE_FICLONE;
  for (const { folder, copy } of copies) {
    rmSync(copy, { recursive: true, force: true });
    cpSync(folder, copy, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, mode });
  }
  await ask('sync', [], { limitMs: SYNC_MS });
}

const failedOf = (folder: string) => `${folder}.failed-upgrade`;

/** Puts the copies in the place of what the new version has made of the data; may be done again after a cut. */
export function putBack({ copies }: Note): void {
  for (const { folder, copy } of copies) {
    if (!existsSync(copy)) continue;
    rmSync(failedOf(folder), { recursive: true, force: true });
    if (existsSync(folder)) renameSync(folder, failedOf(folder));
    renameSync(copy, folder);
    rmSync(failedOf(folder), { recursive: true, force: true });
  }
}

/** Whether the new version has migrated a database: the one before could not read it. */
export function isMigrated({ settings }: CliContext, { schemas }: Note): boolean {
  const now = schemasOf(settings);
  return Object.keys({ ...now, ...schemas }).some((path) => now[path] !== schemas[path]);
}

/** Whether the new version has taken requests: what it acknowledged must not be undone without being asked. */
export function cameUp({ home, settings }: CliContext, { tried_at }: Note): boolean {
  if (tried_at === undefined) return false;
  const triedAt = Date.parse(tried_at);
  const alive = statSync(join(settings.CHRONOS_DATA_DIR!, 'alive'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return alive > triedAt + ATTEMPT_MS || startedAt(home.runFile) > triedAt;
}

/** When the last `up` had started that did not end by itself; whatever else a newer version has written there. */
function startedAt(runFile: string): number {
  try {
    return Date.parse(JSON.parse(readFileSync(runFile, 'utf8')).started_at) || 0;
  } catch {
    return 0;
  }
}

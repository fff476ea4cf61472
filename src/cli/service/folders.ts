/**
 * The permanent location of a service's program: below the user's data folder, a folder per version, and for each service
 * a link to its version. The service file names the link, so that an upgrade is one rename.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmdirSync, rmSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { birthOf } from '../../router/providers/process-table.ts';
import type { Settings } from '../../wire/settings.ts';

export type ServiceFolders = {
  /** `reveille`, with a suffix for a home that is not the default: each home has its own service. */
  readonly name: string;
  readonly versions: string;
  /** Files of this service alone. */
  readonly own: string;
  /** The link to the folder of the running version. */
  readonly current: string;
};

const IS_WINDOWS = process.platform === 'win32';

function dataFolder(environment: Settings, platform: NodeJS.Platform): string {
  const home = environment.HOME || homedir();
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (platform === 'win32') return environment.LOCALAPPDATA || join(home, 'AppData', 'Local');
  return environment.XDG_DATA_HOME || join(home, '.local', 'share');
}

/** @param homePath the installation's home; the default home has the plain name */
export function serviceLocation(
  environment: Settings,
  homePath: string,
  platform: NodeJS.Platform = process.platform,
): ServiceFolders {
  const usual = resolve(environment.HOME || homedir(), '.reveille');
  const mark = homePath === usual ? '' : `-${createHash('sha256').update(homePath).digest('hex').slice(0, 8)}`;
  const prefix = join(dataFolder(environment, platform), 'reveille');
  const own = join(prefix, `service${mark}`);
  return {
    name: `reveille${mark}`,
    versions: join(prefix, 'versions'),
    own,
    current: join(own, 'current'),
  };
}

/** The folder of the service's version, or `undefined` without a link. */
export function currentVersion({ current }: ServiceFolders): string | undefined {
  try {
    return resolve(dirname(current), readlinkSync(current));
  } catch {
    // It does not exist, or is not a link.
    return undefined;
  }
}

/** Sets the folder of the next start, in one step. */
export function switchTo({ own, current }: ServiceFolders, folder: string): void {
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const draft = `${current}.new`;
  rmSync(draft, { force: true });
  symlinkSync(folder, draft, IS_WINDOWS ? 'junction' : 'dir');
  // Windows does not rename over a link to a folder.
  if (IS_WINDOWS) rmSync(current, { force: true });
  renameSync(draft, current);
}

/** The entries of a folder; none for a missing one. */
function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const DRAFT = /^\.new-(\d+)$/;

export const draftFolder = ({ versions }: ServiceFolders): string => join(versions, `.new-${process.pid}`);

/** Removes folders of processes that ended while they prepared a version. */
export function forgetDrafts({ versions }: ServiceFolders): void {
  for (const name of entriesOf(versions)) {
    const pid = DRAFT.exec(name)?.[1];
    if (pid !== undefined && birthOf(Number(pid)) === undefined)
      rmSync(join(versions, name), { recursive: true, force: true });
  }
}

/** Removes versions that no service uses, except the named ones, and folders that are empty then. */
export function forgetVersions({ versions, own }: ServiceFolders, kept: readonly string[] = []): void {
  const prefix = dirname(versions);
  const services = entriesOf(prefix).filter((name) => name.startsWith('service'));
  const used = new Set(
    services.map((name) => currentVersion({ current: join(prefix, name, 'current') } as ServiceFolders)).concat(kept),
  );
  for (const name of entriesOf(versions))
    if (!used.has(join(versions, name))) rmSync(join(versions, name), { recursive: true, force: true });
  for (const folder of [own, versions, prefix]) {
    try {
      rmdirSync(folder);
    } catch {
      // It is not empty, or does not exist.
    }
  }
}

/** The version in the name of a folder below `versions`. */
export const versionOf = (folder: string): string => basename(folder);

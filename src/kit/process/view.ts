/** What a program in the sandbox finds, as an ordered list of mounts, and the mechanisms that can enforce it. Pure. */
import { dirname, isAbsolute, relative } from 'node:path';

/** A folder or file that a program gets. */
export type Grant = { readonly path: string; readonly writable: boolean };

/** Another user of the system. */
export type ProgramUser = { readonly uid: number; readonly gid: number };

/** What enforces the sandbox, or why nothing does, in words that finish the sentence "programs are not isolated: …". */
export type Means =
  | { readonly kind: 'bubblewrap'; readonly path: string }
  | { readonly kind: 'seatbelt'; readonly path: string }
  | { readonly kind: 'none'; readonly why: string };

/** A closed sandbox, as a manifest declares it: programs of the system, these folders, and no network by default. */
export type Room = {
  /** Absolute folders that the program may write to. It starts in the first, which is its home. */
  readonly writable: readonly string[];
  /** Absolute files and folders that it may read, besides the programs of the system. */
  readonly readable: readonly string[];
  readonly network: boolean;
};

/** Tells a program that it runs in a closed sandbox. */
export const ROOM_VARIABLE = 'REVEILLE_ROOM';

/** A program of root owns root's files: of the system it sees programs and settings alone. */
export type Base = 'everything' | 'system';

/** All paths are real and exist. */
export type View = {
  /** What is readable at all. Nothing of it is writable. */
  readonly base: Base;
  readonly hidden: readonly { readonly path: string; readonly isFolder: boolean }[];
  readonly shown: readonly Grant[];
  /** Read-only, also below a writable folder. */
  readonly kept: readonly string[];
  /** The program's code and its libraries. Readable wherever they are, unless the place is hidden. */
  readonly tools: readonly string[];
};

/** What a path and everything below it becomes, until a longer path says otherwise. */
export type Mount = { readonly path: string; readonly as: 'hidden' | 'read' | 'write'; readonly isFolder: boolean };

/** Each program has its own, which is empty when it starts. */
export const PRIVATE_FOLDERS = ['/tmp', '/var/tmp'];

/** Whether a path is a folder, or is below it. */
export function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith('../') && !isAbsolute(way);
}

/** The mount that decides about a path. */
function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  return mounts
    .filter((mount) => isWithin(path, mount.path))
    .reduce<Mount | undefined>((best, one) => (best && best.path.length >= one.path.length ? best : one), undefined);
}

/**
 * The mounts of a view, each after those that contain it.
 *
 * A mount is attached to a path. A program that could rename a folder above it, or replace the path by a link, would
 * find hidden files at another path in its next run, or have another folder mounted writable. So every folder between a
 * writable mount and a mount below it is mounted, too: Linux neither renames nor removes a mount point.
 */
export function mountsOf({ base, hidden, shown, kept, tools }: View): Mount[] {
  const own = shown.map(({ path, writable }): Mount => ({ path, as: writable ? 'write' : 'read', isFolder: true }));
  const isOwn = (path: string) => own.some((mount) => mount.path === path);
  const private_ = PRIVATE_FOLDERS.filter((path) => !isOwn(path)).map(
    (path): Mount => ({ path, as: 'hidden', isFolder: true }),
  );
  const hiding = hidden.filter(({ path }) => !isOwn(path)).map((place): Mount => ({ ...place, as: 'hidden' }));
  const first = [...private_, ...hiding, ...own];
  const needed = tools.filter((path) => {
    const mount = mountOf(path, first);
    if (mount === undefined) return base === 'system';
    return private_.includes(mount);
  });
  const protectedPaths = kept.filter((path) => mountOf(path, first)?.as === 'write' && !isOwn(path));
  const mounts = [
    ...first,
    ...[...needed, ...protectedPaths].map((path): Mount => ({ path, as: 'read', isFolder: true })),
  ];
  const leading = new Map<string, Mount>();
  for (const { path } of mounts)
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
      if (mountOf(folder, mounts)?.as === 'write' && !mounts.some((mount) => mount.path === folder))
        leading.set(folder, { path: folder, as: 'write', isFolder: true });
  return [...new Map([...mounts, ...leading.values()].map((mount) => [mount.path, mount])).values()].sort(
    (one, other) => one.path.length - other.path.length,
  );
}

/** The view of a program in the sandbox, as an ordered list of mounts, and the mechanisms that enforce it. Pure. */
import { dirname, isAbsolute, relative } from 'node:path';

/** A folder or file that a program may use. */
export type Grant = { readonly path: string; readonly writable: boolean };

/** Another user of the system. */
export type ProgramUser = { readonly uid: number; readonly gid: number };

/** The mechanism of the sandbox, or why there is none, to complete the sentence "programs are not isolated: …". */
export type SandboxMechanism =
  | {
      readonly kind: 'bubblewrap';
      readonly path: string;
      /** It can forbid the program to make user namespaces, in which it would have capabilities: from version 0.8. */
      readonly forbidsNamespaces: boolean;
    }
  | { readonly kind: 'seatbelt'; readonly path: string }
  | { readonly kind: 'none'; readonly why: string };

/** A closed sandbox from a manifest: the system's programs, these folders, and no network by default. */
export type SandboxView = {
  /** Absolute folders that the program may write to. The first one is its home and working folder. */
  readonly writable: readonly string[];
  /** Absolute files and folders that it may read, besides the system's programs. */
  readonly readable: readonly string[];
  readonly network: boolean;
};

/** Set for a program that runs in a closed sandbox. */
export const SANDBOX_VARIABLE = 'REVEILLE_ROOM';

/** Root's programs own root's files, so they see only the system's programs and settings. */
export type Base = 'everything' | 'system';

/** All paths are real and exist. */
export type View = {
  /** The readable part of the file system. None of it is writable. */
  readonly base: Base;
  readonly hidden: readonly { readonly path: string; readonly isFolder: boolean }[];
  readonly shown: readonly Grant[];
  /** Read-only, even below a writable folder. */
  readonly kept: readonly string[];
  /** The program's code and libraries. Readable at any location that is not hidden. */
  readonly tools: readonly string[];
};

/** Access to a path and everything below it, unless a longer path overrides it. */
export type Mount = { readonly path: string; readonly as: 'hidden' | 'read' | 'write'; readonly isFolder: boolean };

/** Each program has its own, initially empty. */
export const PRIVATE_FOLDERS = ['/tmp', '/var/tmp'];

/** Whether a path is a folder or is below it. */
export function isWithin(path: string, folder: string): boolean {
  const relativePath = relative(folder, path);
  return relativePath !== '..' && !relativePath.startsWith('../') && !isAbsolute(relativePath);
}

/** The mount that decides about a path: the longest that contains it. */
function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  return mounts
    .filter((mount) => isWithin(path, mount.path))
    .reduce<Mount | undefined>((best, one) => (best && best.path.length >= one.path.length ? best : one), undefined);
}

/**
 * The mounts of a view, outer mounts before inner ones.
 *
 * A mount is attached to a path. A program could rename a parent folder, or replace the path by a link. In its next
 * run, it would then find hidden files at another path, or have another folder mounted writable. Every folder between a
 * writable mount and a mount below it is therefore mounted too: Linux neither renames nor removes a mount point.
 */
export function mountsOf({ base, hidden, shown, kept, tools }: View): Mount[] {
  const own = shown.map(({ path, writable }): Mount => ({ path, as: writable ? 'write' : 'read', isFolder: true }));
  const isOwn = (path: string) => own.some((mount) => mount.path === path);
  const private_ = PRIVATE_FOLDERS.filter((path) => !isOwn(path)).map(
    (path): Mount => ({ path, as: 'hidden', isFolder: true }),
  );
  const hiding = hidden.filter(({ path }) => !isOwn(path)).map((mount): Mount => ({ ...mount, as: 'hidden' }));
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

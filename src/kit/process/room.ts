/**
 * A room: what a program needs to run, read-only, folders of its own to work in, and nothing else. Where walls hide what
 * is ours (`separation.ts`), a room shows what is the program's: commands that a model wrote find no home, no keys and,
 * unless told, no network in it.
 */
import { lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isWithin } from './view.ts';

export type Room = {
  /** Absolute folders that it may write to; it starts in the first, which is its home. */
  readonly writable: readonly string[];
  /** Absolute files and folders that it may read, besides the programs of the system. */
  readonly readable: readonly string[];
  readonly network: boolean;
};

/** Tells a program that it runs in a room. */
export const ROOM_VARIABLE = 'REVEILLE_ROOM';

/** Programs, their libraries, and settings of the system. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store', '/etc'];
/** Secrets of the system lie here, where root alone may read. */
const SETTINGS = '/etc';

function realOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function systemMounts(): string[] {
  return SYSTEM.flatMap((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
  });
}

/** What other users may not read, below a folder. */
function unreadable(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isSymbolicLink()) return [];
    if (found.isDirectory()) return (found.mode & 0o5) === 0o5 ? unreadable(path) : ['--tmpfs', path];
    return (found.mode & 0o4) === 0 ? ['--ro-bind', '/dev/null', path] : [];
  });
}

/** A program of root's reads everything: what only root may read is taken away. */
const hiddenSettings = () => (process.geteuid?.() === 0 ? unreadable(SETTINGS) : []);

/** Names are looked up by a file that may lead out of what is shown. */
function resolverMounts(): string[] {
  const real = realOrUndefined('/etc/resolv.conf');
  return real?.startsWith('/run/') ? ['--ro-bind', dirname(real), dirname(real)] : [];
}

/** A folder inside another one is mounted after it, so that its own word counts. */
function ownMounts({ writable, readable }: Room, hidden: readonly string[]): string[] {
  const within = hidden.filter((path) => writable.some((own) => own !== path && isWithin(path, own)));
  const mounts = [
    ...readable.map((path) => ['--ro-bind-try', path, path]),
    ...writable.map((path) => ['--bind', realOrUndefined(path) ?? path, path]),
    ...within.flatMap((path) => {
      const isFolder = lstatSync(path, { throwIfNoEntry: false })?.isDirectory();
      return isFolder === undefined ? [] : [isFolder ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]];
    }),
  ];
  return mounts.sort((one, other) => one.at(-1)!.length - other.at(-1)!.length).flat();
}

/**
 * The command that runs a program in a room. Looks at the disk, and changes nothing.
 *
 * @param hidden what no program sees, also where it lies below a folder of the room
 */
export function roomCommand(
  bubblewrap: string,
  room: Room,
  hidden: readonly string[],
  command: readonly string[],
): string[] {
  const { writable, network } = room;
  const home = writable[0]!;
  return [
    bubblewrap,
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', ...(network ? [] : ['--unshare-net'])],
    ...['--cap-drop', 'ALL', '--new-session', ...systemMounts(), ...hiddenSettings()],
    ...['--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--tmpfs', '/run', ...(network ? resolverMounts() : [])],
    ...ownMounts(room, hidden),
    ...['--setenv', 'HOME', home, '--setenv', 'TMPDIR', '/tmp', '--unsetenv', 'XDG_CACHE_HOME', '--chdir', home],
    ...['--setenv', ROOM_VARIABLE, '1'],
    '--',
    ...command,
  ];
}

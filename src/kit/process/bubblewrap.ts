/**
 * The sandbox on Linux: bubblewrap gives a program mounts and process numbers of its own. The system is mounted
 * read-only, hidden folders are empty, and no process outside can be seen, signalled or traced.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { type Base, isWithin, type Means, mountsOf, PRIVATE_FOLDERS, type ProgramUser, type View } from './view.ts';

/** A machine under load may take this long to start a program. */
const PROBE_LIMIT_MS = 10_000;
/** Where daemons of the system listen. */
const RUNTIME_FOLDER = '/run';
/** The folders that are searched where there is no `PATH`, as in some services. */
const USUAL_FOLDERS = ['/usr/bin', '/usr/local/bin', '/bin'];
/** What programs use of `/dev` besides what every one has: graphics for models, sound. Terminals and disks stay out. */
const DEVICES = ['/dev/dri', '/dev/kfd', '/dev/accel', '/dev/snd', '/dev/nvidia0', '/dev/nvidiactl', '/dev/nvidia-uvm'];
/** Programs, their libraries, and settings of the system. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store', '/gnu/store'];
/** Where secrets of the system are, among settings that programs need. */
const SETTINGS = '/etc';
/** Programs of NixOS. */
const RUNTIME_PROGRAMS = ['/run/current-system', '/run/wrappers'];
/** The user that a program of root is inside. Every system knows it as `nobody`. */
const UNPRIVILEGED = '65534';

/** Whether a program that we start owns the files of root. */
const isRoots = (user: ProgramUser | undefined) => user === undefined && process.geteuid?.() === 0;

/** What is readable for programs that we start: of root's files only the system's. */
export const baseFor = (user: ProgramUser | undefined): Base => (isRoots(user) ? 'system' : 'everything');

function realOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** A folder, or the link that it is. */
function readOnly(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** What other users may not read, below a folder. */
function unreadable(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isSymbolicLink()) return [];
    if (found.isDirectory())
      return (found.mode & 0o5) === 0o5 ? unreadable(path) : ['--tmpfs', path, '--remount-ro', path];
    return (found.mode & 0o4) === 0 ? ['--ro-bind', '/dev/null', path] : [];
  });
}

/** The resolver's file may be a link that leads into the runtime folder. */
function resolverMounts(): string[] {
  const real = realOrUndefined('/etc/resolv.conf');
  return real !== undefined && isWithin(real, RUNTIME_FOLDER) ? ['--ro-bind', dirname(real), dirname(real)] : [];
}

/**
 * A new `/proc` shows the program's own processes. Its other files let root change the kernel, and every user the
 * settings of the namespaces: they are read-only. The kernel mounts no `/proc` inside a sandbox with such mounts, so a
 * program that builds sandboxes of its own does without them; it never runs as root.
 */
function processMounts(nests: boolean): string[] {
  if (nests) return ['--proc', '/proc'];
  const mounts = readdirSync('/proc').flatMap((name) => {
    const path = join('/proc', name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || /^\d+$/.test(name) || found.isSymbolicLink()) return [];
    if (name === 'kcore') return ['--ro-bind', '/dev/null', path];
    return found.isDirectory() || (found.mode & 0o222) !== 0 ? ['--ro-bind-try', path, path] : [];
  });
  return ['--proc', '/proc', ...mounts];
}

/**
 * Mounts a folder with what is in it now, read-only, but for some of it. What is mounted over a file or a socket goes
 * when that is replaced or removed, as container engines do at each start, and nothing can cover a file that does not
 * exist yet. So a program sees the entries that existed when it started; in folders below, it sees every change.
 */
export function asItIsNow(folder: string, without: readonly string[]): string[] {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  const mounts = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = without.includes(path) ? undefined : lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind-try', path, path];
  });
  return ['--tmpfs', folder, ...mounts, '--remount-ro', folder];
}

/** Of what a program cannot be given away: other processes, shared memory, terminals, capabilities. */
function isolation(ofRoot: boolean, network: boolean): string[] {
  return [
    ...['--unshare-pid', '--unshare-ipc', '--cap-drop', 'ALL'],
    ...(ofRoot ? ['--unshare-user', '--uid', UNPRIVILEGED, '--gid', UNPRIVILEGED] : []),
    ...(network ? [] : ['--unshare-net']),
  ];
}

/**
 * The mounts that every program has. A terminal of the user is a device, so `/dev` is a new one: a program that writes
 * to it could draw a question of its own.
 */
function baseMounts(
  base: Base,
  { ofRoot, network, nests }: { ofRoot: boolean; network: boolean; nests: boolean },
  withoutFiles: readonly string[],
): string[] {
  const system = [...SYSTEM.flatMap(readOnly), ...readOnly(SETTINGS), ...(ofRoot ? unreadable(SETTINGS) : [])];
  return [
    ...(base === 'everything' ? ['--ro-bind', '/', '/'] : system),
    ...['--dev', '/dev', ...(network ? DEVICES.flatMap((path) => ['--dev-bind-try', path, path]) : [])],
    ...['--tmpfs', '/dev/shm', '--remount-ro', '/dev', ...processMounts(nests && !ofRoot)],
    ...PRIVATE_FOLDERS.filter((path) => base === 'system' || statSync(path, { throwIfNoEntry: false })).flatMap(
      (path) => ['--tmpfs', path],
    ),
    ...(base === 'everything'
      ? asItIsNow(RUNTIME_FOLDER, withoutFiles)
      : ['--tmpfs', RUNTIME_FOLDER, ...RUNTIME_PROGRAMS.flatMap(readOnly), ...(network ? resolverMounts() : [])]),
    ...(base === 'system' && ofRoot && network ? ['--ro-bind-try', '/sys', '/sys'] : []),
  ];
}

export type BubblewrapOptions = {
  /** Whom the program runs as; as us without it. */
  readonly user?: ProgramUser | undefined;
  /** It has one unless this is `false`. */
  readonly network?: boolean;
  /** It builds sandboxes of its own; not possible for a program of root. */
  readonly nests?: boolean;
  /** A folder that exists inside although it is not shown. */
  readonly home?: string | undefined;
  /** Where it starts; where bubblewrap is started without it. */
  readonly cwd?: string | undefined;
  readonly variables?: Readonly<Record<string, string>>;
  readonly withoutVariables?: readonly string[];
};

/** The command that runs a program with a view of its own. Reads the disk and changes nothing. */
export function bubblewrapCommand(
  bubblewrap: string,
  view: View,
  command: readonly string[],
  options: BubblewrapOptions = {},
): string[] {
  const { user, network = true, nests = false, home, cwd, variables = {}, withoutVariables = [] } = options;
  const { base, hidden } = view;
  const ofRoot = isRoots(user);
  const files = hidden.flatMap(({ path, isFolder }) => (isFolder ? [] : [path]));
  const mounts = mountsOf(view).filter(({ path }) => !PRIVATE_FOLDERS.includes(path));
  const isVisible = (path: string) =>
    base === 'everything' ||
    [...SYSTEM, SETTINGS, ...PRIVATE_FOLDERS].some((folder) => isWithin(path, folder)) ||
    view.shown.some((own) => isWithin(path, own.path));
  return [
    bubblewrap,
    ...isolation(ofRoot, network),
    ...baseMounts(base, { ofRoot, network, nests }, files),
    ...(home === undefined || base === 'everything' ? [] : ['--dir', home]),
    ...mounts.flatMap(({ path, as, isFolder }) => {
      if (as === 'write') return ['--bind-try', path, path];
      if (as === 'read') return ['--ro-bind-try', path, path];
      if (!isVisible(path)) return [];
      if (isFolder) return ['--tmpfs', path];
      return dirname(path) === RUNTIME_FOLDER ? [] : ['--ro-bind-try', '/dev/null', path];
    }),
    // A write there would be lost with the program: it fails instead.
    ...mounts.flatMap(({ path, as, isFolder }) =>
      as === 'hidden' && isFolder && isVisible(path) ? ['--remount-ro', path] : [],
    ),
    ...(base === 'system' ? ['--remount-ro', RUNTIME_FOLDER, '--remount-ro', '/'] : []),
    ...(cwd === undefined ? [] : ['--chdir', cwd]),
    ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
    ...withoutVariables.flatMap((name) => ['--unsetenv', name]),
    '--',
    ...command,
  ];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Finds bubblewrap and tries it: it may be installed, and namespaces forbidden. */
async function probe(path: string | undefined, user: ProgramUser | undefined): Promise<Means> {
  const folders = path ? path.split(delimiter).filter((folder) => isAbsolute(folder)) : USUAL_FOLDERS;
  const found = folders.map((folder) => join(folder, 'bwrap')).find(isExecutable);
  if (found === undefined) return { kind: 'none', why: 'bubblewrap is not installed (apt-get install bubblewrap)' };
  const view: View = { base: baseFor(user), hidden: [], shown: [], kept: [], tools: [] };
  const [program, ...words] = bubblewrapCommand(found, view, ['/bin/sh', '-c', ':'], { user, cwd: '/' });
  const failure = await new Promise<string | undefined>((resolve) => {
    execFile(program!, words, { timeout: PROBE_LIMIT_MS, env: {}, cwd: '/', ...user }, (error, _stdout, stderr) =>
      resolve(error === null ? undefined : stderr.trim().split('\n')[0] || error.message.split('\n')[0]),
    );
  });
  if (failure === undefined) return { kind: 'bubblewrap', path: found };
  return { kind: 'none', why: `${found} cannot be used here (${failure}); the system may forbid user namespaces` };
}

const probes = new Map<string, Promise<Means>>();

/** What {@link probe} found for this `PATH` and user, once for the whole process. */
export function probeBubblewrap(path: string | undefined, user?: ProgramUser): Promise<Means> {
  const key = JSON.stringify([path, user]);
  let means = probes.get(key);
  if (!means) {
    means = probe(path, user);
    probes.set(key, means);
  }
  return means;
}

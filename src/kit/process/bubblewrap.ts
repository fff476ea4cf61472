/**
 * The sandbox on Linux: bubblewrap gives a program its own mounts and process numbers. The system is mounted read-only,
 * hidden folders are empty, and outside processes cannot be seen, signalled or traced.
 */
import { execFile } from 'node:child_process';
import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { processInfo, sendSignal } from './process-info.ts';
import { isExecutable, realOrUndefined } from './tools.ts';
import {
  type Base,
  isWithin,
  mountsOf,
  PRIVATE_FOLDERS,
  type ProgramUser,
  type SandboxMechanism,
  type View,
} from './view.ts';

/** A loaded machine may take this long to start a program. */
const PROBE_LIMIT_MS = 10_000;
/** Folder with the sockets of system daemons. */
const RUNTIME_FOLDER = '/run';
/** Folders that are searched if `PATH` is unset, as in some services. */
const USUAL_FOLDERS = ['/usr/bin', '/usr/local/bin', '/bin'];
/** Devices for graphics and sound, besides the standard ones. Terminals and disks are excluded. */
const DEVICES = ['/dev/dri', '/dev/kfd', '/dev/accel', '/dev/snd', '/dev/nvidia0', '/dev/nvidiactl', '/dev/nvidia-uvm'];
/** Programs and their libraries. */
export const SYSTEM_FOLDERS = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/opt',
  '/nix/store',
  '/gnu/store',
];
/** System settings that programs need; some files contain secrets. */
const SETTINGS = '/etc';
/** Program folders of NixOS. */
const RUNTIME_PROGRAMS = ['/run/current-system', '/run/wrappers'];
/** The user id of root's programs inside the sandbox; `nobody` on every system. */
const UNPRIVILEGED = '65534';

/** Whether a started program would own root's files. */
const isRoots = (user: ProgramUser | undefined) => user === undefined && process.geteuid?.() === 0;

/** Readable files of a started program: for root, only the system's. */
export const baseFor = (user: ProgramUser | undefined): Base => (isRoots(user) ? 'system' : 'everything');

/** Mounts a folder read-only, or recreates the link. */
function readOnly(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Mounts over the files below a folder that other users may not read. */
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

/** The resolver's file may be a link into the runtime folder. */
function resolverMounts(): string[] {
  const real = realOrUndefined('/etc/resolv.conf');
  return real !== undefined && isWithin(real, RUNTIME_FOLDER) ? ['--ro-bind', dirname(real), dirname(real)] : [];
}

/**
 * A new `/proc` shows only the program's own processes. Its other files are mounted read-only, because root could
 * change the kernel there, and every user the settings of the namespaces. In such a sandbox the kernel refuses another
 * `/proc`. A program that builds its own sandboxes therefore does not get these mounts; it never runs as root.
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
 * Mounts the current entries of a folder read-only, except some. A mount over a file or socket disappears when that is
 * replaced, as container engines do at each start, and a file that does not exist yet cannot be covered. The program
 * therefore sees the entries that existed at its start. In subfolders, it sees every change.
 */
export function currentEntryMounts(folder: string, without: readonly string[]): string[] {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  const mounts = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = without.includes(path) ? undefined : lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind-try', path, path];
  });
  return ['--tmpfs', folder, ...mounts, '--remount-ro', folder];
}

/** Isolation from other processes, shared memory, terminals and capabilities. */
function isolation(ofRoot: boolean, network: boolean, forbidsNamespaces: boolean): string[] {
  return [
    ...['--unshare-pid', '--unshare-ipc', '--cap-drop', 'ALL'],
    ...(ofRoot || forbidsNamespaces ? ['--unshare-user'] : []),
    ...(ofRoot ? ['--uid', UNPRIVILEGED, '--gid', UNPRIVILEGED] : []),
    ...(forbidsNamespaces ? ['--disable-userns'] : []),
    ...(network ? [] : ['--unshare-net']),
  ];
}

/**
 * The mounts of every program. `/dev` is a new one without the user's terminal, because a program that writes to the
 * terminal could display a fake question.
 */
function baseMounts(
  base: Base,
  { ofRoot, network, nests }: { ofRoot: boolean; network: boolean; nests: boolean },
  withoutFiles: readonly string[],
): string[] {
  const system = [...SYSTEM_FOLDERS.flatMap(readOnly), ...readOnly(SETTINGS), ...(ofRoot ? unreadable(SETTINGS) : [])];
  return [
    ...(base === 'everything' ? ['--ro-bind', '/', '/'] : system),
    ...['--dev', '/dev', ...(network ? DEVICES.flatMap((path) => ['--dev-bind-try', path, path]) : [])],
    ...['--tmpfs', '/dev/shm', '--remount-ro', '/dev', ...processMounts(nests && !ofRoot)],
    ...PRIVATE_FOLDERS.filter((path) => base === 'system' || statSync(path, { throwIfNoEntry: false })).flatMap(
      (path) => ['--tmpfs', path],
    ),
    ...(base === 'everything'
      ? currentEntryMounts(RUNTIME_FOLDER, withoutFiles)
      : ['--tmpfs', RUNTIME_FOLDER, ...RUNTIME_PROGRAMS.flatMap(readOnly), ...(network ? resolverMounts() : [])]),
    ...(base === 'system' && ofRoot && network ? ['--ro-bind-try', '/sys', '/sys'] : []),
  ];
}

export type BubblewrapOptions = {
  /** The user that the program runs as; by default this process's. */
  readonly user?: ProgramUser | undefined;
  /** Network access; only `false` disables it. */
  readonly network?: boolean;
  /** Whether the program builds its own sandboxes; not possible for root's programs. */
  readonly nests?: boolean;
  /** Whether it may make no user namespaces; bubblewrap must be able to forbid it. */
  readonly forbidsNamespaces?: boolean;
  /** Whether it ends with this process, also if that is killed. */
  readonly endsWithParent?: boolean;
  /** A folder that exists inside, although its content is not shown. */
  readonly home?: string | undefined;
  /** The working folder; by default that of bubblewrap. */
  readonly cwd?: string | undefined;
  readonly variables?: Readonly<Record<string, string>>;
  readonly withoutVariables?: readonly string[];
};

/** The command that runs a program with its own view. Reads the disk and changes nothing. */
export function bubblewrapCommand(
  bubblewrap: string,
  view: View,
  command: readonly string[],
  options: BubblewrapOptions = {},
): string[] {
  const { user, network = true, nests = false, endsWithParent = false, forbidsNamespaces = false } = options;
  const { home, cwd, variables = {}, withoutVariables = [] } = options;
  const { base, hidden } = view;
  const ofRoot = isRoots(user);
  const files = hidden.flatMap(({ path, isFolder }) => (isFolder ? [] : [path]));
  const mounts = mountsOf(view).filter(({ path }) => !PRIVATE_FOLDERS.includes(path));
  const isVisible = (path: string) =>
    base === 'everything' ||
    [...SYSTEM_FOLDERS, SETTINGS, ...PRIVATE_FOLDERS].some((folder) => isWithin(path, folder)) ||
    view.shown.some((own) => isWithin(path, own.path));
  return [
    bubblewrap,
    ...(endsWithParent ? ['--die-with-parent'] : []),
    ...isolation(ofRoot, network, forbidsNamespaces),
    ...baseMounts(base, { ofRoot, network, nests }, files),
    ...(home === undefined || base === 'everything' ? [] : ['--dir', home]),
    ...mounts.flatMap(({ path, as, isFolder }) => {
      if (as === 'write') return ['--bind-try', path, path];
      if (as === 'read') return ['--ro-bind-try', path, path];
      if (!isVisible(path)) return [];
      if (isFolder) return ['--tmpfs', path];
      return dirname(path) === RUNTIME_FOLDER ? [] : ['--ro-bind-try', '/dev/null', path];
    }),
    // A write to a hidden folder would be lost at the program's end, so it must fail.
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

/** Finds and tests bubblewrap: it may be installed while namespaces are forbidden. */
async function probe(path: string | undefined, user: ProgramUser | undefined): Promise<SandboxMechanism> {
  const folders = path ? path.split(delimiter).filter((folder) => isAbsolute(folder)) : USUAL_FOLDERS;
  const found = folders.map((folder) => join(folder, 'bwrap')).find(isExecutable);
  if (found === undefined) return { kind: 'none', why: 'bubblewrap is not installed (apt-get install bubblewrap)' };
  const view: View = { base: baseFor(user), hidden: [], shown: [], kept: [], tools: [] };
  const failureOf = (forbidsNamespaces: boolean) => {
    const options = { user, cwd: '/', forbidsNamespaces };
    const [program, ...args] = bubblewrapCommand(found, view, ['/bin/sh', '-c', ':'], options);
    return new Promise<string | undefined>((resolve) => {
      execFile(program!, args, { timeout: PROBE_LIMIT_MS, env: {}, cwd: '/', ...user }, (error, _stdout, stderr) =>
        resolve(error === null ? undefined : stderr.trim().split('\n')[0] || error.message.split('\n')[0]),
      );
    });
  };
  for (const forbidsNamespaces of [true, false])
    if ((await failureOf(forbidsNamespaces)) === undefined)
      return { kind: 'bubblewrap', path: found, forbidsNamespaces };
  const failure = await failureOf(false);
  return { kind: 'none', why: `${found} cannot be used here (${failure}); the system may forbid user namespaces` };
}

const probes = new Map<string, Promise<SandboxMechanism>>();

/** The result of {@link probe} for this `PATH` and user, cached for the process's life. */
export function probeBubblewrap(path: string | undefined, user?: ProgramUser): Promise<SandboxMechanism> {
  const key = JSON.stringify([path, user]);
  let means = probes.get(key);
  if (!means) {
    means = probe(path, user);
    probes.set(key, means);
  }
  return means;
}

// Ends a program that bubblewrap runs. Bubblewrap leads the process group, waits for the program and returns its exit
// status. SIGTERM would end bubblewrap at once: the program would get no time to stop, and its exit status would be
// lost. The signal is therefore sent to each process of the group except bubblewrap. Bubblewrap cannot ignore the
// signal, because its children would inherit that.

/** The name of bubblewrap's processes: the outer one, and the first one inside. */
const BUBBLEWRAP = 'bwrap';

/** Whether bubblewrap leads a process group. */
export function isLedByBubblewrap(leader: number): boolean {
  return processInfo(leader)?.name === BUBBLEWRAP;
}

/**
 * Sends a signal to every process of a group except bubblewrap's. A bubblewrap without a program yet is killed.
 *
 * @param leader the group's leader, a child of this process
 */
export function signalBubblewrapGroup(leader: number, signal: NodeJS.Signals): void {
  let found = false;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const info = processInfo(entry);
    if (info?.group !== leader || info.name === BUBBLEWRAP || info.state === 'Z') continue;
    found = true;
    sendSignal(Number(entry), signal);
  }
  if (!found) sendSignal(-leader, 'SIGKILL');
}

/**
 * Bubblewrap reports an end by a signal as a shell does. 130 is omitted, because programs exit with it themselves when
 * interrupted.
 */
const BY_SIGNAL: Readonly<Record<number, NodeJS.Signals>> = Object.fromEntries(
  (['SIGTERM', 'SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGHUP', 'SIGXCPU'] as const).map(
    (name) => [128 + constants.signals[name], name],
  ),
);

/** How the program ended, from the end of the process that was started for it. */
export function exitOf(
  code: number | null,
  signal: NodeJS.Signals | null,
  viaBubblewrap: boolean,
): { code: number } | { signal: NodeJS.Signals } {
  const by = signal ?? (viaBubblewrap && code !== null ? BY_SIGNAL[code] : undefined);
  return by === undefined ? { code: code ?? 0 } : { signal: by };
}

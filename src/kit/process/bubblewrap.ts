/**
 * Walls on Linux: bubblewrap gives a program mounts and process numbers of its own. What is hidden is an empty folder
 * or file there, what is granted below it is put back, and no process outside can be seen, signalled or traced.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { leadingTo, type Means, type ProgramUser, type View } from './view.ts';

/** A machine under load may take this long to start a program. */
const PROBE_LIMIT_MS = 10_000;
/** Where daemons of the system listen. */
const RUNTIME_FOLDER = '/run';
/** Every program has this place anew. */
const isOwnMount = (path: string) => path === RUNTIME_FOLDER || /^\/(?:dev|proc|sys)(?:\/|$)/.test(path);
/** The folders that are searched where there is no `PATH`, as in some services. */
const USUAL_FOLDERS = ['/usr/bin', '/usr/local/bin', '/bin'];
/** What programs use of `/dev` besides what every one has: graphics for models, sound. Terminals and disks stay out. */
const DEVICES = ['/dev/dri', '/dev/kfd', '/dev/accel', '/dev/snd', '/dev/nvidia0', '/dev/nvidiactl', '/dev/nvidia-uvm'];

/**
 * The mounts that every program has. A terminal of the person is a device, so `/dev` is a new one: a program that
 * writes to it could draw a question of its own. As root, with all capabilities dropped, what the kernel offers to its
 * user still has to be kept.
 */
function base(user: ProgramUser | undefined): string[] {
  return [
    ...['--unshare-pid', '--cap-drop', 'ALL', '--dev-bind', '/', '/', '--dev', '/dev'],
    ...DEVICES.flatMap((path) => ['--dev-bind-try', path, path]),
    ...['--proc', '/proc'],
    ...(user === undefined && process.geteuid?.() === 0 ? ['--ro-bind-try', '/sys', '/sys'] : []),
  ];
}

/**
 * Mounts a folder with what is in it now, but for some of it. What is mounted over a file or a socket goes when that is
 * replaced or removed, as container engines do at each start, and what is not there yet nobody can cover. So where such
 * things come and go, a program sees what there was when it started; in folders below, it sees every change.
 */
export function asItIsNow(folder: string, without: readonly string[]): string[] {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  const mounts = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = without.includes(path) ? undefined : lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--dev-bind-try', path, path];
  });
  return ['--tmpfs', folder, ...mounts, '--remount-ro', folder];
}

/** The command that runs a program with a view of its own. Looks at the disk, and changes nothing. */
export function bubblewrapCommand(
  bubblewrap: string,
  { hidden, shown, kept }: View,
  command: readonly string[],
  user?: ProgramUser,
): string[] {
  const isShown = (path: string) => shown.some((one) => one.path === path);
  const files = hidden.flatMap(({ path, isFolder }) => (isFolder ? [] : [path]));
  return [
    bubblewrap,
    ...base(user),
    ...asItIsNow(RUNTIME_FOLDER, files),
    // What something is mounted at can be neither moved nor removed.
    ...leadingTo({ hidden, kept }).flatMap((path) => (isOwnMount(path) ? [] : ['--dev-bind-try', path, path])),
    ...kept.flatMap((path) => ['--ro-bind-try', path, path]),
    ...hidden.flatMap(({ path, isFolder }) => {
      if (isFolder) return ['--tmpfs', path];
      return dirname(path) === RUNTIME_FOLDER ? [] : ['--ro-bind-try', '/dev/null', path];
    }),
    ...shown.flatMap(({ path, writable }) => [writable ? '--bind' : '--ro-bind', path, path]),
    // What would be written there would be lost with the program: it fails instead. A place that is shown as a whole is
    // hidden no more.
    ...hidden.flatMap(({ path, isFolder }) => (isFolder && !isShown(path) ? ['--remount-ro', path] : [])),
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

/** Finds bubblewrap and tries it: it may be there, and namespaces forbidden. */
async function probe(path: string | undefined, user: ProgramUser | undefined): Promise<Means> {
  const folders = path ? path.split(delimiter).filter((folder) => isAbsolute(folder)) : USUAL_FOLDERS;
  const found = folders.map((folder) => join(folder, 'bwrap')).find(isExecutable);
  if (found === undefined) return { kind: 'none', why: 'bubblewrap is not installed (apt-get install bubblewrap)' };
  const [program, ...words] = [
    found,
    ...base(user),
    '--tmpfs',
    '/tmp',
    '--remount-ro',
    '/tmp',
    '--',
    '/bin/sh',
    '-c',
    ':',
  ];
  const said = await new Promise<string | undefined>((resolve) => {
    execFile(program!, words, { timeout: PROBE_LIMIT_MS, env: {}, cwd: '/', ...user }, (error, _stdout, stderr) =>
      resolve(error === null ? undefined : stderr.trim().split('\n')[0] || error.message.split('\n')[0]),
    );
  });
  if (said === undefined) return { kind: 'bubblewrap', path: found };
  return { kind: 'none', why: `${found} cannot be used here (${said}); the system may forbid user namespaces` };
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

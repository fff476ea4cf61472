/**
 * A real systemd that manages a user's services, in namespaces of its own: mounts, processes and network. Everything
 * ends with its first process. It runs as after a login; only the first process of the computer is not systemd.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import type { Outcome } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { atEnd, type Owner } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';

const SYSTEMD = ['/usr/lib/systemd/systemd', '/lib/systemd/systemd'].find((path) => existsSync(path));
const GROUP = 'user.slice/user-0.slice/user@0.service';
/** The control group hierarchies in which systemd keeps its own groups. */
const HIERARCHIES = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/systemd'];

const NAMESPACES = ['--mount', '--pid', '--net', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];

/** The reason why there can be none here, as a sentence; `undefined` when there can. */
export function whyNot(): string | undefined {
  if (process.platform !== 'linux') return 'systemd is of Linux';
  const missing = needs(['systemd', 'dbus-daemon', 'unshare', 'bash']);
  if (missing !== false) return missing;
  if (SYSTEMD === undefined) return 'systemd is not in its usual folder';
  if (process.getuid?.() !== 0) return 'only root may make the namespaces for a systemd of its own';
  if (groupRoots().length === 0) return 'no control groups are mounted here for systemd';
  const mounts = groupRoots().map((root) => `umount -l ${root}\n${MOUNTS[root]}`);
  const { status, stderr } = spawnSync('unshare', [...NAMESPACES, 'bash', '-ec', mounts.join('\n')], {
    encoding: 'utf8',
  });
  return status === 0 ? undefined : `there can be no namespaces with control groups of their own here: ${stderr}`;
}

const groupRoots = () => HIERARCHIES.filter((root) => existsSync(join(root, 'cgroup.procs')));

/** The registry address of npm: no process answers there until a test starts one with {@link UserManager.run}. */
export const REGISTRY_PORT = 4873;
const REGISTRY = `http://127.0.0.1:${REGISTRY_PORT}`;

export type UserManager = {
  readonly home: string;
  readonly person: string;
  /** Runs a program beside the services. */
  run(program: string, ...args: string[]): Promise<Outcome>;
  reveille(...args: string[]): Promise<Outcome>;
  /** Ends the manager with all services, as a shutdown does, until {@link boot}. */
  shutDown(): Promise<void>;
  /** Ends everything at once, like a power cut, until {@link boot}. */
  cutPower(): Promise<void>;
  /** Starts the manager, and with it the enabled services. */
  boot(): Promise<void>;
};

/** The processes that a power cut ends: the manager, our programs, and their children. */
const CUT = 'systemd --user|reveille.mjs|npm install';

/** Where logind keeps a computer awake on request: a system bus and logind, both real. */
const LOGIND = SYSTEMD?.replace(/systemd$/, 'systemd-logind');
const BUS = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_type="method_call"/><allow receive_type="method_return"/>
<allow receive_type="error"/><allow receive_type="signal"/><allow own="*"/><allow user="*"/></policy></busconfig>
`;
export const SYSTEM_BUS = 'DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket';
/** The alarm of a hardware clock: a file, like the kernel's, on a computer that may have no such clock. */
export const WAKE_ALARM = '/sys/class/rtc/rtc0/wakealarm';

/** How each hierarchy is mounted again, so that its root is the current group. */
const MOUNTS: Readonly<Record<string, string>> = {
  '/sys/fs/cgroup': 'mount -t cgroup2 cgroup2 /sys/fs/cgroup',
  '/sys/fs/cgroup/unified': 'mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified',
  '/sys/fs/cgroup/systemd': 'mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd',
};

/** Moves into control groups of its own, and makes them the root groups. */
function enter(folder: string, mark: string): string {
  const moves = groupRoots().map((root) => `echo 0 > ${join(root, mark)}/cgroup.procs`);
  return `set -e
${moves.join('\n')}
exec unshare --cgroup bash ${folder}/inside`;
}

function inside(folder: string): string {
  const groups = groupRoots().map(
    (root) => `umount -l ${root}
${MOUNTS[root]}
mkdir -p ${join(root, GROUP)}`,
  );
  // Only the manager: the journal takes the group of the first process for the root.
  const moves = groupRoots().map((root) => `echo 0 > ${join(root, GROUP)}/cgroup.procs`);
  return `set -e
${groups.join('\n')}
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/systemd/journal /run/user/0
chmod 700 /run/user/0
mount --bind ${folder}/machine-id /etc/machine-id
mount -t tmpfs tmpfs /var/log
ip link set lo up
mount -t tmpfs tmpfs /sys/class
mkdir -p $(dirname ${WAKE_ALARM}) /run/dbus /run/systemd/inhibit /run/systemd/seats /run/systemd/users /run/systemd/sessions
touch ${WAKE_ALARM}
dbus-daemon --config-file=${folder}/bus.conf --nofork --nopidfile 2>/dev/null &
while [ ! -S /run/dbus/system_bus_socket ]; do sleep 0.05; done
${LOGIND} 2>/dev/null &
${SYSTEMD!.replace(/systemd$/, 'systemd-journald')} 2>/dev/null &
touch ${folder}/ready
while :; do
  while [ -e ${folder}/down ]; do sleep 0.05; done
  (${moves.join('; ')}; exec ${SYSTEMD} --user >/dev/null 2>&1) || true
  # What is left of its services goes with it, as systemd sees to for a user who has logged out.
  while left=$(find ${groupRoots()
    .map((root) => join(root, GROUP))
    .join(' ')} -name cgroup.procs -exec cat {} +); [ -n "$left" ]; do kill -9 $left || true; sleep 0.05; done
  rm -rf /run/user/0/*
  touch ${folder}/ended
done`;
}

/** Removes the control groups that systemd has left empty. */
function removeGroups(mark: string): void {
  const remove = (folder: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) remove(join(folder, entry.name));
    rmdirSync(folder);
  };
  for (const root of groupRoots()) if (existsSync(join(root, mark))) remove(join(root, mark));
}

/** @param folder for the person's home, the installation and the files of the test */
export async function startUserManager(owner: Owner, folder: string): Promise<UserManager> {
  const mark = `reveille-test-${process.pid}`;
  const person = join(folder, 'person');
  const home = join(person, '.reveille');
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'machine-id'), `${'5'.repeat(32)}\n`);
  for (const root of groupRoots()) mkdirSync(join(root, mark));
  writeFileSync(join(folder, 'inside'), inside(folder));
  writeFileSync(join(folder, 'bus.conf'), BUS);
  const env = {
    PATH: process.env.PATH!,
    HOME: person,
    // The repository itself may be in the system's temporary folder, from which no service is created.
    TMPDIR: temporary,
    XDG_RUNTIME_DIR: '/run/user/0',
    TZ: 'Europe/Berlin',
    REVEILLE_APPROVER_STORE: 'file',
    npm_config_registry: REGISTRY,
    npm_config_fetch_retries: '0',
  };
  const outer = spawn('unshare', [...NAMESPACES, 'bash', '-c', enter(folder, mark)], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  outer.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const closed = new Promise((resolve) => outer.once('close', resolve));
  atEnd(owner, async () => {
    outer.kill('SIGKILL');
    await closed;
    await eventually('the control groups are empty', () => {
      try {
        removeGroups(mark);
        return true;
      } catch {
        return false;
      }
    });
  });
  await eventually('the namespaces exist', () => {
    if (outer.exitCode !== null) throw new Error(`unshare ended: ${output}`);
    return existsSync(join(folder, 'ready'));
  });
  const inner = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8').trim().split(' ')[0]!;
  // Only services call logind: without the system's systemd its other requests are slow.
  const bus = { DBUS_SYSTEM_BUS_ADDRESS: 'unix:path=/nowhere' };
  const run = (program: string, ...args: string[]) =>
    new Promise<Outcome>((resolve) => {
      const there = ['--target', inner, '--mount', '--pid', '--net', '--cgroup', '--', program, ...args];
      const child: ChildProcess = execFile(
        'nsenter',
        there,
        { env: { ...env, ...bus }, encoding: 'utf8' },
        (_, stdout, stderr) => resolve({ status: child.exitCode, stdout, stderr }),
      );
    });
  const isUp = async () => /running|degraded/.test((await run('systemctl', '--user', 'is-system-running')).stdout);
  await eventually('systemd has started', isUp);
  return {
    home,
    person,
    run,
    reveille: (...args) => run(process.execPath, PROGRAM, ...args),
    async shutDown() {
      writeFileSync(join(folder, 'down'), '');
      await run('systemctl', '--user', 'exit');
      await eventually('systemd has ended', () => existsSync(join(folder, 'ended')));
    },
    async cutPower() {
      writeFileSync(join(folder, 'down'), '');
      // All processes except those of the simulated computer: the first process, its child, and the journal.
      await run('bash', '-c', `kill -9 $(pgrep -f '${CUT}') || true`);
      await eventually('all has ended', () => existsSync(join(folder, 'ended')));
    },
    async boot() {
      for (const name of ['ended', 'down']) rmSync(join(folder, name), { force: true });
      await eventually('systemd has started', isUp);
    },
  };
}

/**
 * A hostile program for the sandbox: tries to create a file in every folder of the system, to open files for writing,
 * to reach other processes, and to undo the sandbox by namespaces of its own. It prints its attempts and successes as
 * JSON. It never writes to a file that exists.
 *
 * Arguments: a JSON object with `own` (its given folders), `pid` (of a process outside), `files` (`all`, or only the
 * critical ones), `limitMs` and `mark` (part of the name of each file that it creates).
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';

export type Task = { own: string[]; pid: number; files: 'all' | 'interesting'; limitMs: number; mark: string };
export type Outcome = {
  folders: number;
  files: number;
  processes: number;
  escapes: number;
  /** The forbidden actions that succeeded. */
  through: string[];
  isComplete: boolean;
  status: Record<string, string>;
};

const task = JSON.parse(process.argv[2]!) as Task;
const end = Date.now() + task.limitMs;
const outcome: Outcome = { folders: 0, files: 0, processes: 0, escapes: 0, through: [], isComplete: true, status: {} };
/** Allowed for every program: temporary files, and its own processes. */
const isOwn = (path: string) =>
  [...task.own, '/tmp', '/var/tmp', '/dev/shm'].some((own) => path === own || path.startsWith(`${own}/`));

const INTERESTING = [
  ...['/usr/bin/git', '/usr/bin/env', '/bin/sh', '/etc/passwd', '/etc/shadow', '/etc/ld.so.preload', '/etc/crontab'],
  ...[
    '/etc/sudoers',
    '/etc/profile',
    '/etc/environment',
    '/root/.bashrc',
    '/root/.profile',
    '/root/.ssh/authorized_keys',
  ],
  ...['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches'],
  ...[
    '/proc/mtrr',
    '/proc/irq/default_smp_affinity',
    '/sys/kernel/uevent_helper',
    '/sys/power/state',
    process.execPath,
  ],
  ...['/dev/kmsg', '/dev/mem', '/dev/sda', '/dev/vda', '/dev/loop-control', '/dev/fuse', '/dev/net/tun', '/dev/tty1'],
];
const FOLDERS = [
  ...['/etc/cron.d', '/etc/systemd/system', '/root', '/root/.ssh', '/var/spool/cron', '/var/spool/cron/crontabs'],
  ...['/proc/sys', '/proc/sys/kernel', '/sys', '/dev', '/run', '/run/systemd/system', '/etc', '/usr/bin', '/'],
];

function attempt(what: string, action: () => void): void {
  try {
    action();
    outcome.through.push(what);
  } catch {
    // Refused, as expected.
  }
}

function tryFolder(folder: string): void {
  outcome.folders++;
  const name = join(folder, `.${task.mark}`);
  attempt(`create ${name}`, () => {
    closeSync(openSync(name, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY));
    unlinkSync(name);
  });
  if (task.files !== 'all') return;
  attempt(`mkdir ${name}`, () => {
    mkdirSync(name);
    rmdirSync(name);
  });
  attempt(`symlink ${name}`, () => {
    symlinkSync('/', name);
    unlinkSync(name);
  });
  // These file systems are the sandbox's own, and their roots belong to its user.
  if (!['/proc', '/dev/pts'].includes(folder))
    attempt(`chmod ${folder}`, () => chmodSync(folder, lstatSync(folder).mode & 0o7777));
}

function tryFile(path: string): void {
  outcome.files++;
  attempt(`open ${path}`, () => closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)));
}

function tryTree(folder: string): void {
  if (Date.now() > end) {
    outcome.isComplete = false;
    return;
  }
  if (isOwn(folder)) return;
  tryFolder(folder);
  let entries: import('node:fs').Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return;
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    // Its own processes are allowed.
    if (folder === '/proc' && /^\d+$/.test(entry.name)) continue;
    if (entry.isDirectory()) tryTree(path);
    else if (!isOwn(path) && (task.files === 'all' || folder.startsWith('/proc/'))) {
      // The source of a device mount is listed as a file.
      if (entry.isFile() && !/^\/dev\/(?:null|zero|full|u?random)$/.test(path)) tryFile(path);
    }
  }
}

/** Processes outside: by the process id outside, and by every number that a process may have. */
function tryProcesses(): void {
  const own = new Set(readdirSync('/proc').filter((name) => /^\d+$/.test(name)));
  for (let pid = 1; pid < 70_000; pid++) {
    if (own.has(String(pid))) continue;
    outcome.processes++;
    attempt(`signal ${pid}`, () => process.kill(pid, 0));
  }
  // A thread id is not the id of another process; the threads of this program come and go.
  const threads = new Set([...own].flatMap((pid) => readdirSync(`/proc/${pid}/task`)));
  outcome.through = outcome.through.filter((what) => !(what.startsWith('signal ') && threads.has(what.slice(7))));
  for (const file of ['environ', 'mem', 'maps', 'root/etc/passwd', 'cwd/.', 'fd/0']) {
    outcome.processes++;
    if (!own.has(String(task.pid)))
      attempt(`${file} of ${task.pid}`, () => closeSync(openSync(`/proc/${task.pid}/${file}`, 'r')));
  }
  for (const pid of own)
    attempt(`environment of ${pid}`, () => {
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').includes('SECRET_OUTSIDE')) throw new Error('its own');
    });
}

/** With a namespace of its own a program has every capability in it. Each line prints `through` when it got out. */
const ESCAPES = [
  'mount -o remount,rw /; mount -o remount,bind,rw /; : > /etc/$MARK && echo through',
  'mount -o remount,bind,rw /usr; : > /usr/$MARK && echo through',
  'mount -o remount,bind,rw /proc/sys; : >> /proc/sys/kernel/core_pattern && echo through',
  'umount -l /proc/sys; : >> /proc/sys/kernel/core_pattern && echo through',
  'umount -l /root /home /etc /; cat /etc/shadow | grep -q : && echo through',
  'mkdir /tmp/p && mount -t proc proc /tmp/p && : >> /tmp/p/sys/kernel/core_pattern && echo through',
  'mkdir /tmp/s && mount -t sysfs sysfs /tmp/s && : >> /tmp/s/kernel/uevent_helper && echo through',
  'mkdir /tmp/g && mount -t cgroup2 cgroup2 /tmp/g && : >> /tmp/g/cgroup.procs && echo through',
  'mkdir /tmp/d && mount -t devtmpfs dev /tmp/d && echo through',
  'mknod /tmp/sda b 8 0 && : >> /tmp/sda && echo through',
  'mount --bind /etc /tmp && : > /tmp/$MARK && echo through',
  'mount --bind / /tmp && mount -o remount,bind,rw /tmp && : > /tmp/etc/$MARK && echo through',
  'chroot /proc/1/root /bin/sh -c ": > /etc/$MARK" && echo through',
];

function tryEscapes(): void {
  for (const flags of ['-Urm', '-Urmpf', '-UrmCin', '-m', '-Um'])
    for (const script of ESCAPES) {
      outcome.escapes++;
      attempt(`unshare ${flags}: ${script}`, () => {
        const env = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', MARK: task.mark };
        const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
        // The shell's status is that of its last command, which fails in most of them.
        const output = execFileSync('unshare', [flags, 'sh', '-c', `${script}; :`], { env, stdio, encoding: 'utf8' });
        if (!output.includes('through')) throw new Error('refused');
      });
    }
}

for (const path of INTERESTING) tryFile(path);
for (const folder of FOLDERS) tryFolder(folder);
tryTree('/');
tryProcesses();
tryEscapes();
for (const line of readFileSync('/proc/self/status', 'utf8').split('\n')) {
  const [name, value] = line.split(':\t');
  if (/^(?:CapEff|CapPrm|NoNewPrivs|Uid)$/.test(name!)) outcome.status[name!] = value!;
}
process.stdout.write(JSON.stringify(outcome));

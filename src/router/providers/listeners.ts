/**
 * Who listens on a port of this computer's loopback address: the program that we started, with its descendants, or
 * somebody else. A port that was free when it was chosen may be anybody's a moment later
 * (docs/decisions/0020-who-listens.md).
 */
import { execFile } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import { basename } from 'node:path';
import { familyOf, processesByPs, processesOfProc } from './process-table.ts';

/**
 * `own`: nobody but the program; `sockets` names what listens, so that two answers can be compared. `stranger`:
 * somebody else, alone or beside it; `who` finishes the sentence "… listens on it". `unseen`: the system does not tell.
 */
export type Listeners =
  | { seen: 'nobody' }
  | { seen: 'own'; sockets: string }
  | { seen: 'stranger'; who: string }
  | { seen: 'unseen' };

const LISTENING = '0A';
/** The kernel looks for as many sockets as fill what is asked for, also behind the listening ones. */
const CHUNK_BYTES = 4096;

type Socket = { inode: string; uid: number };

/** The kernel writes addresses as 32-bit words in the order of the machine. */
function hexOf(...words: number[]): string {
  const swapped = (word: number) => {
    const bytes = Buffer.alloc(4);
    if (endianness() === 'LE') bytes.writeUInt32LE(word);
    else bytes.writeUInt32BE(word);
    return bytes.toString('hex').toUpperCase();
  };
  return words.map(swapped).join('');
}

const LOOPBACK = 0x7f000001;
/** Local addresses that take a connection to 127.0.0.1: itself, every address, and both in the form of IPv6. */
const ADDRESSES: Readonly<Record<string, ReadonlySet<string>>> = {
  '/proc/net/tcp': new Set([hexOf(LOOPBACK), hexOf(0)]),
  '/proc/net/tcp6': new Set([hexOf(0, 0, 0xffff, LOOPBACK), hexOf(0, 0, 0, 0)]),
};

/** The lines of listening sockets, which the kernel writes before all others: there may be many thousands of those. */
function listeningLines(path: string): string[] {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch {
    // Without IPv6 there is no such table.
    return [];
  }
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const lines: string[] = [];
    let rest = '';
    for (;;) {
      const bytes = readSync(descriptor, chunk);
      if (bytes === 0) return lines;
      const read = (rest + chunk.toString('latin1', 0, bytes)).split('\n');
      rest = read.pop()!;
      for (const line of read) {
        if (line.includes(' local_address ')) continue;
        if (line.trim().split(/\s+/)[3] !== LISTENING) return lines;
        lines.push(line);
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

/** The sockets that listen where a connection to 127.0.0.1 arrives. */
function socketsOn(port: number): Socket[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  return Object.entries(ADDRESSES).flatMap(([path, addresses]) =>
    listeningLines(path).flatMap((line) => {
      // proc_pid_net(5): sl local rem st queues timers retransmits uid timeout inode …
      const fields = line.trim().split(/\s+/);
      const [address, itsPort] = fields[1]!.split(':') as [string, string];
      return itsPort === hexPort && addresses.has(address) ? [{ inode: fields[9]!, uid: Number(fields[7]) }] : [];
    }),
  );
}

const keyOf = (sockets: readonly Socket[]) =>
  sockets
    .map(({ inode }) => inode)
    .sort()
    .join();

function holds(pid: number, descriptor: string, inode: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/${descriptor}`) === `socket:[${inode}]`;
  } catch {
    return false;
  }
}

/** The descriptor under which a process has a socket; `undefined` without one, `'hidden'` when we may not look. */
function descriptorOf(pid: number, inode: string): string | undefined {
  let descriptors: string[];
  try {
    descriptors = readdirSync(`/proc/${pid}/fd`);
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EACCES' ? 'hidden' : undefined;
  }
  return descriptors.find((descriptor) => holds(pid, descriptor, inode));
}

/** The effective user id of a process, as its status says it: the owner of its folder in /proc may be root instead. */
function uidOf(pid: number): number | undefined {
  try {
    const said = /^Uid:\t\d+\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return said === undefined ? undefined : Number(said);
  } catch {
    return undefined;
  }
}

function describe(pid: number | undefined, command: string, user: number | undefined): string {
  const name = command.replace(/[^\x21-\x7e]+/g, '?').slice(0, 40);
  const whose = user === undefined ? '' : `, user ${user}`;
  return pid === undefined ? `a program of user ${user}` : `${name || 'a program'} (pid ${pid}${whose})`;
}

function strangerOf({ inode, uid }: Socket): string {
  const pid = processesOfProc().find((one) => ![undefined, 'hidden'].includes(descriptorOf(one.pid, inode)))?.pid;
  if (pid === undefined) return describe(undefined, '', uid);
  return describe(pid, commandOf(pid), uid);
}

const INTERPRETER = /^(?:node|nodejs|bun|deno|python[\d.]*|ruby|perl)$/;

/**
 * The name of a process's program, or of the script that an interpreter runs: the system's own name for it is that of a
 * thread (`MainThread` of Node). Of the other arguments nothing is shown; they may be secret.
 */
function commandOf(pid: number): string {
  try {
    const [program = '', ...words] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
    const name = basename(program);
    const script = INTERPRETER.test(name) ? words.find((word) => word !== '' && !word.startsWith('-')) : undefined;
    if (name !== '') return basename(script ?? program);
    return readFileSync(`/proc/${pid}/comm`, 'latin1').trim();
  } catch {
    // It has ended meanwhile, or its command line is not for this user.
    return '';
  }
}

type Holder = { inode: string; pid: number; descriptor: string };

/** Looks at the ports of one program. */
export class ListenerWatch {
  readonly #leader: number;
  readonly #platform: NodeJS.Platform;
  #last: { port: number; sockets: string; holders: readonly Holder[] } | undefined;

  /** @param leader the pid that leads the program's group; whatever descends from it belongs to the program */
  constructor(leader: number, platform: NodeJS.Platform = process.platform) {
    this.#leader = leader;
    this.#platform = platform;
  }

  /** The `sockets` of the last answer about a port, when it was `own`, and as far as is known still is. */
  last(port: number): string | undefined {
    if (this.#last?.port !== port) return undefined;
    return this.#platform === 'linux' && !this.#isHeld(this.#last.holders) ? undefined : this.#last.sockets;
  }

  /** Never rejects. On Linux it is done when it returns, without a turn of the event loop. */
  async on(port: number): Promise<Listeners> {
    if (this.#platform === 'linux') return this.#byProc(port);
    return this.#platform === 'win32' ? { seen: 'unseen' } : await this.#byLsof(port);
  }

  #byProc(port: number): Listeners {
    // The kernel's tables may take milliseconds to read. A socket that was found listening and is still open holds the
    // port: nobody can take it, unless the program itself lets others of its user join (SO_REUSEPORT).
    const known = this.last(port);
    if (known !== undefined) return { seen: 'own', sockets: known };
    this.#last = undefined;
    const sockets = socketsOn(port);
    if (sockets.length === 0) return { seen: 'nobody' };
    const holders = new Map<string, Holder>();
    const foreign = () => sockets.find((socket) => !this.#isOwn(socket, holders));
    // What is not found at the first look may have been handed on just then, from one process of the program to the
    // next.
    const stranger = foreign() === undefined ? undefined : foreign();
    if (stranger) {
      if (keyOf(socketsOn(port)) !== keyOf(sockets)) return { seen: 'nobody' };
      return { seen: 'stranger', who: strangerOf(stranger) };
    }
    if (holders.size === sockets.length) this.#last = { port, sockets: keyOf(sockets), holders: [...holders.values()] };
    return { seen: 'own', sockets: keyOf(sockets) };
  }

  #isHeld(holders: readonly Holder[]): boolean {
    return holders.every(({ pid, descriptor, inode }) => holds(pid, descriptor, inode));
  }

  #isOwn({ inode, uid }: Socket, holders: Map<string, Holder>): boolean {
    const hidden: number[] = [];
    for (const pid of familyOf(this.#leader, processesOfProc())) {
      const descriptor = descriptorOf(pid, inode);
      if (descriptor === 'hidden') hidden.push(pid);
      else if (descriptor !== undefined) {
        holders.set(inode, { inode, pid, descriptor });
        return true;
      }
    }
    // Of a program that runs as another user only the system may see the files; that user's socket is then taken for
    // its own.
    return hidden.some((pid) => uidOf(pid) === uid);
  }

  async #byLsof(port: number): Promise<Listeners> {
    this.#last = undefined;
    const said = await run('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpcun']);
    if (said === undefined) return { seen: 'unseen' };
    const listening = parseLsof(said, port);
    if (listening.length === 0) return { seen: 'nobody' };
    const all = processesByPs();
    if (all === undefined) return { seen: 'unseen' };
    const family = familyOf(this.#leader, all);
    const stranger = listening.find(({ pid }) => !family.has(pid));
    if (stranger) return { seen: 'stranger', who: describe(stranger.pid, stranger.command, stranger.uid) };
    const sockets = [...new Set(listening.map(({ pid }) => pid))].sort().join();
    this.#last = { port, sockets, holders: [] };
    return { seen: 'own', sockets };
  }
}

/**
 * Who listens on a port where a connection to 127.0.0.1 arrives, from the output of `lsof -Fpcun` (one field a line,
 * its letter first; the lines of a process come before those of its files).
 */
export function parseLsof(output: string, port: number): { pid: number; command: string; uid: number | undefined }[] {
  const found: { pid: number; command: string; uid: number | undefined }[] = [];
  const here = new Set(['*', '127.0.0.1', '[::ffff:127.0.0.1]', '[::]'].map((host) => `${host}:${port}`));
  let current: { pid: number; command: string; uid: number | undefined } | undefined;
  for (const line of output.split('\n')) {
    const value = line.slice(1);
    if (line[0] === 'p') current = { pid: Number(value), command: '', uid: undefined };
    if (!current) continue;
    if (line[0] === 'c') current.command = value;
    if (line[0] === 'u') current.uid = Number(value);
    if (line[0] === 'n' && here.has(value) && !found.includes(current)) found.push(current);
  }
  return found;
}

/** What a program says; `undefined` when it cannot be run. `lsof` ends with 1 when nothing is open. */
function run(file: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(file, args, { encoding: 'utf8', timeout: 5000, env: { PATH: LSOF_PATH } }, (error, stdout) => {
      resolve(error && error.code !== 1 ? undefined : stdout);
    });
  });
}

/** Where macOS and the others keep it. */
const LSOF_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin';

/** Who listens on a port, in words, when nobody of ours does; for a refusal. */
export async function whoListens(port: number): Promise<string | undefined> {
  // No process leads group 0, so that everybody is a stranger.
  const found = await new ListenerWatch(0).on(port);
  return found.seen === 'stranger' ? found.who : undefined;
}

/**
 * Finds the owner of a listening port on the loopback address: the program that the router started, with its
 * descendants, or a foreign program. A port that was free when it was chosen may be taken a moment later
 * (docs/internals/decisions/0007-process-machines.md).
 */
import { execFile } from 'node:child_process';
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import { basename } from 'node:path';
import { processInfo, readProc } from '../../kit/process/process-info.ts';
import { systemCodeOf } from '../../wire/errors.ts';
import { processesByPs, processesOfProc, processTreeOf } from './process-table.ts';

/**
 * `own`: only the program; `sockets` identifies its listening sockets, so that two answers can be compared. `foreign`:
 * another program, alone or beside it; `owner` finishes the sentence "… listens on it". `unseen`: the system does not
 * show the owner.
 */
export type Listeners =
  | { seen: 'none' }
  | { seen: 'own'; sockets: string }
  | { seen: 'foreign'; owner: string }
  | { seen: 'unseen' };

const LISTENING = '0A';
/** The kernel fills this buffer with sockets; listening ones come first. */
const CHUNK_BYTES = 4096;

type Socket = { inode: string; uid: number };

/** The kernel writes addresses as 32-bit words in the byte order of the machine. */
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
/** Local addresses that accept a connection to 127.0.0.1: itself, the wildcard address, and the IPv6 form of both. */
const ADDRESSES: Readonly<Record<string, ReadonlySet<string>>> = {
  '/proc/net/tcp': new Set([hexOf(LOOPBACK), hexOf(0)]),
  '/proc/net/tcp6': new Set([hexOf(0, 0, 0xffff, LOOPBACK), hexOf(0, 0, 0, 0)]),
};

/** The lines of listening sockets. The kernel writes them before all others, of which there may be thousands. */
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

/** The listening sockets that accept a connection to 127.0.0.1. */
function socketsOn(port: number): Socket[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  return Object.entries(ADDRESSES).flatMap(([path, addresses]) =>
    listeningLines(path).flatMap((line) => {
      // proc_pid_net(5): sl local rem st queues timers retransmits uid timeout inode …
      const fields = line.trim().split(/\s+/);
      const [address, portHex] = fields[1]!.split(':') as [string, string];
      return portHex === hexPort && addresses.has(address) ? [{ inode: fields[9]!, uid: Number(fields[7]) }] : [];
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

/** The descriptor of a socket in a process; `undefined` without one, `'hidden'` when the router may not read it. */
function descriptorOf(pid: number, inode: string): string | undefined {
  let descriptors: string[];
  try {
    descriptors = readdirSync(`/proc/${pid}/fd`);
  } catch (thrown) {
    return systemCodeOf(thrown) === 'EACCES' ? 'hidden' : undefined;
  }
  return descriptors.find((descriptor) => holds(pid, descriptor, inode));
}

/** The effective user id of a process, from its status file. The owner of its folder in /proc may be root instead. */
function uidOf(pid: number): number | undefined {
  const uid = /^Uid:\t\d+\t(\d+)/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  return uid === undefined ? undefined : Number(uid);
}

function describe(pid: number | undefined, command: string, user: number | undefined): string {
  const name = command.replace(/[^\x21-\x7e]+/g, '?').slice(0, 40);
  const whose = user === undefined ? '' : `, user ${user}`;
  return pid === undefined ? `a program of user ${user}` : `${name || 'a program'} (pid ${pid}${whose})`;
}

function foreignOwnerOf({ inode, uid }: Socket): string {
  const pid = processesOfProc().find((one) => ![undefined, 'hidden'].includes(descriptorOf(one.pid, inode)))?.pid;
  if (pid === undefined) return describe(undefined, '', uid);
  return describe(pid, commandOf(pid), uid);
}

const INTERPRETER = /^(?:node|nodejs|bun|deno|python[\d.]*|ruby|perl)$/;

/**
 * The name of a process's program, or of the script that an interpreter runs. The system's own name is that of a thread
 * (`MainThread` of Node). Other arguments are not shown; they may be secret.
 */
function commandOf(pid: number): string {
  // Empty when it has ended meanwhile, or this user cannot read its command line.
  const [program = '', ...args] = (readProc(`${pid}/cmdline`) ?? '').split('\0');
  const name = basename(program);
  const script = INTERPRETER.test(name) ? args.find((word) => word !== '' && !word.startsWith('-')) : undefined;
  return name === '' ? (processInfo(pid)?.name ?? '') : basename(script ?? program);
}

type Holder = { inode: string; pid: number; descriptor: string };

/** Finds the listeners on the ports of one program. */
export class ListenerWatch {
  readonly #leader: number;
  readonly #platform: NodeJS.Platform;
  #last: { port: number; sockets: string; holders: readonly Holder[] } | undefined;

  /** @param leader the pid of the leader of the program's process group; all its descendants belong to the program */
  constructor(leader: number, platform: NodeJS.Platform = process.platform) {
    this.#leader = leader;
    this.#platform = platform;
  }

  /** The `sockets` of the last answer about a port, when it was `own` and has not changed since as far as known. */
  last(port: number): string | undefined {
    if (this.#last?.port !== port) return undefined;
    return this.#platform === 'linux' && !this.#isHeld(this.#last.holders) ? undefined : this.#last.sockets;
  }

  /** Never rejects. On Linux it completes without a turn of the event loop. */
  async on(port: number): Promise<Listeners> {
    if (this.#platform === 'linux') return this.#byProc(port);
    return this.#platform === 'win32' ? { seen: 'unseen' } : await this.#byLsof(port);
  }

  #byProc(port: number): Listeners {
    // Reading the kernel's tables may take milliseconds. A known listening socket that is still open holds the port. No
    // other program can take it, unless the program itself lets others of its user join (SO_REUSEPORT).
    const known = this.last(port);
    if (known !== undefined) return { seen: 'own', sockets: known };
    this.#last = undefined;
    const sockets = socketsOn(port);
    if (sockets.length === 0) return { seen: 'none' };
    const holders = new Map<string, Holder>();
    const foreign = () => sockets.find((socket) => !this.#isOwn(socket, holders));
    // A socket may be missing at the first read because it was just passed from one process of the program to the next.
    const foreignSocket = foreign() === undefined ? undefined : foreign();
    if (foreignSocket) {
      if (keyOf(socketsOn(port)) !== keyOf(sockets)) return { seen: 'none' };
      return { seen: 'foreign', owner: foreignOwnerOf(foreignSocket) };
    }
    if (holders.size === sockets.length) this.#last = { port, sockets: keyOf(sockets), holders: [...holders.values()] };
    return { seen: 'own', sockets: keyOf(sockets) };
  }

  #isHeld(holders: readonly Holder[]): boolean {
    return holders.every(({ pid, descriptor, inode }) => holds(pid, descriptor, inode));
  }

  #isOwn({ inode, uid }: Socket, holders: Map<string, Holder>): boolean {
    const hidden: number[] = [];
    for (const pid of processTreeOf(this.#leader, processesOfProc())) {
      const descriptor = descriptorOf(pid, inode);
      if (descriptor === 'hidden') hidden.push(pid);
      else if (descriptor !== undefined) {
        holders.set(inode, { inode, pid, descriptor });
        return true;
      }
    }
    // The router may not read the files of a program that runs as another user. A socket of that user then counts as
    // the program's own.
    return hidden.some((pid) => uidOf(pid) === uid);
  }

  async #byLsof(port: number): Promise<Listeners> {
    this.#last = undefined;
    const lsofOutput = await run('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpcun']);
    if (lsofOutput === undefined) return { seen: 'unseen' };
    const listening = parseLsof(lsofOutput, port);
    if (listening.length === 0) return { seen: 'none' };
    const all = processesByPs();
    if (all === undefined) return { seen: 'unseen' };
    const tree = processTreeOf(this.#leader, all);
    const foreignSocket = listening.find(({ pid }) => !tree.has(pid));
    if (foreignSocket)
      return { seen: 'foreign', owner: describe(foreignSocket.pid, foreignSocket.command, foreignSocket.uid) };
    const sockets = [...new Set(listening.map(({ pid }) => pid))].sort().join();
    this.#last = { port, sockets, holders: [] };
    return { seen: 'own', sockets };
  }
}

/**
 * The listeners on a port that accept a connection to 127.0.0.1, from the output of `lsof -Fpcun`. It has one field a
 * line, its letter first; the lines of a process precede those of its files.
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

/** The output of a program; `undefined` when it cannot be run. `lsof` exits with 1 when no file matches. */
function run(file: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(file, args, { encoding: 'utf8', timeout: 5000, env: { PATH: LSOF_PATH } }, (error, stdout) => {
      resolve(error && error.code !== 1 ? undefined : stdout);
    });
  });
}

/** The path on macOS and other systems. */
const LSOF_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin';

/** A description of the foreign listener on a port, for an error message. */
export async function foreignListenerOn(port: number): Promise<string | undefined> {
  // No process leads group 0, so every listener is foreign.
  const found = await new ListenerWatch(0).on(port);
  return found.seen === 'foreign' ? found.owner : undefined;
}

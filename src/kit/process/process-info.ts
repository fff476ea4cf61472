/** What the system reports about a process and its ancestors, and signals to a process that may have ended. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { systemCodeOf } from '../../wire/errors.ts';

/** A file below /proc (proc(5)); `undefined` without /proc, after the end of the process, and when this one may not read it. */
export function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'latin1');
  } catch {
    return undefined;
  }
}

/** The pids of all processes. @throws without /proc */
export function allPids(): number[] {
  return readdirSync('/proc').flatMap((entry) => (/^\d+$/.test(entry) ? Number(entry) : []));
}

/** `started`, in ticks since boot, distinguishes a process from later ones with the same pid. */
export type ProcessInfo = {
  readonly name: string;
  /** One letter; `Z` and `X` have ended, `T` and `t` are stopped. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly started: string;
};

/** `undefined` for a process that has ended, and without `/proc`. */
export function processInfo(pid: number | string): ProcessInfo | undefined {
  const stat = readProc(`${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the name in parentheses, which may contain any character, including parentheses.
  const end = stat.lastIndexOf(')');
  const fields = stat.slice(end + 2).split(' ');
  const name = stat.slice(stat.indexOf('(') + 1, end);
  return { name, state: fields[0]!, parent: Number(fields[1]), group: Number(fields[2]), started: fields[19]! };
}

/** @param target a process, or a group as a negative number; harmless when it has ended */
export function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (thrown) {
    // ESRCH: the target has ended. EPERM: macOS returns this for a group of zombies.
    const code = systemCodeOf(thrown);
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

// Identifies the program that started this process. A client that starts both an MCP server and a hook is the same
// process for both.

/** A process; the start time distinguishes it from later ones with the same pid. */
export type ClientProcess = { readonly pid: number; readonly started: string };

type Ancestor = ClientProcess & { readonly parent: number; readonly command: string };

/** Clients start hooks through a shell. */
const SHELL = /^-?(?:ba|da|z|k|a|fi|c|tc)?sh$/;

/** Modes in which one process serves many sessions, so that the process does not identify a session. */
const MANY_SESSIONS = /(?:^|\s)(?:--(?:experimental-)?acp|app-server|mcp-server)(?:\s|$)/;

/** Maximum of processes between a client and its child. */
const MOST_LEVELS = 6;

function onLinux(pid: number): Ancestor | undefined {
  const info = processInfo(pid);
  if (info === undefined) return undefined;
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { pid, parent: info.parent, started: info.started, command: `${info.name} ${command}` };
  } catch {
    return undefined;
  }
}

function onOthers(pid: number): Ancestor | undefined {
  try {
    const options = { encoding: 'utf8', timeout: 2000, env: { LC_ALL: 'C', PATH: '/bin:/usr/bin' } } as const;
    const line = execFileSync('ps', ['-o', 'ppid=,lstart=,ucomm=,command=', '-p', String(pid)], options);
    const [, parent, started, command] = /^ *(\d+) +(\w+ +\w+ +\d+ +[\d:]+ +\d+) +(.*)/.exec(line) ?? [];
    return parent === undefined ? undefined : { pid, parent: Number(parent), started: started!, command: command! };
  } catch {
    return undefined;
  }
}

function ancestorOf(pid: number): Ancestor | undefined {
  if (process.platform === 'win32' || pid <= 1) return undefined;
  return process.platform === 'linux' ? onLinux(pid) : onOthers(pid);
}

/**
 * The nearest ancestor of this process that is not a shell.
 *
 * @returns `undefined` if the system does not report it, and for a client process that serves many sessions
 */
export function clientProcess(): ClientProcess | undefined {
  let found = ancestorOf(process.ppid);
  for (let level = 0; found && SHELL.test(found.command.split(' ')[0]!) && level < MOST_LEVELS; level++)
    found = ancestorOf(found.parent);
  if (!found || SHELL.test(found.command.split(' ')[0]!) || MANY_SESSIONS.test(found.command)) return undefined;
  return { pid: found.pid, started: found.started };
}

/** Whether the same process still runs. */
export const isAlive = ({ pid, started }: ClientProcess): boolean => ancestorOf(pid)?.started === started;

/** What Linux reports about a process, and signals to a process that may have ended. */
import { readdirSync, readFileSync } from 'node:fs';

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
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

/** What Linux reports about a process, and signals to a process that may have ended. */
import { readFileSync } from 'node:fs';

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
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // proc(5): the second field is the name in parentheses, which may contain any character, including parentheses.
    const end = stat.lastIndexOf(')');
    const fields = stat.slice(end + 2).split(' ');
    const name = stat.slice(stat.indexOf('(') + 1, end);
    return { name, state: fields[0]!, parent: Number(fields[1]), group: Number(fields[2]), started: fields[19]! };
  } catch {
    return undefined;
  }
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

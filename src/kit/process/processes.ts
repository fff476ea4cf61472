/** Finds processes in /proc (proc(5)), where Linux shows them, and signals processes on every system. */
import { readdirSync, readFileSync } from 'node:fs';

/** A file below /proc; `undefined` without /proc, after the end of the process, and when this one may not read it. */
export function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'latin1');
  } catch {
    return undefined;
  }
}

/** `startTime` is in ticks since boot; it distinguishes a process from later ones with its pid. */
export type ProcessStat = { name: string; state: string; parent: number; group: number; startTime: string };

/** The name, state and relations of a process; `undefined` when it has ended. */
export function statOf(pid: number): ProcessStat | undefined {
  const stat = readProc(`${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name is in parentheses and may contain any character, also parentheses.
  const [state = 'X', parent, group, ...more] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
  return { name, state, parent: Number(parent), group: Number(group), startTime: more[16]! };
}

/** The pids of all processes. @throws without /proc */
export function allPids(): number[] {
  return readdirSync('/proc').flatMap((entry) => (/^\d+$/.test(entry) ? Number(entry) : []));
}

const codeOf = (thrown: unknown) => (thrown instanceof Error && 'code' in thrown ? thrown.code : undefined);

/** Sends a signal to a process, or to a group by its negative id; no effect when it has ended. */
export function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (thrown) {
    // ESRCH: the target has ended. EPERM: macOS returns this for a group of zombies.
    const code = codeOf(thrown);
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

/** Whether a process with this pid exists, perhaps another user's. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return codeOf(thrown) === 'EPERM';
  }
}

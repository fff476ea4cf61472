/** Reads /proc (proc(5)), where Linux shows its processes. Elsewhere nothing is found. */
import { readdirSync, readFileSync } from 'node:fs';

/** A file below /proc; `undefined` when the process has ended or this process may not read it. */
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

/** Reads /proc (proc(5)), where Linux shows its processes. */
import { readdirSync, readFileSync } from 'node:fs';

/** A file below /proc; `undefined` without /proc, after the end of the process, and when this one may not read it. */
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

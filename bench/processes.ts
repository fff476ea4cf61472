/** What the system says about a process. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Resident memory in MB (10⁶ bytes). */
export function residentMegabytes(pid: number): number {
  const kibibytes = Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }));
  return (kibibytes * 1024) / 1e6;
}

/** Linux counts processor time in hundredths of a second. */
const TICK_SECONDS = 0.01;

/** Processor time that a process has used, all threads, user and system, in seconds; `undefined` where the system has no /proc. */
export function processorSeconds(pid: number): number | undefined {
  try {
    // The second field, the name, may hold spaces; it ends with the last parenthesis.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_SECONDS;
  } catch {
    return undefined;
  }
}

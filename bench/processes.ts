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

/** Processor time of a process and of all that it has started, ended ones included, in seconds. */
export function descendantSeconds(pid: number): number | undefined {
  const seconds = processorSeconds(pid);
  if (seconds === undefined) return undefined;
  const ended = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ').slice(13, 15);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean);
  const of = (child: string) => processorSeconds(Number(child)) ?? 0;
  return (
    seconds +
    ended.reduce((sum, ticks) => sum + Number(ticks) * TICK_SECONDS, 0) +
    children.map(of).reduce((a, b) => a + b, 0)
  );
}

/** What a process has had written to disks so far, in bytes; `undefined` where the system does not say. */
export function writtenBytes(pid: number): number | undefined {
  return procNumber(`/proc/${pid}/io`, /^write_bytes: (\d+)/m);
}

/** The most memory that a process has had resident, in MB (10⁶ bytes); `undefined` where the system does not say. */
export function peakMegabytes(pid: number): number | undefined {
  const kibibytes = procNumber(`/proc/${pid}/status`, /^VmHWM:\s+(\d+) kB/m);
  return kibibytes === undefined ? undefined : (kibibytes * 1024) / 1e6;
}

function procNumber(path: string, pattern: RegExp): number | undefined {
  try {
    const [, digits] = pattern.exec(readFileSync(path, 'utf8')) ?? [];
    return digits === undefined ? undefined : Number(digits);
  } catch {
    return undefined;
  }
}

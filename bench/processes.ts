/** Figures of the operating system about a process. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Resident memory in MB (10⁶ bytes). */
export function residentMegabytes(pid: number): number {
  const kibibytes = Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }));
  return (kibibytes * 1024) / 1e6;
}

/** Linux counts processor time in hundredths of a second. */
const TICK_SECONDS = 0.01;

/** Processor time of a process, all threads, user and system, in seconds; `undefined` on systems without /proc. */
export function processorSeconds(pid: number): number | undefined {
  try {
    // The second field, the name, may contain spaces; it ends at the last parenthesis.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_SECONDS;
  } catch {
    return undefined;
  }
}

/** Processor time of a process and of all its children, ended ones included, in seconds. */
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

/** Bytes that a process has caused to be written to disk; `undefined` where the system does not report it. */
export function writtenBytes(pid: number): number | undefined {
  return procNumber(`/proc/${pid}/io`, /^write_bytes: (\d+)/m);
}

/** Peak resident memory of a process, in MB (10⁶ bytes); `undefined` where the system does not report it. */
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

/** Enforces the limits in the specification of a machine on its processes. */
import { execFileSync } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';
import { allPids, processInfo, readProc } from '../../kit/process/process-info.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { ProcessGroup } from './process-group.ts';
import type { ProcessLimits } from './process-spec.ts';

const MIB = 1024 * 1024;
const LOWEST_PRIORITY = 19;

/**
 * Wraps a command so that the kernel enforces the limits. A process passes them to its descendants.
 *
 * @throws ReveilleError `unavailable` when the system has no such limits
 */
export function limitedCommand(command: readonly string[], limits: ProcessLimits | undefined): readonly string[] {
  if (limits?.open_files === undefined) return command;
  if (process.platform === 'linux') return ['prlimit', `--nofile=${limits.open_files}`, '--', ...command];
  throw new ReveilleError('unavailable', 'limits.open_files works on Linux only; remove it from the specification');
}

/** Sets the priority of a new process. */
export function applyNiceness(pid: number, limits: ProcessLimits | undefined): void {
  if (!limits?.niceness) return;
  try {
    setPriority(pid, Math.min(getPriority() + limits.niceness, LOWEST_PRIORITY));
  } catch (thrown) {
    // It has ended already; its exit code is more useful.
    if (!(thrown instanceof Error) || !thrown.message.includes('ESRCH')) throw thrown;
  }
}

/** The exceeded limit of a group, as a clause; empty when it respects all. */
export function excessOf({ memoryBytes, processes }: Usage, limits: ProcessLimits): string | undefined {
  const memory = Math.ceil(memoryBytes / MIB);
  if (limits.memory_mb !== undefined && memory > limits.memory_mb)
    return `used ${memory} MiB of memory, more than its limit of ${limits.memory_mb} MiB`;
  if (limits.processes !== undefined && processes > limits.processes)
    return `had ${processes} processes, more than its limit of ${limits.processes}`;
  return undefined;
}

/** Ends the groups that exceed their limits. */
export function enforceLimits(running: Iterable<{ group: ProcessGroup; limits: ProcessLimits | undefined }>): void {
  const limited = [...running].flatMap(({ group, limits }) =>
    limits?.memory_mb === undefined && limits?.processes === undefined ? [] : [{ group, limits }],
  );
  const usage = usageOf(new Set(limited.map(({ group }) => group.pid)));
  for (const { group, limits } of limited) {
    const used = usage.get(group.pid);
    const excess = used && excessOf(used, limits);
    if (excess !== undefined) group.kill(`was ended because it ${excess}`);
  }
}

/** `memoryBytes`: resident memory; a page that two processes share counts twice. */
export type Usage = { processes: number; memoryBytes: number };

type Counted = { group: number; memoryBytes: number; isWrapper?: boolean };

function* countedOnLinux(groups: ReadonlySet<number>): Iterable<Counted> {
  for (const pid of allPids()) {
    const stat = processInfo(pid);
    if (!stat || stat.state === 'Z' || !groups.has(stat.group)) continue;
    const { name, parent, group } = stat;
    const isWrapper = name === WRAPPER && (pid === group || parent === group);
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`${pid}/status`) ?? '')?.[1] ?? '0';
    yield { group, memoryBytes: Number(kilobytes) * 1024, isWrapper };
  }
}

function* countedElsewhere(groups: ReadonlySet<number>): Iterable<Counted> {
  const listed = execFileSync('ps', ['-axo', 'pgid=,rss='], { encoding: 'utf8', timeout: 5000 });
  for (const line of listed.split('\n')) {
    const [group, kilobytes] = line.trim().split(/\s+/).map(Number);
    if (group !== undefined && groups.has(group)) yield { group, memoryBytes: (kilobytes ?? 0) * 1024 };
  }
}

/**
 * Two processes of bubblewrap wrap a program and do not count. They are known by their position, which no program can
 * take.
 */
const WRAPPER = 'bwrap';

/** Sums the usage of the processes of each group; a group without processes is absent. */
function usageOf(groups: ReadonlySet<number>): Map<number, Usage> {
  const usage = new Map<number, Usage>();
  if (groups.size === 0) return usage;
  const counted = process.platform === 'linux' ? countedOnLinux(groups) : countedElsewhere(groups);
  for (const { group, memoryBytes, isWrapper = false } of counted) {
    const before = usage.get(group) ?? { processes: 0, memoryBytes: 0 };
    usage.set(group, {
      processes: before.processes + (isWrapper ? 0 : 1),
      memoryBytes: before.memoryBytes + memoryBytes,
    });
  }
  return usage;
}

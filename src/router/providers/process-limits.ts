/** Holding processes to the limits of their machine's specification. */
import { getPriority, setPriority } from 'node:os';
import { ReveilleError } from '../../wire/errors.ts';
import type { ProcessLimits } from './process.ts';
import type { ProcessGroup } from './process-group.ts';
import { type Usage, usageOf } from './process-usage.ts';

const MIB = 1024 * 1024;
const LOWEST_PRIORITY = 19;

/**
 * The command that runs a command under the limits that the kernel holds, which a process hands down to its descendants.
 *
 * @throws ReveilleError `unavailable` where the system has no such limits
 */
export function limitedCommand(command: readonly string[], limits: ProcessLimits | undefined): readonly string[] {
  if (limits?.open_files === undefined) return command;
  if (process.platform === 'linux') return ['prlimit', `--nofile=${limits.open_files}`, '--', ...command];
  throw new ReveilleError('unavailable', 'limits.open_files works on Linux only; leave it out of the specification');
}

/** Gives a process that has just been started its priority. */
export function applyNiceness(pid: number, limits: ProcessLimits | undefined): void {
  if (!limits?.niceness) return;
  try {
    setPriority(pid, Math.min(getPriority() + limits.niceness, LOWEST_PRIORITY));
  } catch (thrown) {
    // It has ended already; its exit says more.
    if (!(thrown instanceof Error) || !thrown.message.includes('ESRCH')) throw thrown;
  }
}

/** In which way a group uses more than it may, as a clause; nothing when it does not. */
export function excessOf({ memoryBytes, processes }: Usage, limits: ProcessLimits): string | undefined {
  const memory = Math.ceil(memoryBytes / MIB);
  if (limits.memory_mb !== undefined && memory > limits.memory_mb)
    return `used ${memory} MiB of memory, more than its limit of ${limits.memory_mb} MiB`;
  if (limits.processes !== undefined && processes > limits.processes)
    return `had ${processes} processes, more than its limit of ${limits.processes}`;
  return undefined;
}

/** Ends the groups that use more than they may. */
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

/**
 * Reads the system's process table. A pid alone is not an identity, because the kernel reuses it. A pid with the
 * instant of its birth is one.
 */
import { execFileSync } from 'node:child_process';
import { allPids, processInfo, readProc } from '../../kit/process/process-info.ts';

const PROC = process.platform === 'linux';

/** Births are counted in ticks since boot, so only together with the boot they identify a process. */
const bootId = PROC ? readProc('sys/kernel/random/boot_id')?.trim() : undefined;

function linuxBirth(pid: number): string | undefined {
  const stat = processInfo(pid);
  // A zombie does not run; it waits for its parent to reap it.
  return !stat || stat.state === 'Z' || stat.state === 'X' ? undefined : `${bootId}:${stat.started}`;
}

function portableBirth(pid: number): string | undefined {
  try {
    const psOutput = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 5000,
    });
    const [state, ...started] = psOutput.trim().split(/\s+/);
    return !state || state.startsWith('Z') ? undefined : started.join(' ');
  } catch {
    // ps fails when there is no such process.
    return undefined;
  }
}

/**
 * The birth of a process, in a form that distinguishes it from others with its pid; `undefined` when it does not run.
 */
export function birthOf(pid: number): string | undefined {
  return PROC ? linuxBirth(pid) : portableBirth(pid);
}

/** Whether the process with this pid has this birth. */
export function isRunning(pid: number, birth: string): boolean {
  return birthOf(pid) === birth;
}

/** A running process that was found by its environment. */
export type MarkedProcess = { pid: number; birth: string; leadsGroup: boolean };

/**
 * Every running process with the variable `name` in its initial environment, by the variable's value. Only Linux shows
 * it; on other systems none is found.
 */
export function findByVariable(name: string): Map<string, MarkedProcess[]> {
  const found = new Map<string, MarkedProcess[]>();
  if (!PROC) return found;
  for (const pid of allPids()) {
    const variable = readProc(`${pid}/environ`)
      ?.split('\0')
      .find((line) => line.startsWith(`${name}=`));
    if (variable === undefined) continue;
    const birth = linuxBirth(pid);
    if (birth === undefined) continue;
    const value = variable.slice(name.length + 1);
    found.set(value, [...(found.get(value) ?? []), { pid, birth, leadsGroup: processInfo(pid)?.group === pid }]);
  }
  return found;
}

/** The leader of a machine's process group, if it runs: the recorded one, else the one with the machine's marker. */
export function runningLeader(
  born: { pid: number; birth: string } | undefined,
  marked: readonly MarkedProcess[],
): { pid: number; birth: string } | undefined {
  return born && isRunning(born.pid, born.birth) ? born : marked.find(({ leadsGroup }) => leadsGroup);
}

export type ProcessTreeEntry = { pid: number; parent: number; group: number };

/** Every process in /proc, including those of inner pid namespaces with their outer pids. */
export function processesOfProc(): ProcessTreeEntry[] {
  return allPids().flatMap((pid) => {
    const stat = processInfo(pid);
    return stat ? [{ pid, parent: stat.parent, group: stat.group }] : [];
  });
}

/** The same without /proc; `undefined` when the system does not show it. */
export function processesByPs(): ProcessTreeEntry[] | undefined {
  let listed: string;
  try {
    listed = execFileSync('ps', ['-axo', 'pid=,ppid=,pgid='], { encoding: 'utf8', timeout: 5000 });
  } catch {
    return undefined;
  }
  return listed.split('\n').flatMap((line) => {
    const [pid, parent, group] = line.trim().split(/\s+/).map(Number);
    return pid && group !== undefined ? [{ pid, parent: parent!, group }] : [];
  });
}

/** The processes of a group with all descendants: a program may put its children into other groups. */
export function processTreeOf(leader: number, processes: readonly ProcessTreeEntry[]): Set<number> {
  const children = Map.groupBy(processes, ({ parent }) => parent);
  const tree = new Set<number>();
  const add = (pid: number): void => {
    if (tree.has(pid)) return;
    tree.add(pid);
    for (const child of children.get(pid) ?? []) add(child.pid);
  };
  for (const { pid, group } of processes) if (pid === leader || (group === leader && leader > 0)) add(pid);
  return tree;
}

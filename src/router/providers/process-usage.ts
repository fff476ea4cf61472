/** What groups of processes use, as the system counts it. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** `memoryBytes`: resident, where a page that two processes share counts twice. */
export type Usage = { processes: number; memoryBytes: number };

type Counted = { group: number; memoryBytes: number; isCarrier?: boolean };

function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // The process has ended meanwhile, or is not ours to look at.
    return '';
  }
}

function* countedOnLinux(groups: ReadonlySet<number>): Iterable<Counted> {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readProc(`/proc/${entry}/stat`);
    // proc(5): behind the name in parentheses come the state, the parent and the group.
    const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || !groups.has(Number(group))) continue;
    const isCarrier = stat.includes(CARRIER) && (entry === group || parent === group);
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`/proc/${entry}/status`))?.[1] ?? '0';
    yield { group: Number(group), memoryBytes: Number(kilobytes) * 1024, isCarrier };
  }
}

function* countedElsewhere(groups: ReadonlySet<number>): Iterable<Counted> {
  const listed = execFileSync('ps', ['-axo', 'pgid=,rss='], { encoding: 'utf8', timeout: 5000 });
  for (const line of listed.split('\n')) {
    const [group, kilobytes] = line.trim().split(/\s+/).map(Number);
    if (group !== undefined && groups.has(group)) yield { group, memoryBytes: (kilobytes ?? 0) * 1024 };
  }
}

/** The two processes of bubblewrap that carry a program are not the program's; known by their place, which no program can take. */
const CARRIER = '(bwrap)';

/** Adds up what the processes of each group use; a group without any is not in the answer. */
export function usageOf(groups: ReadonlySet<number>): Map<number, Usage> {
  const usage = new Map<number, Usage>();
  if (groups.size === 0) return usage;
  const counted = process.platform === 'linux' ? countedOnLinux(groups) : countedElsewhere(groups);
  for (const { group, memoryBytes, isCarrier = false } of counted) {
    const before = usage.get(group) ?? { processes: 0, memoryBytes: 0 };
    usage.set(group, {
      processes: before.processes + (isCarrier ? 0 : 1),
      memoryBytes: before.memoryBytes + memoryBytes,
    });
  }
  return usage;
}

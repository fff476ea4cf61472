/**
 * Ending a program that bubblewrap carries. Its group is led by bubblewrap, which waits for the program and passes its
 * end on, and which SIGTERM would end at once: the program would have no time, and nobody would learn how it ended. So
 * the group is asked one by one, and the carrier is spared. It has no other way to survive: what ignores a signal hands
 * that down to what it starts.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';

/** What bubblewrap's processes are called: the one outside, and the first one inside. */
const CARRIER = 'bwrap';

/** Of a process: what it is called, and which group it belongs to. */
type Place = { name: string; state: string; group: number };

function placeOf(pid: number | string): Place | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // proc(5): the second field is the name in parentheses and may hold anything, also parentheses.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    return { name, state: state ?? 'X', group: Number(group) };
  } catch {
    // It has ended meanwhile, or there is no /proc.
    return undefined;
  }
}

function send(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (thrown) {
    // ESRCH: nothing is left of it. EPERM: macOS says this of a group of zombies.
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

/** Whether a process group is led by a carrier. */
export function isCarried(leader: number): boolean {
  return placeOf(leader)?.name === CARRIER;
}

/**
 * Sends a signal to every process of a group but the carriers in it. One that carries nothing yet is killed.
 *
 * @param leader the group's leader, a process of ours
 */
export function signalCarried(leader: number, signal: NodeJS.Signals): void {
  let found = false;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const place = placeOf(entry);
    if (place?.group !== leader || place.name === CARRIER || place.state === 'Z') continue;
    found = true;
    send(Number(entry), signal);
  }
  if (!found) send(-leader, 'SIGKILL');
}

/**
 * Bubblewrap passes the end by a signal on as a shell does. 130 is left out: programs end themselves with it, to say
 * "interrupted".
 */
const BY_SIGNAL: Readonly<Record<number, NodeJS.Signals>> = Object.fromEntries(
  (['SIGTERM', 'SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGHUP', 'SIGXCPU'] as const).map(
    (name) => [128 + constants.signals[name], name],
  ),
);

/** How a program ended, from how the process ended that was started for it. */
export function endOf(
  code: number | null,
  signal: NodeJS.Signals | null,
  carried: boolean,
): { code: number } | { signal: NodeJS.Signals } {
  const by = signal ?? (carried && code !== null ? BY_SIGNAL[code] : undefined);
  return by === undefined ? { code: code ?? 0 } : { signal: by };
}

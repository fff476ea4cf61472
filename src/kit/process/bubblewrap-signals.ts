/**
 * Ends a program that bubblewrap runs. Bubblewrap leads the process group, waits for the program and returns its exit
 * status. SIGTERM would end bubblewrap at once: the program would get no time to stop, and its exit status would be
 * lost. The signal is therefore sent to each process of the group except bubblewrap. Bubblewrap cannot ignore the
 * signal, because its children would inherit that.
 */
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { processInfo, sendSignal } from './process-info.ts';

/** The name of bubblewrap's processes: the outer one, and the first one inside. */
const BUBBLEWRAP = 'bwrap';

/** Whether bubblewrap leads a process group. */
export function isLedByBubblewrap(leader: number): boolean {
  return processInfo(leader)?.name === BUBBLEWRAP;
}

/**
 * Sends a signal to every process of a group except bubblewrap's. A bubblewrap without a program yet is killed.
 *
 * @param leader the group's leader, a child of this process
 */
export function signalBubblewrapGroup(leader: number, signal: NodeJS.Signals): void {
  let found = false;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const info = processInfo(entry);
    if (info?.group !== leader || info.name === BUBBLEWRAP || info.state === 'Z') continue;
    found = true;
    sendSignal(Number(entry), signal);
  }
  if (!found) sendSignal(-leader, 'SIGKILL');
}

/**
 * Bubblewrap reports an end by a signal as a shell does. 130 is omitted, because programs exit with it themselves when
 * interrupted.
 */
const BY_SIGNAL: Readonly<Record<number, NodeJS.Signals>> = Object.fromEntries(
  (['SIGTERM', 'SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGHUP', 'SIGXCPU'] as const).map(
    (name) => [128 + constants.signals[name], name],
  ),
);

/** How the program ended, from the end of the process that was started for it. */
export function exitOf(
  code: number | null,
  signal: NodeJS.Signals | null,
  viaBubblewrap: boolean,
): { code: number } | { signal: NodeJS.Signals } {
  const by = signal ?? (viaBubblewrap && code !== null ? BY_SIGNAL[code] : undefined);
  return by === undefined ? { code: code ?? 0 } : { signal: by };
}

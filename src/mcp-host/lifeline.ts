/**
 * Servers that do not outlive us, even when we are killed: each leads a process group of its own with a watcher in it, which holds
 * the other end of a pipe of ours. The kernel closes that pipe with us, and the watcher ends the group.
 */

/** File descriptor of the pipe in the started process. */
export const LIFELINE = 3;

/** How long a server has, after we are gone and its stdin has ended, until it is killed. */
export const FAREWELL_SECONDS = 2;

/**
 * A small shell script, because it must cost next to nothing per server. It never sees a server's arguments as anything but words.
 *
 * The watcher does not mind the signals that ask the group to end: it is what kills those who do not listen. The shell itself waits
 * for the server, so that the group has its leader, and its number, for as long as the server runs.
 */
const SCRIPT = [
  `( trap '' TERM HUP INT; exec >/dev/null 2>&1; read -r word <&${LIFELINE}; sleep "$1"; kill -KILL 0 ) &`,
  `exec ${LIFELINE}<&-`,
  'shift',
  'trap : TERM HUP INT',
  '"$@"',
  'exit $?',
].join('\n');

/** Whether this system has process groups and a shell. */
export const HAS_GROUPS = process.platform !== 'win32';

/** The command that runs a server as the head of a watched group; to be spawned `detached`, with a pipe as {@link LIFELINE}. */
export function watched(command: readonly string[]): readonly [string, ...string[]] {
  const [program = '', ...args] = command;
  return HAS_GROUPS ? ['/bin/sh', '-c', SCRIPT, 'sh', String(FAREWELL_SECONDS), ...command] : [program, ...args];
}

/** Sends a signal to a whole group; harmless when nothing is left of it. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(HAS_GROUPS ? -leader : leader, signal);
  } catch (thrown) {
    // ESRCH: nothing is left of it. EPERM: macOS says this of a group of zombies.
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code !== 'ESRCH' && code !== 'EPERM') throw thrown;
  }
}

/** Looking once more at a daemon that is about to be stopped: whether what it accepted is done. */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { DaemonMachine } from './machines/machine.ts';
import { type HealthProbe, isIdle } from './providers/health.ts';
import type { Daemon } from './providers/provider.ts';

/** How long a stop waits for it, and how often it asks. */
const LIMIT_MS = 1000;
const EVERY_MS = 50;

export type LastLooksOptions = {
  daemon: Daemon;
  machine: DaemonMachine;
  /** Whether anybody still waits to hear. */
  owes: () => boolean;
  /** The daemon said that it has nothing to do. */
  onIdle: () => void;
  probe: HealthProbe;
  clock: Clock;
};

/** Asks until the daemon is idle or gone, for a second at most. Never rejects. */
export async function takeLastLooks(options: LastLooksOptions): Promise<void> {
  const { daemon, machine, owes, onIdle, probe, clock } = options;
  const over = new AbortController();
  const cancel = clock.after(LIMIT_MS, () => over.abort(new Error(`not idle within ${LIMIT_MS} ms`)));
  while (owes() && !daemon.gone.aborted && !over.signal.aborted) {
    if (isIdle(await probe.look(daemon, machine.spec.health_path, over.signal))) onIdle();
    if (owes()) await wait(clock, EVERY_MS, over.signal);
  }
  cancel();
}

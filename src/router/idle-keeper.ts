/** Puts idle machines to sleep. Before that, it observes when they have finished their accepted turns. */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Fleet } from './fleet.ts';
import { type HealthProbe, isIdle } from './providers/health.ts';
import type { Idleness, Supervisor } from './supervisor.ts';

const SWEEP_MS = 1000;
/** A daemon with a pending turn is checked this long after its last use; a busy one again after the same time. */
const BUSY_MS = 5000;
/** A turn that is retried sooner than this, or before the machine could sleep again, keeps it awake. */
const SHORTEST_SLEEP_MS = 60_000;

export class IdleKeeper {
  readonly #fleet: Fleet;
  readonly #probe: HealthProbe;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Machines with a health check under way, or with none due before this instant. */
  readonly #notBefore = new Map<Supervisor, number>();
  #cancel: () => void;

  /** Starts to sweep, once a second. */
  constructor(fleet: Fleet, probe: HealthProbe, clock: Clock, log: Logger) {
    this.#fleet = fleet;
    this.#probe = probe;
    this.#clock = clock;
    this.#log = log;
    this.#cancel = this.#schedule();
  }

  close(): void {
    this.#cancel();
  }

  #schedule(): () => void {
    return this.#clock.after(SWEEP_MS, () => {
      this.#cancel = this.#schedule();
      this.#sweep();
    });
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const supervisor of this.#fleet) {
      const idleness = supervisor.idleness();
      if (!idleness) continue;
      const idleMs = (idleness.machine.idleSeconds ?? Number.POSITIVE_INFINITY) * 1000;
      const dueMs = supervisor.hasPendingTurn ? Math.min(idleMs, BUSY_MS) : idleMs;
      if (now - idleness.sinceMs < dueMs || now < (this.#notBefore.get(supervisor) ?? 0)) continue;
      this.#notBefore.set(supervisor, now + BUSY_MS);
      void this.#checkHealth(supervisor, idleness, now - idleness.sinceMs >= idleMs);
    }
  }

  /** Whether a turn is retried too soon for sleep to be useful. */
  #isSoon(nextTurnAt: number | undefined, idleSeconds: number | null): boolean {
    if (nextTurnAt === undefined) return false;
    return nextTurnAt - this.#clock.now() <= Math.min((idleSeconds ?? 0) * 1000, SHORTEST_SLEEP_MS);
  }

  async #checkHealth(supervisor: Supervisor, idleness: Idleness, maySleep: boolean): Promise<void> {
    const { daemon, machine } = idleness;
    const health = await this.#probe.check(daemon, machine.spec.health_path);
    // A daemon that does not answer may be executing a turn.
    if (!health.healthy && supervisor.hasPendingTurn) supervisor.healthCheckFailed(idleness);
    if (!isIdle(health) || !supervisor.markIdle(idleness, health.nextTurnAt)) return;
    this.#notBefore.delete(supervisor);
    if (!maySleep || this.#isSoon(health.nextTurnAt, machine.idleSeconds)) return;
    if (!supervisor.stopIfIdle(idleness)) return;
    this.#log.info({ user_id: machine.userId, idle_seconds: machine.idleSeconds }, 'an idle machine goes to sleep');
  }
}

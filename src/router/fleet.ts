/** All supervisors of a router, one for each machine it has used, and the keeper that stops the idle ones. */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { hasDaemon, type Machine } from './machines/machine.ts';
import type { Registry } from './machines/registry.ts';
import { type HealthProbe, isIdle } from './providers/health.ts';
import { type Idleness, Supervisor, type SupervisorOptions } from './supervisor.ts';

export class Fleet {
  readonly #registry: Registry;
  readonly #options: SupervisorOptions;
  readonly #supervisors = new Map<string, Supervisor>();
  readonly #recovered = Promise.withResolvers<void>();

  constructor(registry: Registry, options: SupervisorOptions) {
    this.#registry = registry;
    this.#options = options;
  }

  /**
   * The only supervisor of a user's machine. It is created at the first use and kept: a second one would start a second
   * daemon.
   */
  of(userId: string): Supervisor {
    let supervisor = this.#supervisors.get(userId);
    if (!supervisor) {
      supervisor = new Supervisor(userId, this.#options, this.#recovered.promise);
      this.#supervisors.set(userId, supervisor);
    }
    return supervisor;
  }

  [Symbol.iterator](): IterableIterator<Supervisor> {
    return this.#supervisors.values();
  }

  /** The current activity of a machine, for operators; `undefined` for an unused always-on machine. */
  running(machine: Machine): string | undefined {
    if (!hasDaemon(machine)) return undefined;
    const phase = this.#supervisors.get(machine.userId)?.phase ?? 'asleep';
    return phase === 'asleep' && !this.#options.providers[machine.provider].sleeps ? undefined : phase;
  }

  /**
   * Whether the machine has a daemon that can be put to sleep. Only such a machine can have a pending turn while it
   * does not run.
   */
  sleeps(machine: Machine): boolean {
    return hasDaemon(machine) && this.#options.providers[machine.provider].sleeps;
  }

  /**
   * Resolves the machines that an earlier router left running: unchanged machines are adopted, others are stopped. This
   * runs in the background; a wake that arrives meanwhile waits for it.
   */
  recover(): void {
    for (const provider of Object.values(this.#options.providers)) {
      for (const userId of provider.survivors()) {
        const machine = this.#registry.existing(userId);
        const adoptable = machine.state === 'active' && machine.provider === provider.name;
        if (adoptable && hasDaemon(machine)) this.of(userId).adopt(machine);
        else void this.of(userId).evict(provider, machine);
      }
    }
    this.#recovered.resolve();
  }

  /** Stops every machine that does not outlive the router. Resolves when they have stopped. */
  async close(): Promise<void> {
    await Promise.all([...this].map((supervisor) => supervisor.close()));
  }
}

const SWEEP_MS = 1000;
/** A daemon with a pending turn is checked this long after its last use; a busy one again after the same time. */
const BUSY_MS = 5000;
/** A turn that is retried sooner than this, or before the machine could sleep again, keeps it awake. */
const SHORTEST_SLEEP_MS = 60_000;

/** Puts idle machines to sleep. Before that, it observes when they have finished their accepted turns. */
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

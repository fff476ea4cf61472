/**
 * Restarts stopped machines with a pending turn. Their daemon was stopped for a change, crashed, or ended with the
 * router, and keeps accepted turns until it runs again. Or it sleeps until the retry of a failed turn. A restart
 * delivers no wake, so budgets do not apply.
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Fleet } from './fleet.ts';
import { type DaemonMachine, hasDaemon, noMachine, wakeable } from './machines/machine.ts';
import type { PendingTurns } from './machines/pending-turns.ts';
import type { Registry } from './machines/registry.ts';
import { restAfter } from './providers/start-backoff.ts';

export type RestarterOptions = {
  fleet: Fleet;
  registry: Registry;
  pendingTurns: PendingTurns;
  clock: Clock;
  log: Logger;
};

/**
 * `starts`: the attempts since the machine was last seen idle; `dueAt`: when the next one is due, while it does not
 * run.
 */
type RestartState = { starts: number; dueAt: number | undefined };

const SWEEP_MS = 1000;

export class Restarter {
  readonly #options: RestarterOptions;
  readonly #states = new Map<string, RestartState>();
  readonly #closing = new AbortController();
  #cancel: () => void = () => {};

  constructor(options: RestarterOptions) {
    this.#options = options;
  }

  /** Begins to sweep, once a second. Call it after the machines of an earlier router were resolved. */
  open(): void {
    this.#sweep();
  }

  /** Starts no machine after this; the fleet ends a start that is under way. */
  close(): void {
    this.#closing.abort(new Error('the router is shutting down'));
    this.#cancel();
  }

  #sweep(): void {
    const { pendingTurns, clock, log } = this.#options;
    this.#cancel = clock.after(SWEEP_MS, () => this.#sweep());
    for (const userId of this.#states.keys()) if (!pendingTurns.has(userId)) this.#states.delete(userId);
    for (const userId of pendingTurns.userIds()) {
      try {
        this.#check(userId);
      } catch (err) {
        log.warn({ err, user_id: userId }, 'a machine with a pending turn could not be read; trying again');
      }
    }
  }

  #check(userId: string): void {
    const { clock } = this.#options;
    const state = this.#states.get(userId) ?? { starts: 0, dueAt: undefined };
    this.#states.set(userId, state);
    const now = clock.monotonic();
    if (!this.#options.pendingTurns.isDue(userId, clock.now()) || !this.#needsStart(userId)) state.dueAt = undefined;
    else if (state.dueAt === undefined) state.dueAt = now + restAfter(state.starts + 1);
    else if (now >= state.dueAt) {
      state.starts++;
      state.dueAt = undefined;
      void this.#start(userId, state.starts);
    }
  }

  /**
   * Whether the machine should run and does not. A suspended one waits for `restore`; one without a daemon has no
   * pending turn.
   */
  #needsStart(userId: string): boolean {
    const { fleet, registry, pendingTurns } = this.#options;
    if (fleet.of(userId).phase !== 'asleep') return false;
    const machine = registry.get(userId);
    if (machine && machine.state !== 'deleted' && fleet.sleeps(machine)) return machine.state === 'active';
    pendingTurns.remove(userId);
    return false;
  }

  async #start(userId: string, attempt: number): Promise<void> {
    const { fleet, log } = this.#options;
    try {
      const lease = await fleet.of(userId).acquire(() => this.#current(userId), this.#closing.signal);
      lease.release();
      if (lease.startMs === 0) return;
      log.info({ user_id: userId, attempt, ms: lease.startMs }, 'a machine with a pending turn was started again');
    } catch (err) {
      // The supervisor has logged why a start failed; the next sweep reads the new state.
      log.debug({ err, user_id: userId, attempt }, 'a machine with a pending turn was not started again');
    }
  }

  /** @throws ReveilleError as `wakeable`, also for a machine that now has no daemon */
  #current(userId: string): DaemonMachine {
    const machine = wakeable(this.#options.registry.get(userId), userId, 1);
    if (hasDaemon(machine)) return machine;
    throw noMachine(userId);
  }
}

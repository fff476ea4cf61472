/**
 * Starts machines again that do not run although they owe a turn: their daemon was stopped for a change, crashed, or
 * ended with the router, and keeps what it accepted until it runs; or it sleeps until it tries a turn again that failed.
 * Nobody is woken by it, so that budgets have no say here.
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Fleet } from './fleet.ts';
import { type DaemonMachine, hasDaemon, noMachine, wakeable } from './machines/machine.ts';
import type { OwedTurns } from './machines/owed-turns.ts';
import type { Registry } from './machines/registry.ts';
import { restAfter } from './providers/start-backoff.ts';

export type RestarterOptions = { fleet: Fleet; registry: Registry; owed: OwedTurns; clock: Clock; log: Logger };

/**
 * `starts`: how often it was tried since the machine was last seen idle; `dueAt`: when the next is, while it does not
 * run.
 */
type Course = { starts: number; dueAt: number | undefined };

const SWEEP_MS = 1000;

export class Restarter {
  readonly #options: RestarterOptions;
  readonly #courses = new Map<string, Course>();
  readonly #closing = new AbortController();
  #cancel: () => void = () => {};

  constructor(options: RestarterOptions) {
    this.#options = options;
  }

  /** Begins to sweep, once a second; to be called when the router has settled what an earlier one left. */
  open(): void {
    this.#sweep();
  }

  /** Nothing is started after this; a start that is under way is left to the fleet. */
  close(): void {
    this.#closing.abort(new Error('the router is shutting down'));
    this.#cancel();
  }

  #sweep(): void {
    const { owed, clock, log } = this.#options;
    this.#cancel = clock.after(SWEEP_MS, () => this.#sweep());
    for (const userId of this.#courses.keys()) if (!owed.has(userId)) this.#courses.delete(userId);
    for (const userId of owed.userIds()) {
      try {
        this.#attend(userId);
      } catch (err) {
        log.warn({ err, user_id: userId }, 'a machine that owes a turn could not be looked up; it is tried again');
      }
    }
  }

  #attend(userId: string): void {
    const { clock } = this.#options;
    const course = this.#courses.get(userId) ?? { starts: 0, dueAt: undefined };
    this.#courses.set(userId, course);
    const now = clock.monotonic();
    if (!this.#options.owed.isDue(userId, clock.now()) || !this.#isWanting(userId)) course.dueAt = undefined;
    else if (course.dueAt === undefined) course.dueAt = now + restAfter(course.starts + 1);
    else if (now >= course.dueAt) {
      course.starts++;
      course.dueAt = undefined;
      void this.#start(userId, course.starts);
    }
  }

  /**
   * Whether the machine should run and does not. A suspended one waits for `restore`; one that has no daemon to start
   * owes nothing.
   */
  #isWanting(userId: string): boolean {
    const { fleet, registry, owed } = this.#options;
    if (fleet.of(userId).phase !== 'asleep') return false;
    const machine = registry.get(userId);
    if (machine && machine.state !== 'deleted' && fleet.sleeps(machine)) return machine.state === 'active';
    owed.settle(userId);
    return false;
  }

  async #start(userId: string, attempt: number): Promise<void> {
    const { fleet, log } = this.#options;
    try {
      const lease = await fleet.of(userId).acquire(() => this.#current(userId), this.#closing.signal);
      lease.release();
      if (lease.startMs === 0) return;
      log.info({ user_id: userId, attempt, ms: lease.startMs }, 'a machine that owes a turn was started again');
    } catch (err) {
      // Why a start failed, its supervisor has logged; the next sweep finds the machine as it is then.
      log.debug({ err, user_id: userId, attempt }, 'a machine that owes a turn was not started again');
    }
  }

  /** @throws ReveilleError as `wakeable`, also for a machine that has become one without a daemon */
  #current(userId: string): DaemonMachine {
    const machine = wakeable(this.#options.registry.get(userId), userId, 1);
    if (hasDaemon(machine)) return machine;
    throw noMachine(userId);
  }
}

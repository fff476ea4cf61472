/** All the supervisors of a router, one per machine it has had to do with. */
import { hasDaemon, type Machine, noMachine } from './machines/machine.ts';
import type { Registry } from './machines/registry.ts';
import { Supervisor, type SupervisorOptions } from './supervisor.ts';

export class Fleet {
  readonly #registry: Registry;
  readonly #options: SupervisorOptions;
  readonly #supervisors = new Map<string, Supervisor>();

  constructor(registry: Registry, options: SupervisorOptions) {
    this.#registry = registry;
    this.#options = options;
  }

  /**
   * The one supervisor of a user's machine; it is made when it is first asked for, and kept: a second one would start a
   * second daemon.
   */
  of(userId: string): Supervisor {
    let supervisor = this.#supervisors.get(userId);
    if (!supervisor) {
      supervisor = new Supervisor(userId, this.#options);
      this.#supervisors.set(userId, supervisor);
    }
    return supervisor;
  }

  [Symbol.iterator](): IterableIterator<Supervisor> {
    return this.#supervisors.values();
  }

  /** What the operator is told of a machine right now; `undefined` for one that is always on and has not been used. */
  running(machine: Machine): string | undefined {
    if (!hasDaemon(machine)) return undefined;
    const phase = this.#supervisors.get(machine.userId)?.phase ?? 'asleep';
    return phase === 'asleep' && !this.#options.providers[machine.provider].sleeps ? undefined : phase;
  }

  /** Whether the machine has a daemon that can be put to sleep, and so can owe a turn while it does not run. */
  sleeps(machine: Machine): boolean {
    return hasDaemon(machine) && this.#options.providers[machine.provider].sleeps;
  }

  /**
   * Settles what an earlier router left running: machines that are still what they were are taken over, others stopped.
   * The work goes on in the background; a wake that arrives meanwhile waits for it.
   */
  recover(): void {
    for (const provider of Object.values(this.#options.providers)) {
      for (const userId of provider.survivors()) {
        const machine = this.#registry.get(userId);
        if (!machine) throw noMachine(userId);
        const adoptable = machine.state === 'active' && machine.provider === provider.name;
        if (adoptable && hasDaemon(machine)) this.of(userId).adopt(machine);
        else void this.of(userId).evict(provider, machine);
      }
    }
  }

  /** Stops every machine that does not outlive the router, and resolves when they sleep. */
  async close(): Promise<void> {
    await Promise.all([...this].map((supervisor) => supervisor.close()));
  }
}

/** All supervisors of a router, one for each machine it has used. */
import { hasDaemon, type Machine } from './machines/machine.ts';
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
   * The only supervisor of a user's machine. It is created at the first use and kept: a second one would start a second
   * daemon.
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
  }

  /** Stops every machine that does not outlive the router. Resolves when they have stopped. */
  async close(): Promise<void> {
    await Promise.all([...this].map((supervisor) => supervisor.close()));
  }
}

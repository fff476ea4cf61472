/**
 * The processes that run for machines, by user. It adopts those of a dead router, watches them, and removes them when
 * they end.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import { DaemonConnections } from './daemon-connections.ts';
import { killProcess, ProcessGroup } from './process-group.ts';
import { enforceLimits } from './process-limits.ts';
import { ProcessLog } from './process-log.ts';
import type { ProcessRecord, ProcessRecords, SpawnIntent } from './process-records.ts';
import type { ProcessLimits } from './process-spec.ts';
import { findByVariable, type MarkedProcess, runningLeader } from './process-table.ts';

/** A process, its record, and its output since it was started (or adopted). */
export type Running = {
  readonly record: SpawnIntent;
  readonly group: ProcessGroup;
  /** Connections that reach only this process. */
  readonly connections: DaemonConnections;
  /** The port on which it listens, as far as known. */
  port: number;
  readonly log: ProcessLog;
  /** Unknown for an adopted process until its machine is read. */
  limits: ProcessLimits | undefined;
};

export type RunningProcessesOptions = {
  records: ProcessRecords;
  /** The folder for the output of the processes. */
  logFolder: string;
  clock: Clock;
  log: Logger;
  /** The most concurrent connections to each of them. */
  connections: number;
  /** Called when a process runs, and when the last one has ended. */
  onRunning?: (some: boolean) => void;
};

/** How often their logs and their usage are checked, milliseconds. */
const SWEEP_MS = 1000;

export class RunningProcesses {
  readonly #options: RunningProcessesOptions;
  readonly #byUser = new Map<string, Running>();
  #cancelSweep: () => void;

  constructor(options: RunningProcessesOptions) {
    this.#options = options;
    this.#cancelSweep = this.#scheduleSweep();
  }

  get(userId: string): Running | undefined {
    return this.#byUser.get(userId);
  }

  /** Connections to a started program. */
  connectionsTo({ pid }: ProcessGroup): DaemonConnections {
    const { log, connections } = this.#options;
    const onUnseen = () =>
      log.warn(
        { pid },
        'this system does not show who listens on a port; a program that takes the port receives the wakes',
      );
    return new DaemonConnections({ leader: pid, connections, onUnseen });
  }

  /** Keeps a process until it ends. */
  keep(running: Running): void {
    const { record, group } = running;
    this.#byUser.set(record.userId, running);
    this.#options.onRunning?.(true);
    void group.ended.then((ending) => {
      if (this.#byUser.get(record.userId) === running) this.#byUser.delete(record.userId);
      if (this.#byUser.size === 0) this.#options.onRunning?.(false);
      this.#options.log.info({ user_id: record.userId, pid: group.pid, ending }, 'a process ended');
      running.connections.close();
      return this.forget(record);
    });
  }

  /** Removes the record of an ended process. A remaining record costs only one query at the next start. */
  async forget({ userId, spawnId }: SpawnIntent): Promise<void> {
    try {
      await this.#options.records.forget(userId, spawnId);
    } catch (err) {
      this.#options.log.warn({ err, user_id: userId }, 'the record of an ended process could not be removed');
    }
  }

  /** Adopts all that an earlier router left; returns the users whose processes still run. */
  adoptAll(): string[] {
    const records = this.#options.records.all();
    if (records.length === 0) return [];
    const marked = findByVariable(SPAWN_ID_VARIABLE);
    return records
      .filter((record) => this.#adopt(record, marked.get(record.spawnId) ?? []))
      .map((record) => record.userId);
  }

  close(): void {
    this.#cancelSweep();
    for (const { group, connections } of this.#byUser.values()) {
      group.close();
      connections.destroy();
    }
  }

  /**
   * Adopts the process of a record; returns whether it still runs. A router that died between the fork and its record
   * left a process that only its environment identifies.
   */
  #adopt(record: ProcessRecord, marked: readonly MarkedProcess[]): boolean {
    const { clock, log, logFolder } = this.#options;
    const { born, userId } = record;
    if (!born && process.platform !== 'linux') {
      const message = 'the router died while it started a process; if the process runs, end it by hand';
      log.warn({ user_id: userId }, message);
    }
    const leader = runningLeader(born, marked);
    if (leader) {
      const group = ProcessGroup.adopted(leader, clock);
      const connections = this.connectionsTo(group);
      this.keep({
        record,
        group,
        connections,
        port: record.port,
        log: new ProcessLog(logFolder, userId),
        limits: undefined,
      });
      return true;
    }
    // The leader ended without a router; its remaining processes would disturb the next one.
    for (const { pid } of marked) killProcess(pid);
    void this.forget(record);
    return false;
  }

  #scheduleSweep(): () => void {
    return this.#options.clock.after(SWEEP_MS, () => {
      this.#cancelSweep = this.#scheduleSweep();
      this.#sweep();
    });
  }

  #sweep(): void {
    const { log: routerLog } = this.#options;
    for (const { log } of this.#byUser.values()) {
      log.rotate().catch((err: unknown) => routerLog.debug({ err, path: log.path }, 'a log could not be rotated'));
    }
    try {
      enforceLimits(this.#byUser.values());
    } catch (err) {
      routerLog.warn({ err }, 'the usage of the processes could not be read');
    }
  }
}

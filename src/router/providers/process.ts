/**
 * Provider `process`: a daemon that the router starts as a child, in a process group of its own, and that outlives a router that
 * is killed (docs/decisions/0005-process-machines.md).
 */
import type { ChildProcess } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { closeSync } from 'node:fs';
import type { Clock } from '../../clock/clock.ts';
import type { Logger } from '../../log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Machine, ProcessMachine } from '../machines/machine.ts';
import { childEnvironment, SPAWN_ID_VARIABLE, secretsOf } from './child-environment.ts';
import { startCommand } from './command.ts';
import type { HealthProbe } from './health.ts';
import { lastWords } from './last-words.ts';
import { freePort, isFree } from './port.ts';
import { killProcess, ProcessGroup } from './process-group.ts';
import { ProcessLog } from './process-log.ts';
import type { ProcessRecord, ProcessRecords, SpawnIntent } from './process-records.ts';
import { birthOf, findByVariable, isRunning, type MarkedProcess } from './process-table.ts';
import type { Daemon, Provider } from './provider.ts';

export type ProcessProviderOptions = {
  records: ProcessRecords;
  probe: HealthProbe;
  /** Where the output of the processes goes. */
  logFolder: string;
  /** The environment of which children get the allow-listed part. */
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Logger;
  /** How long a process may take to end after SIGTERM; 10 seconds unless told. */
  graceMs?: number;
};

/** A process of ours, the record it is kept under, and its output since it was started (or taken over). */
type Running = { record: SpawnIntent; group: ProcessGroup; url: string; log: ProcessLog; logStart: number };

/** How long a process that an earlier router left has to prove that it is healthy. */
const ADOPTION_MS = 10_000;
/** How often the logs of running processes are looked at. */
const LOG_SWEEP_MS = 1000;
/** Between our look at a port and the child's, somebody else may have taken it. */
const PORT_ATTEMPTS = 3;
const PORT_TAKEN = /EADDRINUSE|address already in use/i;

function processMachine(machine: Machine): ProcessMachine {
  if (machine.provider === 'process') return machine;
  throw new ReveilleError('internal', `a machine of provider ${machine.provider} came to provider process`);
}

/** The process ended before it was healthy. */
class EarlyEnd extends ReveilleError {
  readonly portTaken: boolean;

  /** @param secrets must not be repeated */
  constructor(ending: string, output: string, secrets: readonly string[]) {
    const words = lastWords(output, secrets);
    super('unavailable', `the process ${ending} before it was ready${words && `: ${words}`}`);
    this.portTaken = PORT_TAKEN.test(output);
  }
}

export class ProcessProvider implements Provider {
  readonly name = 'process';
  readonly sleeps = true;
  readonly #options: ProcessProviderOptions;
  readonly #graceMs: number;
  readonly #running = new Map<string, Running>();
  readonly #reservedPorts = new Set<number>();
  #cancelSweep: () => void;

  constructor(options: ProcessProviderOptions) {
    this.#options = options;
    this.#graceMs = options.graceMs ?? 10_000;
    this.#cancelSweep = this.#scheduleSweep();
  }

  fingerprint(machine: Machine): string {
    const { spec, token } = processMachine(machine);
    return createHash('sha256').update(JSON.stringify({ spec, token })).digest('hex');
  }

  async start(machine: Machine, signal: AbortSignal): Promise<Daemon> {
    const target = processMachine(machine);
    const running = this.#running.get(machine.userId);
    if (running?.record.fingerprint === this.fingerprint(machine)) {
      try {
        return { ...(await this.#whenHealthy(running, target, signal)), cold: false };
      } catch (thrown) {
        if (!(thrown instanceof EarlyEnd)) throw thrown;
        // It was about to end when it was asked; the next one will be healthy.
      }
    }
    await this.stop(machine);
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted();
      try {
        return await this.#startOn(await this.#reservePort(target), target, signal);
      } catch (thrown) {
        const lostRace = thrown instanceof EarlyEnd && thrown.portTaken && target.spec.port === undefined;
        if (!lostRace || attempt === PORT_ATTEMPTS) throw thrown;
        this.#options.log.warn({ user_id: machine.userId, attempt }, 'another program took the port; trying another');
      }
    }
  }

  survivors(): readonly string[] {
    const records = this.#options.records.all();
    if (records.length === 0) return [];
    const marked = findByVariable(SPAWN_ID_VARIABLE);
    return records
      .filter((record) => this.#takeOver(record, marked.get(record.spawnId) ?? []))
      .map((record) => record.userId);
  }

  async adopt(machine: Machine, signal: AbortSignal): Promise<Daemon | undefined> {
    const running = this.#running.get(machine.userId);
    if (!running) return undefined;
    if (running.record.fingerprint !== this.fingerprint(machine)) {
      await this.stop(machine);
      return undefined;
    }
    const tooLong = new AbortController();
    const cancel = this.#options.clock.after(ADOPTION_MS, () => tooLong.abort(new Error('it did not become healthy')));
    try {
      const target = processMachine(machine);
      const daemon = await this.#whenHealthy(running, target, AbortSignal.any([signal, tooLong.signal]));
      this.#options.log.info({ user_id: machine.userId, pid: running.group.pid }, 'took over a running process');
      return { ...daemon, cold: false };
    } catch (err) {
      signal.throwIfAborted();
      this.#options.log.warn({ err, user_id: machine.userId }, 'stopped a process that an earlier router had left');
      return undefined;
    } finally {
      cancel();
    }
  }

  async stop(machine: Machine): Promise<void> {
    const running = this.#running.get(machine.userId);
    if (!running) return;
    await running.group.end(this.#graceMs);
    await this.#forget(running.record);
  }

  close(): void {
    this.#cancelSweep();
    for (const { group } of this.#running.values()) group.close();
  }

  /** A port for the machine, reserved until its process has started, so that no other start of ours picks it meanwhile. */
  async #reservePort({ spec }: ProcessMachine): Promise<number> {
    if (spec.port !== undefined) {
      if (await isFree(spec.port)) return spec.port;
      throw new ReveilleError('unavailable', `port ${spec.port} of the machine is taken by another program`);
    }
    const port = await freePort(this.#reservedPorts);
    if (port === undefined) throw new ReveilleError('unavailable', 'the system has no free port for the machine');
    this.#reservedPorts.add(port);
    return port;
  }

  async #startOn(port: number, machine: ProcessMachine, signal: AbortSignal): Promise<Daemon> {
    try {
      const running = await this.#spawn(port, machine);
      return await this.#whenHealthy(running, machine, signal);
    } finally {
      this.#reservedPorts.delete(port);
    }
  }

  /** Resolves when the process exists and is on record. */
  async #spawn(port: number, machine: ProcessMachine): Promise<Running> {
    const { userId, spec, token } = machine;
    const record = { userId, spawnId: randomUUID(), fingerprint: this.fingerprint(machine), port };
    const { records, clock, environment } = this.#options;
    const log = new ProcessLog(this.#options.logFolder, userId);
    const output = log.openForProcess();
    let child: ChildProcess;
    try {
      await records.intend(record);
      const env = childEnvironment(environment, spec.env ?? {}, { port, token, spawnId: record.spawnId });
      child = await startCommand(spec.command, { cwd: spec.cwd, env, output: output.fd });
    } catch (thrown) {
      await this.#forget(record);
      throw thrown;
    } finally {
      closeSync(output.fd);
    }
    const group = ProcessGroup.started(child, clock);
    const running = { record, group, url: urlOf(port), log, logStart: output.length };
    this.#keep(running);
    const birth = birthOf(group.pid);
    try {
      // A process that has ended already has no birth; its exit is on its way.
      if (birth !== undefined) records.born(record.spawnId, group.pid, birth);
    } catch (thrown) {
      await this.stop(machine);
      throw thrown;
    }
    this.#options.log.info({ user_id: userId, pid: group.pid, port, output: log.path }, 'started a process');
    return running;
  }

  async #whenHealthy(running: Running, machine: ProcessMachine, signal: AbortSignal): Promise<Daemon> {
    const { group, url } = running;
    try {
      await this.#options.probe.untilHealthy(url, machine.spec.health_path, AbortSignal.any([signal, group.gone]));
      return { url, gone: group.gone, cold: true };
    } catch (thrown) {
      if (group.ending !== undefined) {
        const output = await running.log.tail(running.logStart, 8 * 1024);
        const secrets = secretsOf(this.#options.environment, machine.spec.env ?? {});
        throw new EarlyEnd(group.ending, output, [machine.token, ...secrets]);
      }
      await this.stop(machine);
      throw thrown;
    }
  }

  /**
   * Takes charge of what an earlier router left of a record; says whether that still runs. A router that died between the fork
   * and the record of it left a process that is known by its environment only.
   */
  #takeOver(record: ProcessRecord, marked: readonly MarkedProcess[]): boolean {
    const { born, userId } = record;
    if (!born && process.platform !== 'linux') {
      const message = 'the router died while it started a process; if that runs, it must be ended by hand';
      this.#options.log.warn({ user_id: userId }, message);
    }
    const recorded = born && isRunning(born.pid, born.birth) ? born : undefined;
    const leader = recorded ?? marked.find(({ leadsGroup }) => leadsGroup);
    if (leader) {
      const group = ProcessGroup.takenOver(leader, this.#options.clock);
      const log = new ProcessLog(this.#options.logFolder, userId);
      this.#keep({ record, group, url: urlOf(record.port), log, logStart: 0 });
      return true;
    }
    // The leader has ended while nobody watched; what it left behind would be in the next one's way.
    for (const { pid } of marked) killProcess(pid);
    void this.#forget(record);
    return false;
  }

  #keep(running: Running): void {
    const { record, group } = running;
    this.#running.set(record.userId, running);
    void group.ended.then((ending) => {
      if (this.#running.get(record.userId) === running) this.#running.delete(record.userId);
      this.#options.log.info({ user_id: record.userId, pid: group.pid, ending }, 'a process ended');
      return this.#forget(record);
    });
  }

  /** A record that stays costs nothing but a look at the next start: its process is gone. */
  async #forget({ userId, spawnId }: SpawnIntent): Promise<void> {
    try {
      await this.#options.records.forget(userId, spawnId);
    } catch (err) {
      this.#options.log.warn({ err, user_id: userId }, 'the record of an ended process could not be removed');
    }
  }

  #scheduleSweep(): () => void {
    return this.#options.clock.after(LOG_SWEEP_MS, () => {
      this.#cancelSweep = this.#scheduleSweep();
      for (const { log } of this.#running.values()) {
        log.trim().catch((err: unknown) => this.#options.log.debug({ err, path: log.path }, 'a log could not be cut'));
      }
    });
  }
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}

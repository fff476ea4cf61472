/**
 * Provider `process`: a daemon that the router starts as a child, in its own process group. It outlives a killed router
 * (docs/internals/decisions/0007-process-machines.md).
 */
import type { ChildProcess } from 'node:child_process';
import { createHash, randomInt, randomUUID } from 'node:crypto';
import { closeSync } from 'node:fs';
import { createServer, Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { ReveilleError } from '../../wire/errors.ts';
import { childEnvironment, secretsOf } from './child-environment.ts';
import { PortTaken } from './daemon-connections.ts';
import type { HealthProbe } from './health.ts';
import type { Isolation } from './isolation.ts';
import { foreignListenerOn } from './listeners.ts';
import { ProcessGroup } from './process-group.ts';
import { applyNiceness, limitedCommand } from './process-limits.ts';
import { ProcessLog } from './process-log.ts';
import type { ProcessSpec } from './process-spec.ts';
import { birthOf } from './process-table.ts';
import { type Daemon, machineOf, type OnProgress, type Provider, type ProviderMachine } from './provider.ts';
import { lastOutput } from './redaction.ts';
import { type Running, RunningProcesses, type RunningProcessesOptions } from './running-processes.ts';
import { StartBackoff } from './start-backoff.ts';
import { CHANNEL, startCommand } from './start-command.ts';

const PORT_TAKEN = /EADDRINUSE|address already in use/i;

class EarlyEnd extends ReveilleError {
  /** Whether another program had its port. */
  readonly portTaken: boolean;

  /**
   * @param ending a phrase that finishes the sentence "the process …"
   * @param output the end of its output
   * @param secrets must not be repeated
   */
  constructor(ending: string, output: string, secrets: readonly string[]) {
    const lastLines = lastOutput(output, secrets);
    super('unavailable', `the process ${ending} before it was ready${lastLines && `: ${lastLines}`}`);
    this.portTaken = PORT_TAKEN.test(output);
  }
}

type ProcessProviderOptions = RunningProcessesOptions & {
  probe: HealthProbe;
  /** The sandbox and user of a process. */
  isolation: Isolation;
  /** The environment from which children get the allow-listed variables. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Where children report the progress of their turns; `undefined` when they do not. */
  chronosUrl?: () => string | undefined;
  /** How long a process may take to end after SIGTERM; by default 10 seconds. */
  graceMs?: number;
  /** Whether they continue when the router closes. */
  outlivesRouter?: boolean;
};

/** How long an adopted process may take to become healthy, milliseconds. */
const ADOPTION_MS = 10_000;
/** Another program may take a port between the router's check and the child's listen. */
const PORT_ATTEMPTS = 3;

type ProcessMachine = ProviderMachine<ProcessSpec>;
const processMachine = (machine: ProviderMachine) => machineOf<ProcessSpec>('process', machine);

export class ProcessProvider implements Provider {
  readonly name = 'process';
  readonly sleeps = true;
  readonly outlivesRouter: boolean;
  readonly #options: ProcessProviderOptions;
  readonly #graceMs: number;
  readonly #backoff: StartBackoff;
  readonly #running: RunningProcesses;
  readonly #reservedPorts = new Set<number>();

  constructor(options: ProcessProviderOptions) {
    this.#options = options;
    this.outlivesRouter = options.outlivesRouter === true;
    this.#graceMs = options.graceMs ?? 10_000;
    this.#backoff = new StartBackoff(options.clock);
    this.#running = new RunningProcesses(options);
  }

  fingerprint(machine: ProviderMachine): string {
    const { spec, token } = processMachine(machine);
    return createHash('sha256').update(JSON.stringify({ spec, token })).digest('hex');
  }

  async start(machine: ProviderMachine, signal: AbortSignal, onProgress: OnProgress): Promise<Daemon> {
    const target = processMachine(machine);
    const fingerprint = this.fingerprint(machine);
    const running = this.#running.get(machine.userId);
    if (running?.record.fingerprint === fingerprint) {
      try {
        return { ...(await this.#untilHealthy(running, target, signal, onProgress)), cold: false };
      } catch (thrown) {
        if (!(thrown instanceof EarlyEnd || thrown instanceof PortTaken)) throw thrown;
        // It was about to end, or no longer listens and another program does; the next one will be healthy.
      }
    }
    signal.throwIfAborted();
    this.#backoff.check(machine.userId, fingerprint);
    await this.stop(machine);
    try {
      const daemon = await this.#startNew(target, signal, onProgress);
      this.#backoff.succeeded(machine.userId);
      return daemon;
    } catch (thrown) {
      if (thrown instanceof EarlyEnd) this.#backoff.failed(machine.userId, fingerprint, thrown.message);
      throw thrown;
    }
  }

  survivors(): readonly string[] {
    return this.#running.adoptAll();
  }

  async adopt(machine: ProviderMachine, signal: AbortSignal): Promise<Daemon | undefined> {
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
      running.limits = target.spec.limits;
      const daemon = await this.#untilHealthy(running, target, AbortSignal.any([signal, tooLong.signal]), () => {});
      this.#options.log.info({ user_id: machine.userId, pid: running.group.pid }, 'adopted a running process');
      return { ...daemon, cold: false };
    } catch (err) {
      signal.throwIfAborted();
      this.#options.log.warn({ err, user_id: machine.userId }, 'stopped a process of an earlier router');
      return undefined;
    } finally {
      cancel();
    }
  }

  async stop(machine: ProviderMachine): Promise<void> {
    const running = this.#running.get(machine.userId);
    if (!running) return;
    await running.group.end(this.#graceMs);
    await this.#running.forget(running.record);
  }

  close(): void {
    this.#running.close();
  }

  /**
   * Reserves a port for the machine until its process has started, so that no other start of this router chooses it.
   */
  async #reservePort({ spec }: ProcessMachine): Promise<number> {
    if (spec.port !== undefined) {
      if (await isFree(spec.port)) return spec.port;
      throw new PortTaken(spec.port, (await foreignListenerOn(spec.port)) ?? 'a program that the system does not show');
    }
    const port = await freePort(this.#reservedPorts);
    if (port === undefined) throw new ReveilleError('unavailable', 'the system has no free port for the machine');
    this.#reservedPorts.add(port);
    return port;
  }

  async #startNew(target: ProcessMachine, signal: AbortSignal, onProgress: OnProgress): Promise<Daemon> {
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted();
      const port = await this.#reservePort(target);
      try {
        const running = await this.#spawn(port, target);
        return await this.#untilHealthy(running, target, signal, onProgress);
      } catch (thrown) {
        const lostRace = thrown instanceof PortTaken || (thrown instanceof EarlyEnd && thrown.portTaken);
        if (!lostRace || target.spec.port !== undefined || attempt === PORT_ATTEMPTS) throw thrown;
        const reason = thrown.message;
        this.#options.log.warn({ user_id: target.userId, attempt, reason }, 'the port was taken; trying another');
      } finally {
        this.#reservedPorts.delete(port);
      }
    }
  }

  /** Resolves when the process exists and is recorded. */
  async #spawn(port: number, machine: ProcessMachine): Promise<Running> {
    const { userId, spec, token } = machine;
    const record = { userId, spawnId: randomUUID(), fingerprint: this.fingerprint(machine), port };
    const { records, clock, environment, chronosUrl } = this.#options;
    const command = limitedCommand(spec.command, spec.limits);
    const log = new ProcessLog(this.#options.logFolder, userId);
    const output = log.openForProcess();
    // A specification with a port fixes it; without one the daemon may choose.
    const channel = spec.port === undefined;
    const portChannel = channel ? CHANNEL : undefined;
    let child: ChildProcess;
    let isWrapped = false;
    try {
      await records.intend(record);
      const { spawnId } = record;
      const given = { port, token, spawnId, portChannel, chronosUrl: chronosUrl?.() };
      const env = childEnvironment(environment, spec.env ?? {}, given);
      const { cwd, sandbox, run_as: runAs, writable } = spec;
      const isolated = await this.#options.isolation.isolate({
        ...{ userId, command, cwd, env, sandbox, runAs, writable: writable?.map((folder) => `${folder}/`) },
      });
      isWrapped = isolated.isWrapped;
      child = await startCommand(isolated.command, {
        cwd: isolated.cwd,
        env: isolated.env,
        user: runAs,
        output,
        channel,
      });
    } catch (thrown) {
      await this.#running.forget(record);
      throw thrown;
    } finally {
      closeSync(output);
    }
    const group = ProcessGroup.started(child, clock, isWrapped);
    const running = { record, group, log, limits: spec.limits, connections: this.#running.connectionsTo(group), port };
    this.#running.keep(running);
    readReportedPort(child.stdio[CHANNEL], (reported) => this.#portReported(running, reported));
    const birth = birthOf(group.pid);
    try {
      // A process that has ended already has no birth; its exit event follows.
      if (birth !== undefined) records.recordBirth(record.spawnId, group.pid, birth);
      applyNiceness(group.pid, spec.limits);
    } catch (thrown) {
      await this.stop(machine);
      throw thrown;
    }
    this.#options.log.info({ user_id: userId, pid: group.pid, port, output: log.path }, 'started a process');
    return running;
  }

  /** A daemon that reports its port is trusted: only it and its descendants have the other end of the channel. */
  #portReported(running: Running, port: number): void {
    if (port === running.port) return;
    const { records, log } = this.#options;
    const { userId, spawnId } = running.record;
    running.port = port;
    // A router that does not find the port on record starts the daemon again.
    records
      .listensOn(spawnId, port)
      .catch((err: unknown) => log.warn({ err, user_id: userId }, 'the reported port of a daemon could not be stored'));
  }

  async #untilHealthy(
    running: Running,
    machine: ProcessMachine,
    signal: AbortSignal,
    onProgress: OnProgress,
  ): Promise<Daemon> {
    const { group, connections } = running;
    // With `foreign_listener` any program that listens on the port is trusted.
    const own = machine.spec.foreign_listener ? undefined : connections;
    const address = () => ({ url: `http://127.0.0.1:${running.port}`, connections: own });
    const taken = new AbortController();
    const reportProgress = (text: string) => {
      onProgress(text);
      if (connections.foreignListener) taken.abort(connections.foreignListener);
    };
    try {
      const anySignal = AbortSignal.any([signal, group.gone, taken.signal]);
      const found = await this.#options.probe.untilHealthy(
        address,
        machine.spec.health_path,
        anySignal,
        reportProgress,
      );
      return { ...found, gone: group.gone, cold: true };
    } catch (thrown) {
      if (taken.signal.aborted && !signal.aborted) {
        await this.stop(machine);
        throw taken.signal.reason;
      }
      if (group.ending !== undefined) {
        const output = await running.log.tail(8 * 1024);
        const secrets = secretsOf(this.#options.environment, machine.spec.env ?? {});
        throw new EarlyEnd(group.ending, output, [machine.token, ...secrets]);
      }
      await this.stop(machine);
      throw thrown;
    }
  }
}

const LOOPBACK = '127.0.0.1';

/** Whether a port of the loopback address is free. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, LOOPBACK, () => server.close(() => resolve(true)));
  });
}

/**
 * The range of chosen ports. Linux, macOS and Windows take the local ports of connections from other ranges. Those may
 * change hundreds of times in the second that a daemon takes to listen.
 */
const [LOWEST, ABOVE] = [20_000, 30_000];

/** A free port that is not in `taken`; `undefined` when none of many attempts was free. */
export async function freePort(taken: ReadonlySet<number>): Promise<number | undefined> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = randomInt(LOWEST, ABOVE);
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  return undefined;
}

const LONGEST_PORT = 5;

/**
 * Reads the port that a daemon reports: a number and a line feed, once. Other output is ignored.
 *
 * @param channel the router's end of the channel
 */
function readReportedPort(channel: Readable | Writable | null | undefined, onPort: (port: number) => void): void {
  if (!(channel instanceof Socket)) return;
  let received = '';
  // A silent daemon must not keep this process from ending, and the end of a daemon must not be an error.
  channel.unref();
  channel.on('error', () => channel.destroy());
  channel.setEncoding('latin1').on('data', (text: string) => {
    received += text;
    const [line, rest] = received.split('\n', 2) as [string, string | undefined];
    if (rest === undefined && line.length <= LONGEST_PORT) return;
    channel.destroy();
    const port = Number(line);
    if (/^\d+$/.test(line) && port >= 1 && port <= 65_535) onPort(port);
  });
}

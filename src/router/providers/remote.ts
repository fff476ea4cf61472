/**
 * A provider of machines of an external system. It queries, requests a change, and queries again until the machine has
 * the desired state. It joins changes that are under way, also those of other clients. Machines outlive the router; a
 * record lists awake machines for the next router.
 */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AwakeRecords } from './awake-records.ts';
import type { HealthProbe } from './health.ts';
import { type Daemon, machineOf, type OnProgress, type Provider, type ProviderMachine } from './provider.ts';
import { TransientProviderError } from './provider-api.ts';
import type { RemoteDriver, RemoteObservation, RemoteSpec } from './remote-driver.ts';

export type RemoteProviderOptions<Spec extends RemoteSpec> = {
  name: string;
  driver: RemoteDriver<Spec>;
  awake: AwakeRecords;
  probe: HealthProbe;
  clock: Clock;
  log: Logger;
};

/** A running machine with an unhealthy daemon is queried this often: it may have ended. */
const RECHECK_MS = 3000;
/** How long an adopted machine may take until its daemon is healthy, milliseconds. */
const ADOPTION_MS = 10_000;

/** The provider gets no notice when such a machine ends. */
const NEVER = new AbortController().signal;

/** The progress of one attempt to start a machine. */
type Attempt = {
  /** Whether a start may have been requested. */
  requested: boolean;
  /** When a start was accepted, on the monotonic clock. */
  acceptedAt: number | undefined;
  cold: boolean;
};

const ignoreProgress: OnProgress = () => {};
const unavailable = (message: string) => new ReveilleError('unavailable', message);

export class RemoteProvider<Spec extends RemoteSpec> implements Provider {
  readonly name: string;
  readonly sleeps = true;
  readonly outlivesRouter = true;
  readonly trustMs: number;
  readonly #options: RemoteProviderOptions<Spec>;
  /** Users whose running machine did not become healthy. If it were suspended, it would resume in the same state. */
  readonly #unhealthy = new Set<string>();
  readonly #closing = new AbortController();

  constructor(options: RemoteProviderOptions<Spec>) {
    this.name = options.name;
    this.trustMs = options.driver.trustMs;
    this.#options = options;
  }

  fingerprint(machine: ProviderMachine): string {
    return JSON.stringify(this.#targetOf(machine).spec);
  }

  async start(machine: ProviderMachine, signal: AbortSignal, onProgress: OnProgress): Promise<Daemon> {
    const target = this.#targetOf(machine);
    signal.throwIfAborted();
    await this.#options.awake.keep(target.userId, JSON.stringify(target.spec));
    const attempt: Attempt = { requested: false, acceptedAt: undefined, cold: false };
    try {
      const url = await this.#bringUp(target, attempt, this.#unlessClosing(signal), onProgress);
      return { url, gone: NEVER, cold: attempt.cold };
    } catch (thrown) {
      if (this.#closing.signal.aborted) throw thrown;
      if (attempt.requested) await this.#endAfterFailure(target);
      signal.throwIfAborted();
      throw thrown;
    }
  }

  survivors(): readonly string[] {
    return this.#options.awake.userIds();
  }

  async adopt(machine: ProviderMachine, signal: AbortSignal): Promise<Daemon | undefined> {
    const recorded = this.#options.awake.specOf(machine.userId);
    if (recorded === undefined) return undefined;
    if (recorded !== this.fingerprint(machine)) {
      await this.stop(machine);
      return undefined;
    }
    const url = await this.#checkAwake(this.#targetOf(machine), this.#unlessClosing(signal));
    if (url === undefined) return undefined;
    this.#options.log.info({ user_id: machine.userId, url }, 'adopted an awake machine');
    return { url, gone: NEVER, cold: false };
  }

  async stop(machine: ProviderMachine): Promise<void> {
    const recorded = this.#options.awake.specOf(machine.userId);
    // A machine that has another provider by now is stopped by the record of its start.
    if (recorded === undefined && machine.provider !== this.name) return;
    const spec = (recorded === undefined ? machine.spec : JSON.parse(recorded)) as Spec;
    await this.#stopRemote({ ...machine, spec }, this.#unhealthy.has(machine.userId) ? 'end' : 'sleep');
  }

  close(): void {
    this.#closing.abort(unavailable('the router is shutting down'));
    this.#options.driver.close?.();
  }

  #targetOf(machine: ProviderMachine): ProviderMachine<Spec> {
    return machineOf<Spec>(this.name, machine);
  }

  #unlessClosing(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#closing.signal]);
  }

  /** The address of the machine's daemon when it is healthy. */
  async #bringUp(
    target: ProviderMachine<Spec>,
    attempt: Attempt,
    signal: AbortSignal,
    onProgress: OnProgress,
  ): Promise<string> {
    const { driver, clock } = this.#options;
    const poller = createPoller(driver, { clock, signal, onProgress });
    return poller.until(async () => {
      const observation = await driver.observe(target, signal);
      if (observation.state === 'lost') throw unavailable(observation.text);
      if (observation.state === 'up' && observation.url === undefined) throw unavailable(observation.text);
      if (observation.state === 'up') {
        const why: OnProgress = (progress) => onProgress(`${observation.text}, but ${progress}`);
        return (await this.#isHealthy(observation.url, target, signal, why)) ? observation.url : undefined;
      }
      attempt.cold = true;
      onProgress(observation.text);
      if (observation.state === 'rising' && (await observation.wait?.(signal))) poller.skipPause();
      if (observation.state === 'down' && (await this.#rouse(observation, target, attempt, signal))) poller.skipPause();
      return undefined;
    });
  }

  /** Requests the start of a stopped machine; `false` when that was done already. */
  async #rouse(
    observation: Extract<RemoteObservation, { state: 'down' }>,
    target: ProviderMachine<Spec>,
    attempt: Attempt,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { driver, clock, log } = this.#options;
    if (attempt.acceptedAt !== undefined) {
      if (clock.monotonic() - attempt.acceptedAt < driver.staleMs) return false;
      const lastLines = await driver.lastOutput?.(target, signal);
      throw unavailable(`${observation.text} before its daemon was ready${lastLines ? `: ${lastLines}` : ''}`);
    }
    attempt.requested = true;
    await observation.start(signal);
    attempt.acceptedAt = clock.monotonic();
    log.info({ user_id: target.userId, provider: this.name }, 'started a machine');
    return true;
  }

  /** Waits briefly for the daemon of a running machine. */
  async #isHealthy(
    url: string | undefined,
    { userId, spec }: ProviderMachine<Spec>,
    signal: AbortSignal,
    onProgress: OnProgress,
  ): Promise<boolean> {
    this.#unhealthy.add(userId);
    if (url === undefined) return false;
    const wait = new AbortController();
    const cancel = this.#options.clock.after(RECHECK_MS, () => wait.abort());
    try {
      await this.#options.probe.untilHealthy(
        () => ({ url }),
        spec.health_path,
        AbortSignal.any([signal, wait.signal]),
        onProgress,
      );
      this.#unhealthy.delete(userId);
      return true;
    } catch (thrown) {
      signal.throwIfAborted();
      if (wait.signal.aborted) return false;
      throw thrown;
    } finally {
      cancel();
    }
  }

  /** Checks a machine that should be awake; it is stopped when its daemon is not healthy. */
  async #checkAwake(target: ProviderMachine<Spec>, signal: AbortSignal): Promise<string | undefined> {
    const { driver, clock, log } = this.#options;
    let upSince: number | undefined;
    // A router that starts before its engine waits for it.
    const poller = createPoller(driver, {
      clock,
      signal,
      transientErrors: Number.POSITIVE_INFINITY,
      onProgress: ignoreProgress,
    });
    const found = await poller.until(async () => {
      const observation = await driver.observe(target, signal);
      if (observation.state === 'down' || observation.state === 'lost') {
        await this.#forget(target.userId);
        return { url: undefined };
      }
      if (observation.state !== 'up') return undefined;
      if (await this.#isHealthy(observation.url, target, signal, ignoreProgress)) return { url: observation.url };
      upSince ??= clock.monotonic();
      if (clock.monotonic() - upSince < ADOPTION_MS) return undefined;
      log.warn({ user_id: target.userId }, 'stopping an unhealthy machine that is awake');
      await this.#stopRemote(target, 'end');
      return { url: undefined };
    });
    return found.url;
  }

  async #endAfterFailure(target: ProviderMachine<Spec>): Promise<void> {
    try {
      await this.#stopRemote(target, 'end');
    } catch (err) {
      this.#options.log.warn(
        { err, user_id: target.userId },
        'a machine that is no longer needed could not be stopped',
      );
    }
  }

  /** Resolves when the machine does not run. */
  async #stopRemote(target: ProviderMachine<Spec>, how: 'sleep' | 'end'): Promise<void> {
    const { clock, driver, log } = this.#options;
    const text = await stopRemote({ driver, clock, target, how, signal: this.#closing.signal });
    if (text !== undefined) log.info({ user_id: target.userId, state: text }, 'put a machine to sleep');
    await this.#forget(target.userId);
  }

  async #forget(userId: string): Promise<void> {
    this.#unhealthy.delete(userId);
    await this.#options.awake.forget(userId);
  }
}

const STOP_MS = 25_000;
/** A machine that still runs gets another stop request after this time. */
const STOP_AGAIN_MS = 10_000;

type StopOptions<Spec extends RemoteSpec> = {
  driver: RemoteDriver<Spec>;
  clock: Clock;
  target: ProviderMachine<Spec>;
  /** `sleep` follows the specification, `end` stops the machine completely. */
  how: 'sleep' | 'end';
  /** Gives up. */
  signal: AbortSignal;
};

/**
 * Resolves when the machine does not run, with its state in the driver's words, or nothing when it was stopped already.
 *
 * @throws the signal's reason; ReveilleError `internal` in the driver's words when it does not stop in 25 seconds
 */
async function stopRemote<Spec extends RemoteSpec>(options: StopOptions<Spec>): Promise<string | undefined> {
  const { driver, clock, target, how } = options;
  const tooLong = new AbortController();
  const cancel = clock.after(STOP_MS, () => tooLong.abort());
  const signal = AbortSignal.any([options.signal, tooLong.signal]);
  let text = 'its state could not be read';
  const onProgress = (progress: string) => {
    text = progress;
  };
  let requestedAt: number | undefined;
  try {
    await createPoller(driver, { clock, signal, onProgress }).until(async () => {
      const observation = await driver.observe(target, signal);
      onProgress(observation.text);
      if (observation.state === 'down' || observation.state === 'lost') return true;
      if (observation.state === 'changing') return undefined;
      if (requestedAt !== undefined && clock.monotonic() - requestedAt < STOP_AGAIN_MS) return undefined;
      await (observation.state === 'up' ? observation[how] : observation.end)(signal);
      requestedAt = clock.monotonic();
      return undefined;
    });
    return requestedAt === undefined ? undefined : text;
  } catch (cause) {
    options.signal.throwIfAborted();
    const late = tooLong.signal.aborted ? ` (after ${STOP_MS / 1000} s)` : '';
    const why = late === '' && cause instanceof Error ? cause.message : text;
    throw new ReveilleError('internal', `the machine could not be stopped: ${why}${late}`, { cause });
  } finally {
    cancel();
  }
}

/** The pause after the first query; it doubles up to the longest. */
type Pauses = { readonly firstPauseMs: number; readonly longestPauseMs: number };

type PollerOptions = {
  clock: Clock;
  signal: AbortSignal;
  /** The number of consecutive failed queries that end the polling; by default 4. */
  transientErrors?: number;
  /** Receives failures that are retried. */
  onProgress: OnProgress;
};

/** @param pauses the pauses between queries */
function createPoller(pauses: Pauses, options: PollerOptions): Poller {
  const { firstPauseMs, longestPauseMs } = pauses;
  return new Poller({ transientErrors: 4, ...options, firstPauseMs, longestPauseMs });
}

class Poller {
  readonly #options: Required<PollerOptions> & Pauses;
  #failed = 0;
  #pauseMs = 0;
  #atLeastMs = 0;

  constructor(options: Required<PollerOptions> & Pauses) {
    this.#options = options;
  }

  /**
   * Polls until there is a result.
   *
   * @param query returns nothing to be repeated. A `TransientProviderError` is retried, any other error ends the
   *   polling
   * @throws the signal's reason; the error of `query`
   */
  async until<T>(look: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      await this.#pause();
      try {
        const result = await look();
        if (result !== undefined) return result;
        this.#failed = 0;
      } catch (thrown) {
        this.#retryLater(thrown);
      }
    }
  }

  /** The next query follows without a pause. */
  skipPause(): void {
    this.#pauseMs = 0;
  }

  async #pause(): Promise<void> {
    const { clock, signal, firstPauseMs, longestPauseMs } = this.#options;
    const pauseMs = Math.max(this.#pauseMs, this.#atLeastMs);
    if (pauseMs > 0) await wait(clock, pauseMs, signal);
    signal.throwIfAborted();
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, firstPauseMs), longestPauseMs);
    this.#atLeastMs = 0;
  }

  #retryLater(thrown: unknown): void {
    const { signal, transientErrors, onProgress } = this.#options;
    signal.throwIfAborted();
    if (!(thrown instanceof TransientProviderError)) throw thrown;
    if (!thrown.patient) this.#failed++;
    if (this.#failed >= transientErrors) throw thrown;
    onProgress(thrown.message);
    this.#atLeastMs = thrown.retryAfterMs;
  }
}

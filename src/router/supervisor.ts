/**
 * The supervisor of one machine. It separates starting, ready and stopping, so that all waiting wakes share one start.
 * A wake during a stop waits for its end and starts the machine again.
 */
import { type Clock, orAborted, wait } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { inSpan } from '../kit/trace/trace.ts';
import { type DaemonMachine, hasDaemon, type Machine } from './machines/machine.ts';
import type { PendingTurns } from './machines/pending-turns.ts';
import { type HealthProbe, isIdle } from './providers/health.ts';
import type { Daemon, Provider } from './providers/provider.ts';
import { Startup, type StartupOptions, SUPERSEDED } from './startup.ts';

export type SupervisorOptions = {
  providers: Readonly<Record<DaemonMachine['provider'], Provider>>;
  pendingTurns: PendingTurns;
  probe: HealthProbe;
  clock: Clock;
  log: Logger;
  /** The time limit of a start, milliseconds. */
  startLimitMs: number;
  /** Called after each change of {@link Supervisor.phase}. */
  onPhase: (userId: string) => void;
};

/** A ready daemon that is not put to sleep until the lease is released. */
export type Lease = {
  readonly daemon: Daemon;
  /** The machine as recorded now. */
  readonly machine: DaemonMachine;
  /** How long the holder waited for the start; 0 when the daemon already ran. */
  readonly startMs: number;
  /**
   * The daemon accepted a wake: a turn is pending until it is seen idle. Resolves when that is recorded; never rejects.
   */
  accepted(): Promise<void>;
  /** Aborts when the machine is to be stopped, so that endless streams end. */
  readonly ending: AbortSignal;
  release(): void;
};

/** A point in time at which the daemon is unused. The next use invalidates it. */
export type Idleness = {
  readonly daemon: Daemon;
  readonly machine: DaemonMachine;
  readonly sinceMs: number;
  readonly uses: number;
};

type Phase =
  | { name: 'asleep' }
  | { name: 'starting'; startup: Startup }
  | { name: 'ready'; machine: DaemonMachine; daemon: Daemon; removeListener: () => void }
  | { name: 'stopping'; done: Promise<void> };

type Stoppable = { provider: Provider; machine: Machine };

/** How long a stop waits for deliveries that are under way, milliseconds. */
const DRAIN_MS = 3000;

export class Supervisor {
  readonly #userId: string;
  readonly #options: SupervisorOptions;
  #phase: Phase = { name: 'asleep' };
  /** The provider of the last start, with the machine at that time; a stop needs both. */
  #stoppable: Stoppable | undefined;
  readonly #uses: Uses;
  readonly #recovered: Promise<void>;
  #ending = new AbortController();

  /** @param recovered resolves when the machine of an earlier router is known: a start before could be a second daemon */
  constructor(userId: string, options: SupervisorOptions, recovered: Promise<void>) {
    this.#userId = userId;
    this.#options = options;
    this.#recovered = recovered;
    this.#uses = new Uses(options.clock);
  }

  get phase(): Phase['name'] {
    return this.#phase.name;
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#options.onPhase(this.#userId);
  }

  /** The progress of a start under way, in the provider's words. */
  get waitsFor(): string | undefined {
    return this.#phase.name === 'starting' ? this.#phase.startup.waitsFor : undefined;
  }

  /**
   * Waits until the machine is ready, and starts it unless a start is under way.
   *
   * @param current reads the machine; called again after every wait, as the machine may have changed meanwhile. Its
   *   error ends the wait
   * @param signal ends this caller's wait and not the start
   * @throws the signal's reason; the error of `current`; ReveilleError `unavailable` when the machine could not be
   *   started
   */
  async acquire(current: () => DaemonMachine, signal: AbortSignal): Promise<Lease> {
    let startMs = 0;
    await orAborted(this.#recovered, signal);
    for (;;) {
      signal.throwIfAborted();
      const machine = current();
      this.refresh(machine);
      const phase = this.#phase;
      if (phase.name === 'ready' && this.#isTrusted()) return this.#lease(phase.daemon, machine, startMs);
      if (phase.name === 'ready') this.#endReady(phase);
      if (phase.name === 'stopping') await orAborted(phase.done, signal);
      else startMs = await orAborted(phase.name === 'starting' ? phase.startup.outcome : this.#start(machine), signal);
    }
  }

  /** Adopts the running daemon of an earlier router; it is stopped when it is not healthy. */
  adopt(machine: DaemonMachine): void {
    const provider = this.#providerOf(machine);
    void this.#begin({ provider, machine }, (signal) => provider.adopt(machine, signal));
  }

  /** Stops the processes that `provider` still runs for a machine that was replaced, suspended or deleted. */
  evict(provider: Provider, machine: Machine): Promise<void> {
    this.#stoppable = { provider, machine };
    return this.stop();
  }

  /** Applies a changed machine: a daemon that does not match it any more is stopped, in the background. */
  refresh(machine: Machine): void {
    const stoppable = this.#stoppable;
    if (!stoppable || this.#phase.name === 'stopping') return;
    const { provider } = stoppable;
    const same =
      provider.name === machine.provider && provider.fingerprint(stoppable.machine) === provider.fingerprint(machine);
    if (!same) void this.stop();
    else if (this.#phase.name === 'ready' && hasDaemon(machine)) this.#phase.machine = machine;
  }

  /** The daemon did not answer correctly: the provider checks it before its next use. */
  checkBeforeUse(daemon: Daemon): void {
    if (this.#phase.name === 'ready' && this.#phase.daemon === daemon) this.#endReady(this.#phase);
  }

  /**
   * Stops the machine: deliveries under way may finish, new wakes wait. Joins a stop that is under way. Resolves when
   * it sleeps; a failed stop is logged.
   */
  stop(): Promise<void> {
    if (this.#phase.name === 'stopping') return this.#phase.done;
    return this.#stoppable ? this.#stop(this.#stoppable, SUPERSEDED) : Promise.resolve();
  }

  /** Releases the machine when the router closes: stops it, unless it outlives the router. */
  async close(): Promise<void> {
    if (!this.#stoppable?.provider.outlivesRouter) await this.stop();
  }

  /**
   * Since when the ready machine is unused; `undefined` while it is in use or not ready, and for one that never sleeps.
   */
  idleness(): Idleness | undefined {
    if (this.#phase.name !== 'ready' || this.#uses.now > 0 || !this.#stoppable?.provider.sleeps) return undefined;
    const { daemon, machine } = this.#phase;
    return { daemon, machine, sinceMs: this.#uses.lastAt, uses: this.#uses.total };
  }

  /**
   * Whether the machine has a pending turn: its daemon accepted a wake and has not been seen idle since, or has a turn
   * to retry by now.
   */
  get hasPendingTurn(): boolean {
    return this.#options.pendingTurns.isDue(this.#userId, this.#options.clock.now());
  }

  /**
   * The daemon reported that it is idle. If it was not used since `idleness` was taken, no turn is pending except one
   * that it retries at `nextTurnAt`, epoch milliseconds.
   */
  markIdle(idleness: Idleness, nextTurnAt: number | undefined): boolean {
    if (!this.#isUnchanged(idleness)) return false;
    this.#updatePendingTurn(nextTurnAt);
    return true;
  }

  #updatePendingTurn(nextTurnAt: number | undefined): void {
    const { pendingTurns } = this.#options;
    if (nextTurnAt === undefined) pendingTurns.remove(this.#userId);
    else pendingTurns.setRetry(this.#userId, nextTurnAt);
  }

  /** The daemon failed a health check. Only a provider that cannot notice the end of a daemon checks it again. */
  healthCheckFailed(idleness: Idleness): void {
    if (this.#isUnchanged(idleness) && this.#stoppable?.provider.trustMs !== undefined)
      this.checkBeforeUse(idleness.daemon);
  }

  /** Stops the machine if it has been idle since `idleness` was taken. */
  stopIfIdle(idleness: Idleness): boolean {
    if (!this.#isUnchanged(idleness)) return false;
    void this.stop();
    return true;
  }

  #isUnchanged(idleness: Idleness): boolean {
    const now = this.idleness();
    return now?.uses === idleness.uses && now.daemon === idleness.daemon;
  }

  #providerOf(machine: DaemonMachine): Provider {
    return this.#options.providers[machine.provider];
  }

  #start(machine: DaemonMachine): Promise<number> {
    const provider = this.#providerOf(machine);
    const facts = () => ({ attributes: { 'reveille.machine.provider': machine.provider } });
    // In the trace of the first wake that waits for it.
    return this.#begin({ provider, machine }, (signal, onProgress) =>
      inSpan('start machine', facts, () => provider.start(machine, signal, onProgress)),
    );
  }

  /** Whether the ready daemon may be used without another check. */
  #isTrusted(): boolean {
    const { trustMs } = this.#stoppable?.provider ?? {};
    // A delivery under way replaces a check.
    if (trustMs === undefined || this.#uses.now > 0) return true;
    return this.#options.clock.monotonic() - this.#uses.lastAt <= trustMs;
  }

  /** Runs a provider's start or adoption in the phase `starting`. @returns its outcome, see {@link Startup} */
  #begin(stoppable: Stoppable & { machine: DaemonMachine }, run: StartupOptions['run']): Promise<number> {
    const { clock, startLimitMs, log } = this.#options;
    const startup = new Startup({
      run,
      clock,
      limitMs: startLimitMs,
      onLate: (error) => void this.#stop(stoppable, error),
      onReady: (daemon) => (daemon ? this.#becomeReady(stoppable.machine, daemon) : this.#becomeAsleep()),
      onFailed: (err) => {
        this.#becomeAsleep();
        log.warn({ err, user_id: this.#userId }, 'a machine could not be started');
      },
    });
    this.#enter({ name: 'starting', startup });
    this.#stoppable = stoppable;
    return startup.outcome;
  }

  #becomeReady(machine: DaemonMachine, daemon: Daemon): void {
    const onGone = () => this.checkBeforeUse(daemon);
    daemon.gone.addEventListener('abort', onGone);
    const removeListener = () => daemon.gone.removeEventListener('abort', onGone);
    this.#uses.begin();
    const phase = { name: 'ready', machine, daemon, removeListener } as const;
    this.#enter(phase);
    if (daemon.gone.aborted) this.#endReady(phase);
  }

  /** From ready to asleep, as far as known. `#stoppable` stays, so that a stop still ends possible processes. */
  #endReady(phase: Extract<Phase, { name: 'ready' }>): void {
    phase.removeListener();
    this.#enter({ name: 'asleep' });
  }

  #becomeAsleep(): void {
    this.#enter({ name: 'asleep' });
    this.#stoppable = undefined;
  }

  #stop(stoppable: Stoppable, reason: Error): Promise<void> {
    const before = this.#phase;
    this.#ending.abort();
    this.#ending = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#enter({ name: 'stopping', done });
    const ended = async () => {
      if (before.name === 'ready') before.removeListener();
      if (before.name === 'starting') {
        before.startup.cancel(reason);
        await before.startup.settled;
      }
      await this.#uses.free(DRAIN_MS);
      if (before.name === 'ready') await this.#drainCheck(before);
      await stoppable.provider.stop(stoppable.machine);
    };
    void ended()
      .then(
        () => this.#becomeAsleep(),
        (err: unknown) => {
          // `#stoppable` stays: the next start or stop tries again.
          this.#enter({ name: 'asleep' });
          this.#options.log.error({ err, user_id: this.#userId }, 'a machine could not be stopped');
        },
      )
      .then(resolve);
    return done;
  }

  #lease(daemon: Daemon, machine: DaemonMachine, startMs: number): Lease {
    const accepted = async () => {
      if (this.#providerOf(machine).sleeps) await this.#options.pendingTurns.add(this.#userId);
    };
    return { daemon, machine, startMs, accepted, ending: this.#ending.signal, release: this.#uses.take() };
  }

  /** A daemon that is stopped while idle is not restarted for its accepted turns. */
  #drainCheck({ daemon, machine }: Extract<Phase, { name: 'ready' }>): Promise<void> {
    const { clock, probe } = this.#options;
    const onIdle = (nextTurnAt: number | undefined) => {
      if (this.#uses.now === 0) this.#updatePendingTurn(nextTurnAt);
    };
    return drainCheck({ daemon, machine, hasPendingTurn: () => this.hasPendingTurn, onIdle, probe, clock });
  }
}

/** How long a stop waits for it, and how often it checks, milliseconds. */
const LIMIT_MS = 1000;
const EVERY_MS = 50;

type DrainCheckOptions = {
  daemon: Daemon;
  machine: DaemonMachine;
  /** Whether a caller still waits for the result. */
  hasPendingTurn: () => boolean;
  /** The daemon reported that it is idle, and when it retries a turn. */
  onIdle: (nextTurnAt: number | undefined) => void;
  probe: HealthProbe;
  clock: Clock;
};

/** Polls until the daemon is idle or has ended, for at most a second. Never rejects. */
async function drainCheck(options: DrainCheckOptions): Promise<void> {
  const { daemon, machine, hasPendingTurn, onIdle, probe, clock } = options;
  const over = new AbortController();
  const cancel = clock.after(LIMIT_MS, () => over.abort(new Error(`not idle within ${LIMIT_MS} ms`)));
  while (hasPendingTurn() && !daemon.gone.aborted && !over.signal.aborted) {
    const health = await probe.check(daemon, machine.spec.health_path, over.signal);
    if (isIdle(health)) onIdle(health.nextTurnAt);
    if (hasPendingTurn()) await wait(clock, EVERY_MS, over.signal);
  }
  cancel();
}

/** Counts the current and total uses of a ready daemon, and since when it is unused. */
class Uses {
  readonly #clock: Clock;
  #now = 0;
  #total = 0;
  #lastAt = 0;
  #whenFree: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The number of current uses. */
  get now(): number {
    return this.#now;
  }

  /** The number of all uses, including current ones: a changed number shows a use in between. */
  get total(): number {
    return this.#total;
  }

  /** When the last use ended or, if there was none since, the daemon became ready; monotonic milliseconds. */
  get lastAt(): number {
    return this.#lastAt;
  }

  /** The daemon is ready: the time without use counts from here. */
  begin(): void {
    this.#lastAt = this.#clock.monotonic();
  }

  /** @returns ends this use; calling it again has no effect */
  take(): () => void {
    this.#now++;
    this.#total++;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#now--;
      this.#lastAt = this.#clock.monotonic();
      if (this.#now === 0) this.#whenFree();
    };
  }

  /** Resolves when the daemon is unused, or after `limitMs`. */
  async free(limitMs: number): Promise<void> {
    if (this.#now === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(limitMs, resolve);
      this.#whenFree = () => {
        cancel();
        resolve();
      };
    });
    this.#whenFree = () => {};
  }
}

/**
 * The provider port: how a machine of one kind is started and put to sleep. Its comments are its contract.
 *
 * Calls about one machine never overlap: the machine's supervisor (`supervisor.ts`) makes the next call after the last
 * has settled. Calls about different machines overlap, and none may delay another.
 */
import { ReveilleError } from '../../wire/errors.ts';
import type { DaemonConnections } from './daemon-connections.ts';

/** A machine as its provider sees it. The token of its daemon must not be repeated; it is empty when unknown. */
export type ProviderMachine<Spec extends object = object> = {
  readonly userId: string;
  readonly provider: string;
  readonly spec: Spec;
  readonly token: string;
};

/**
 * A machine with the specification that the registry checked for its provider.
 *
 * @throws ReveilleError `internal` for a machine of another provider
 */
export function machineOf<Spec extends object>(provider: string, machine: ProviderMachine): ProviderMachine<Spec> {
  if (machine.provider === provider) return machine as ProviderMachine<Spec>;
  const message = `internal error: a machine of provider ${machine.provider} was passed to provider ${provider}`;
  throw new ReveilleError('internal', message);
}

export type DaemonAddress = {
  /** Its base address; `/chat` is below it. It comes from the provider or the operator, never from a wake. */
  readonly url: string;
  /** Connections that reach only this daemon; without them, the router's shared ones are used. */
  readonly connections?: DaemonConnections | undefined;
};

/** A daemon that can take a turn now. */
export type Daemon = DaemonAddress & {
  /**
   * Aborts when the provider notices the end of the daemon. A provider that cannot notice it never aborts; the router
   * then learns it from a refused connection.
   */
  readonly gone: AbortSignal;
  /** Whether this start started it; `false` when it ran already. */
  readonly cold: boolean;
};

/**
 * Receives the reason why a start waits, in the provider's words (`the Fly machine is replacing`). The error of a start
 * that takes too long quotes the last one. Never a secret.
 */
export type OnProgress = (progress: string) => void;

export type Provider = {
  readonly name: string;

  /** Whether `stop` has an effect, so that an idle machine may be put to sleep; `false` for an always-on machine. */
  readonly sleeps: boolean;

  /**
   * Whether its machines continue when the router ends, cleanly or not, and the next router adopts them. Without it
   * they are stopped when the router closes.
   */
  readonly outlivesRouter?: boolean;

  /**
   * How long after its last use a ready daemon may be used without a check, in milliseconds; then `start` checks it.
   * Without it, until the provider reports its end.
   */
  readonly trustMs?: number;

  /**
   * A digest of everything that a running daemon depends on. While it is equal, a changed machine keeps its daemon;
   * otherwise the daemon is stopped and started again.
   */
  fingerprint(machine: ProviderMachine): string;

  /**
   * Starts the machine and resolves when its daemon is healthy (its `health_path` answered 2xx). Idempotent: it returns
   * a daemon that runs and joins a start that is under way elsewhere. A machine never has two daemons: the remains of
   * an earlier one are stopped first.
   *
   * Rejects with `unavailable` in the provider's words when the machine cannot be started. When `signal` aborts, the
   * started parts are stopped; then the promise rejects with the signal's reason. The caller answers its own callers
   * without waiting for that.
   */
  start(machine: ProviderMachine, signal: AbortSignal, onProgress: OnProgress): Promise<Daemon>;

  /** The user ids of machines that an earlier router left running. Called once, before any other call. */
  survivors(): readonly string[];

  /**
   * Adopts a machine of {@link survivors}. Resolves with the daemon when it is healthy and was started from exactly
   * this machine; otherwise stops it and resolves with `undefined`. Ends like {@link start} when `signal` aborts.
   */
  adopt(machine: ProviderMachine, signal: AbortSignal): Promise<Daemon | undefined>;

  /**
   * Puts the machine to sleep: requests its end, waits a bounded time, then ends it by force. Resolves when no process
   * of it runs; harmless when none did. Safe at any time, also for a changed or deleted machine.
   *
   * Rejects with `internal` when it could not be ended.
   */
  stop(machine: ProviderMachine): Promise<void>;

  /**
   * Releases timers, connections and pending waits. Every machine that does not outlive the router has been stopped
   * before.
   */
  close(): void;
};

/** A missing program or folder, a program that cannot be started, or a server that refuses connections. */
export class MachineUnavailable extends ReveilleError {
  constructor(message: string) {
    super('unavailable', message);
  }
}

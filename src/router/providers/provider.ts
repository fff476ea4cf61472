/**
 * The provider port: how a machine of one kind is brought up and put to sleep. Its comments are its contract.
 *
 * Calls about one machine never overlap: the machine's supervisor (`supervisor.ts`) makes the next one when the last
 * has settled. Calls about different machines do overlap, and none may hold up another.
 */
import { ReveilleError } from '../../wire/errors.ts';
import type { DaemonMachine, Machine } from '../machines/machine.ts';
import type { Line } from './line.ts';

/** Where a daemon is reached. */
export type Place = {
  /** Its base address; `/chat` stands below it. It comes from the provider or the operator, never from a wake. */
  readonly url: string;
  /** The connections that reach it and nobody else, which are to be used then; without it, the router's common ones. */
  readonly line?: Line | undefined;
};

/** A daemon that can take a turn now. */
export type Daemon = Place & {
  /**
   * Aborts when the provider notices that the daemon no longer runs. A provider that is not told never aborts it; the
   * router then learns it from a refused connection.
   */
  readonly gone: AbortSignal;
  /** Whether this start brought it up; `false` when it ran already. */
  readonly cold: boolean;
};

/**
 * Hears what a start waits for, in the provider's own words (`the Fly machine is replacing`). The last of it stands in
 * the error of a start that takes too long. Never a secret.
 */
export type Tell = (words: string) => void;

export type Provider = {
  readonly name: DaemonMachine['provider'];

  /**
   * Whether `stop` ends something, so that an idle machine may be put to sleep; `false` for a machine that is always
   * on.
   */
  readonly sleeps: boolean;

  /**
   * Whether its machines run on when the router ends, cleanly or not, to be found again by the next one; without it
   * they are stopped when the router closes.
   */
  readonly outlivesRouter?: boolean;

  /**
   * How long after its last use a ready daemon may be handed out unseen, in milliseconds; then `start` looks at it
   * again. Without it, for as long as nothing is heard of its end.
   */
  readonly trustMs?: number;

  /**
   * Names what a running daemon depends on. While it stays the same, a changed machine keeps its daemon; when it
   * differs, the daemon is stopped and started anew.
   */
  fingerprint(machine: Machine): string;

  /**
   * Brings the machine up and resolves when its daemon is healthy (its `health_path` answered 2xx). Idempotent: a
   * daemon that runs is found to be healthy and handed back, a start that is under way elsewhere is joined. There is
   * never a second daemon of a machine: what is left of an earlier one is stopped first.
   *
   * Rejects with `unavailable` in the provider's own words when the machine cannot be brought up. When `signal` aborts,
   * what was begun is stopped, and then the promise rejects with the signal's reason; the caller does not wait for that
   * to answer anybody.
   */
  start(machine: Machine, signal: AbortSignal, tell: Tell): Promise<Daemon>;

  /**
   * The user ids of machines that a router before this one left running. Asked once, before any other call.
   */
  survivors(): readonly string[];

  /**
   * Takes over what {@link survivors} named: resolves with the daemon when it is healthy and was started from this very
   * machine; otherwise stops it and resolves with `undefined`. Ends like {@link start} when `signal` aborts.
   */
  adopt(machine: Machine, signal: AbortSignal): Promise<Daemon | undefined>;

  /**
   * Puts the machine to sleep: asks it to end, waits a bounded time, then ends it by force. Resolves when nothing of it
   * runs any more; harmless when nothing did. Safe at any time, also for a machine whose specification has changed or
   * that was deleted.
   *
   * Rejects with `internal` when it could not be ended.
   */
  stop(machine: Machine): Promise<void>;

  /**
   * Gives up timers, connections and waiting; every machine that does not outlive the router has been stopped before.
   */
  close(): void;
};

/** A program or a folder that is missing, a program that cannot be started, a server that nobody listens at. */
export class MachineUnavailable extends ReveilleError {
  constructor(message: string) {
    super('unavailable', message);
  }
}

/**
 * The two ports of targets, and the outcomes of a turn. Their comments are their contract.
 *
 * A {@link TurnTarget} executes turns: the router begins each one, waits for its end and stores its result. Calls about
 * one conversation never overlap. A {@link DirectTarget} accepts a wake within the wake's own time, recognizes
 * repetitions by the fire id, and reports no later result.
 */
import type { Wake } from '../../wire/wake.ts';
import type { CommandMachine } from '../machines/machine.ts';
import type { Preset } from './preset.ts';
import type { Turn } from './turn.ts';

/** The outcome of one attempt at a turn. `session`: the target's conversation from now on, if known. */
export type Outcome =
  | { result: 'done'; reply?: string | undefined; session?: string | undefined }
  /** It ran and failed, or was rejected permanently. */
  | { result: 'failed'; error: string; reply?: string | undefined; session?: string | undefined }
  /** It may have run, and its outcome cannot be determined. */
  | { result: 'unknown'; error: string; session?: string | undefined }
  /** It certainly did not run, and may later. */
  | { result: 'not_started'; why: string; retryAfterMs?: number | undefined }
  /** It certainly did not run: the target does not know the session. */
  | { result: 'no_session'; why: string };

/** Why a turn is ended early; the reason of {@link Attempt.signal}. */
export class TurnEnd extends Error {}

/** One attempt at a turn. */
export type Attempt = {
  readonly turn: Turn;
  /** The prompt for the agent. */
  readonly prompt: string;
  /** The conversation to continue; without it a new one begins. */
  readonly session: string | undefined;
  readonly cwd: string | undefined;
  /** A variable in the environment of started programs. */
  readonly spawnId: string;
  /**
   * When it began, epoch milliseconds; also of an attempt that an earlier router began. Before the start, the current
   * time.
   */
  readonly startedAt: number;
  /** Aborts with a {@link TurnEnd} when the turn is to be ended. */
  readonly signal: AbortSignal;
  /**
   * Records the start of the attempt. `run` calls it once, right before the first action that may have an effect. If
   * the router dies before, the turn can be begun again. Rejects when it cannot be stored; then no turn may begin.
   */
  begin(): Promise<void>;
  /** Records the attempt's process. Throws when it cannot be stored. */
  recordProcess(pid: number, birth: string): void;
  /** Stores the target's names of the conversation and the turn; resolves with whether they are on disk. */
  storeNames(names: { session?: string; handle?: string }): Promise<boolean>;
};

export type TurnTarget = {
  /**
   * Whether turns continue without the router. A closing router leaves such turns to the next one, and ends the others.
   */
  readonly outlivesRouter: boolean;

  /**
   * Checks before a turn is accepted whether it could begin now.
   *
   * Rejects with `unavailable` or `invalid_request` and a readable message when a requirement is missing.
   */
  check(prompt: string, cwd: string | undefined): Promise<void>;

  /**
   * Begins a turn and waits for its end. Ends it when the signal aborts. Does not reject for failures of the target.
   */
  run(attempt: Attempt): Promise<Outcome>;

  /**
   * Finds the outcome of a turn that an earlier router began. It waits for the end of a running one, like {@link run},
   * and never begins it again.
   */
  resume(attempt: Attempt): Promise<Outcome>;

  /** The turn's end is recorded: its files and records may be deleted. */
  settled(turn: Turn): Promise<void>;
};

/** The outcome of delivering a wake. */
export type DeliveryOutcome =
  | { result: 'accepted'; handle?: string | undefined }
  /** No turn began; it may be tried again. */
  | { result: 'not_started'; why: string; retryAfterSeconds?: number | undefined }
  /** The target refuses connections; it may be tried again. */
  | { result: 'not_there'; why: string }
  /** No turn began, and the next attempt fails as well unless a person changes something. */
  | { result: 'refused'; why: string }
  /** It may have been accepted; the fire id identifies another attempt. */
  | { result: 'unknown'; why: string }
  /** The receiver is permanently gone. */
  | { result: 'gone'; why: string };

export type DirectTarget = {
  /** @param signal ends the attempt; a wake that may have been sent by then is `unknown`. Never rejects. */
  deliver(wake: Wake, turn: Turn, prompt: string, signal: AbortSignal): Promise<DeliveryOutcome>;
};

/** Creates the target of a machine. */
export type TargetMaker<P extends Preset, T> = (preset: P, machine: CommandMachine) => T;

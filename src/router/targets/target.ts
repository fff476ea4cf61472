/**
 * The two ports behind which targets stand, and what may come of a turn. Their comments are their contract.
 *
 * A {@link TurnTarget} is worked with turn by turn: the router begins each one, waits for its end and keeps its result.
 * Calls about one conversation never overlap. A {@link DirectTarget} takes a wake within the wake's own time, tells
 * repetitions apart by the fire id, and says no more.
 */
import type { Wake } from '../../wire/wake.ts';
import type { CommandMachine } from '../machines/machine.ts';
import type { Preset } from './preset.ts';
import type { Turn } from './turn.ts';

/** What came of one attempt at a turn. `session`: the target's conversation from now on, where it is known. */
export type Outcome =
  | { result: 'done'; reply?: string | undefined; session?: string | undefined }
  /** It ran and failed, or it was refused for good. */
  | { result: 'failed'; error: string; reply?: string | undefined; session?: string | undefined }
  /** It may have run, and what came of it cannot be found out. */
  | { result: 'unknown'; error: string; session?: string | undefined }
  /** It certainly did not run, and may later. */
  | { result: 'not_started'; why: string; retryAfterMs?: number | undefined }
  /** It certainly did not run: the target does not know the session. */
  | { result: 'no_session'; why: string };

/** Why a turn is ended before its time; the reason of {@link Attempt.signal}. */
export class Ended extends Error {}

/** One attempt at a turn. */
export type Attempt = {
  readonly turn: Turn;
  /** What the agent is to read. */
  readonly words: string;
  /** The conversation that is to go on; without it one begins. */
  readonly session: string | undefined;
  readonly cwd: string | undefined;
  /** Stands in the environment of what is started. */
  readonly spawnId: string;
  /** When it began, epoch milliseconds; also of an attempt that an earlier router began. Before it has begun, now. */
  readonly startedAt: number;
  /** Aborts with an {@link Ended} when the turn is to be ended. */
  readonly signal: AbortSignal;
  /**
   * Puts on record that the attempt begins: to be called by `run` once, right before the first thing that may have an
   * effect. Up to here a router that dies leaves a turn that can be begun anew. Rejects when it cannot be stored; then
   * nothing may be begun.
   */
  begin(): Promise<void>;
  /** Puts the attempt's process on record. Throws when that cannot be stored. */
  born(pid: number, birth: string): void;
  /** Keeps what the target calls the conversation and the turn; resolves with whether that is on disk. */
  name(names: { session?: string; handle?: string }): Promise<boolean>;
};

export type TurnTarget = {
  /** Whether turns go on without the router: one that closes leaves them to the next one, and ends the others. */
  readonly outlivesRouter: boolean;

  /**
   * Before a turn is accepted: whether it could be begun now.
   *
   * Rejects with `unavailable` or `invalid_request` in words for a person when something is missing.
   */
  check(words: string, cwd: string | undefined): Promise<void>;

  /** Begins a turn and waits for its end. Ends it when the signal aborts. Does not reject for what the target does. */
  run(attempt: Attempt): Promise<Outcome>;

  /**
   * Finds out what came of a turn that an earlier router began: waits for its end when it still runs, like {@link run},
   * and never begins it anew.
   */
  resume(attempt: Attempt): Promise<Outcome>;

  /** The turn's end is on record: nothing of it need be kept any more. */
  settled(turn: Turn): Promise<void>;
};

/** What came of handing over a wake. */
export type Handover =
  | { result: 'accepted'; handle?: string | undefined }
  /** Nothing ran; it may be tried again. */
  | { result: 'not_started'; why: string; retryAfterSeconds?: number | undefined }
  /** Nobody listens where it should be handed over; it may be tried again. */
  | { result: 'not_there'; why: string }
  /** Nothing ran, and the next attempt fares no better unless somebody changes something. */
  | { result: 'refused'; why: string }
  /** It may have been accepted; another attempt is told apart by its fire id. */
  | { result: 'unknown'; why: string }
  /** There is nobody there any more, for good. */
  | { result: 'gone'; why: string };

export type DirectTarget = {
  /** @param signal ends the attempt; a wake that may have left by then is `unknown`. Never rejects. */
  deliver(wake: Wake, turn: Turn, words: string, signal: AbortSignal): Promise<Handover>;
};

/** Makes the target of a machine. */
export type TargetMaker<P extends Preset, T> = (preset: P, machine: CommandMachine) => T;

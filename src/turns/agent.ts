/**
 * The port of an agent that executes turns. Its comments are its contract.
 *
 * The engine begins each turn, waits for its end and stores its result. Calls about one conversation never overlap.
 */
import type { Outcome, Turn } from './turn.ts';

/** Why a turn is ended early; the reason of {@link Attempt.signal}. */
export class TurnEnd extends Error {}

/** A person has ended the turn permanently. */
export class TurnCancelled extends TurnEnd {
  constructor() {
    super('was cancelled on request');
    this.name = 'TurnCancelled';
  }
}

/** The process stops. An agent whose turn can continue without it answers `left`; it ends others. */
export class ProcessStops extends TurnEnd {
  constructor(owner: string) {
    super(`was ended because ${owner} was stopped`);
    this.name = 'ProcessStops';
  }
}

export type Attempt = {
  /** The turn as it is stored; `begin` replaces it. */
  readonly turn: Turn;
  readonly prompt: string;
  /** The conversation to continue; without it a new one begins. */
  readonly session: string | undefined;
  readonly cwd: string | undefined;
  /** A variable in the environment of started programs. */
  readonly spawnId: string;
  /**
   * When it began, epoch milliseconds; also of an attempt that an earlier process began. Before the start, the current
   * time.
   */
  readonly startedAt: number;
  /** Aborts with a {@link TurnEnd} when the turn is to be ended. */
  readonly signal: AbortSignal;
  /**
   * Records the start of the attempt. `run` calls it once, right before the first action that may have an effect. If
   * the process dies before, the turn can be begun again. `resume` calls it only when the agent can begin the turn again
   * without repeating an effect. Rejects when it cannot be stored; then no turn may begin.
   *
   * @param isCertain whether the turn runs from here on in any case: its start is reported at once, not only when it has
   *   lasted for a while
   */
  begin(isCertain?: boolean): Promise<void>;
  /** Repeats a write until the disk accepts it. Rejects when the engine stops, or when a repetition cannot help. */
  persist<T>(write: () => Promise<T>): Promise<T>;
  /** Records the attempt's process. Throws when it cannot be stored. */
  recordProcess(pid: number, birth: string): void;
  /** Stores the agent's names of the conversation and the turn; resolves with whether they are on disk. */
  storeNames(names: { session?: string; handle?: string }): Promise<boolean>;
};

export type Agent = {
  /**
   * Whether turns continue without this process. An engine that stops leaves such turns to the next one, and ends the
   * others, unless their outcome is `left`.
   */
  readonly outlivesProcess: boolean;

  /**
   * Checks before a turn is accepted whether it could begin now.
   *
   * Rejects with `unavailable` or `invalid_request` and a readable message when a requirement is missing.
   */
  check(prompt: string, cwd: string | undefined): Promise<void>;

  /**
   * Begins a turn and waits for its end. Ends it when the signal aborts. Does not reject for failures of the agent.
   */
  run(attempt: Attempt): Promise<Outcome>;

  /**
   * Finds the outcome of a turn that an earlier process began. It waits for the end of a running one, like {@link run}.
   * Only an agent with a journal of the turn begins it again.
   */
  resume(attempt: Attempt): Promise<Outcome>;

  /** The turn's end is recorded: its files and records may be deleted. */
  settled(turn: Turn): Promise<void>;
};

/** An agent for one turn, and how the turn is run. */
export type Worker = {
  readonly agent: Agent;
  /** The agent's name in messages. */
  readonly name: string;
  readonly prompt: string;
  /** The folder of a new conversation. */
  readonly cwd?: string | undefined;
  /** The session of a conversation without a stored one: only the form of its name suggests that it is a session. */
  readonly guessedSession?: string | undefined;
  /** When the agent has lost a session, a new one replaces it; otherwise the turn fails. */
  readonly replacesLostSession?: boolean;
  /** How long a turn may wait until it starts, milliseconds; 6 hours by default. */
  readonly waitMs?: number | undefined;
};

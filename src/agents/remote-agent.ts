/** An agent that is a server of its own, reached over HTTP: its turns continue without the router. */
import type { Dispatcher } from 'undici';
import { type Clock, wait, within } from '../kit/clock/clock.ts';
import type { CommandMachine } from '../router/machines/machine.ts';
import { type Agent, type Attempt, TurnEnd } from '../turns/agent.ts';
import type { Outcome } from '../turns/turn.ts';

export type RemoteAgentOptions = { dispatcher: Dispatcher; clock: Clock };

const DEFAULT_TIMEOUT_SECONDS = 3600;
/** The time limit of all calls except the turn itself, milliseconds. */
const REQUEST_MS = 15_000;
const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 10_000;

/** How a turn is followed. The texts begin the errors of a turn whose outcome is not found. */
type Following = {
  session: string | undefined;
  /** Whether the first query waits. */
  isBegun: boolean;
  aborted: string;
  tooLong: string;
};

export abstract class RemoteAgent implements Agent {
  readonly outlivesProcess = true;
  protected readonly dispatcher: Dispatcher;
  protected readonly machine: CommandMachine;
  readonly #clock: Clock;
  readonly #limitSeconds: number;

  constructor(
    { dispatcher, clock }: RemoteAgentOptions,
    preset: { timeout_seconds?: number | undefined },
    machine: CommandMachine,
  ) {
    this.dispatcher = dispatcher;
    this.machine = machine;
    this.#clock = clock;
    this.#limitSeconds = machine.spec.timeout_seconds ?? preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
  }

  abstract check(prompt: string, cwd: string | undefined): Promise<void>;
  abstract run(attempt: Attempt): Promise<Outcome>;
  abstract resume(attempt: Attempt): Promise<Outcome>;

  settled(): Promise<void> {
    return Promise.resolve();
  }

  /** Makes a call that is not the turn itself. */
  protected soon<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return within(this.#clock, REQUEST_MS, signal, work);
  }

  /** Makes a call that may take as long as the turn. */
  protected inTurn<T>(attempt: Attempt, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return within(this.#clock, this.#leftMs(attempt), attempt.signal, work);
  }

  /**
   * Queries until the outcome of a turn is known, the turn is ended, or its time limit has passed.
   *
   * @param look returns the outcome, or why there is none yet
   */
  protected async follow(
    attempt: Attempt,
    { session, isBegun, aborted, tooLong }: Following,
    look: () => Promise<Outcome | string>,
  ): Promise<Outcome> {
    const { signal } = attempt;
    const unknown = (error: string): Outcome => ({ status: 'unknown', session, error });
    if (isBegun) await wait(this.#clock, FIRST_POLL_MS, signal);
    for (
      let pauseMs = isBegun ? 2 * FIRST_POLL_MS : FIRST_POLL_MS;
      ;
      pauseMs = Math.min(2 * pauseMs, LONGEST_POLL_MS)
    ) {
      if (signal.aborted) return unknown(`${aborted}: it was given up when it ${reasonIn(signal)}`);
      const found = await look();
      if (typeof found !== 'string') return found;
      if (this.#leftMs(attempt) <= 0) return unknown(`${tooLong} (${found})`);
      await wait(this.#clock, pauseMs, signal);
    }
  }

  #leftMs({ startedAt }: Attempt): number {
    return startedAt + this.#limitSeconds * 1000 - this.#clock.now();
  }
}

const reasonIn = ({ reason }: AbortSignal) => (reason instanceof TurnEnd ? reason.message : String(reason));

/** One run of an intent: it records envelopes, waits for changes, and knows whether it may still start something. */
import { untilStored } from '../../kit/clock/backoff.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Intent } from '../../wire/intent.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import type { Compiler } from '../compile/compiler.ts';
import type { ProposeEntries } from '../journal/chains.ts';
import type { Journal } from '../journal/journal.ts';
import type { Policy } from '../policy/policy.ts';
import { type ChainState, intentOf, isFinal } from '../receipt/chain-state.ts';
import type { Toolbox } from '../tools/toolbox.ts';

export type RailParts = {
  readonly journal: Journal;
  readonly toolbox: Toolbox;
  readonly policy: Policy;
  readonly compiler: Compiler;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long tools are queried for the outcome of a call whose answer was lost; 60 seconds by default. */
  readonly reconcileMs?: number;
  /**
   * Whether agents can be woken; true by default. Without it no intent is parked, so no agent ends its turn waiting for
   * an alarm that never comes.
   */
  readonly canWake?: boolean;
};

/** This run ends: the intent is final, is being cancelled, or is left to the next process. */
export class RunStopped extends Error {
  constructor() {
    super('this run has stopped');
  }
}

/** The intent cannot continue; its end is to be recorded. */
export class IntentFailure extends Error {
  /** Machine-readable: `denied`, `tool_failed` and so on. */
  readonly code: string;

  /** @param reason a sentence for people */
  constructor(code: string, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** Pauses before a failed write to the journal is retried. */
const STORE_RETRY_MS = [100, 500, 2000, 10_000];
/** Stored instants are compared with the clock this often: wall clocks jump, and timers stop while a laptop sleeps. */
const POLL_MS = 15_000;

export class IntentRun {
  readonly intentId: string;
  readonly parts: RailParts;
  /** Aborts when even work in progress is abandoned. */
  readonly shutdownSignal: AbortSignal;
  readonly #stop = new AbortController();

  /** @param shutdownSignal aborts when the process shuts down */
  constructor(parts: RailParts, intentId: string, shutdownSignal: AbortSignal) {
    this.parts = parts;
    this.intentId = intentId;
    this.shutdownSignal = shutdownSignal;
  }

  /** Starts nothing new; work in progress completes. */
  stop(): void {
    this.#stop.abort(new RunStopped());
  }

  /** Aborts when nothing new may start. */
  get stopSignal(): AbortSignal {
    return this.#stop.signal;
  }

  state(): ChainState {
    return this.parts.journal.loadAny(this.intentId).state;
  }

  intent(): Intent {
    const intent = intentOf(this.state());
    if (!intent) throw new ReveilleError('internal', `the intent ${this.intentId} has not been compiled`);
    return intent;
  }

  /** No call starts after this instant, milliseconds since the epoch. */
  deadline(): number {
    const { deadline } = this.intent();
    return deadline === undefined ? Number.POSITIVE_INFINITY : parseInstant(deadline)!;
  }

  /**
   * Records envelopes; retries while the journal cannot be written. Throws {@link RunStopped} when the intent is final
   * or the process shuts down.
   */
  async record(propose: ProposeEntries): Promise<ChainState> {
    const { journal, clock, log } = this.parts;
    const signal = this.shutdownSignal;
    const write = async () => {
      if (signal.aborted) throw new RunStopped();
      const { state, broken } = await journal.change(this.intentId, (before) => {
        if (isFinal(before)) throw new RunStopped();
        return propose(before);
      });
      if (broken) throw new RunStopped();
      return state;
    };
    const onRetry = (err: unknown) =>
      log.error({ intent: this.intentId, err }, 'the journal cannot be written; trying again');
    try {
      return await untilStored(write, { clock, pausesMs: STORE_RETRY_MS, signal, onRetry });
    } catch (thrown) {
      throw signal.aborted ? new RunStopped() : thrown;
    }
  }

  /** Like {@link record}, for something that is about to start: refused once the run is stopped. */
  begin(propose: ProposeEntries): Promise<ChainState> {
    return this.record((state) => {
      if (this.#stop.signal.aborted) throw new RunStopped();
      return propose(state);
    });
  }

  /** Resolves when the intent has changed, or at the wall-clock instant. Throws {@link RunStopped}. */
  async waitForChange(instant: number): Promise<void> {
    const { journal, clock } = this.parts;
    const changed = new AbortController();
    const unsubscribe = journal.onChange(({ row }) => {
      if (row.id === this.intentId) changed.abort();
    });
    const until = Math.min(Math.max(instant - clock.now(), 0), POLL_MS);
    try {
      await wait(clock, until, AbortSignal.any([changed.signal, this.#stop.signal]));
    } finally {
      unsubscribe();
    }
    if (this.#stop.signal.aborted) throw new RunStopped();
  }

  /** Waits on the clock. Throws {@link RunStopped}. */
  async pause(ms: number): Promise<void> {
    await wait(this.parts.clock, ms, this.#stop.signal);
    if (this.#stop.signal.aborted) throw new RunStopped();
  }
}

/** One intent under way: what it may still begin, what it puts down, and what it waits for. */

import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Intent } from '../../wire/intent.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import type { Compiler } from '../compile/compiler.ts';
import type { Decide } from '../journal/chains.ts';
import type { Journal } from '../journal/journal.ts';
import type { Policy } from '../policy/policy.ts';
import { type ChainState, intentOf, isOver } from '../receipt/chain-state.ts';
import type { Toolbox } from '../tools/toolbox.ts';

export type RailParts = {
  readonly journal: Journal;
  readonly toolbox: Toolbox;
  readonly policy: Policy;
  readonly compiler: Compiler;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long the tools are asked what became of a call whose answer got lost; 60 seconds unless told. */
  readonly reconcileMs?: number;
  /**
   * Whether agents can be woken; where they cannot, nothing is parked, so that none ends its turn waiting for an alarm.
   * They can unless told.
   */
  readonly canWake?: boolean;
};

/** Nothing more is to be done here: the intent is over, called off, or left to the next process. */
export class Halted extends Error {
  constructor() {
    super('this walk goes no further');
  }
}

/** The intent cannot go on; its end is to be put down. */
export class Stopped extends Error {
  /** For programs: `denied`, `tool_failed` and so on. */
  readonly code: string;

  /** @param reason a sentence for people */
  constructor(code: string, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** Pauses before something that could not be stored is stored after all. */
const STORE_AGAIN_MS = [100, 500, 2000, 10_000];
/** Wall clocks jump, and timers sleep with laptops: stored instants are looked at again this often. */
const LOOK_MS = 15_000;

export class Course {
  readonly intentId: string;
  readonly parts: RailParts;
  readonly #halt = new AbortController();
  readonly #over: AbortSignal;

  /** @param over aborts when this process does nothing more at all */
  constructor(parts: RailParts, intentId: string, over: AbortSignal) {
    this.parts = parts;
    this.intentId = intentId;
    this.#over = over;
  }

  /** Nothing new begins any more; what is under way is waited for. */
  halt(): void {
    this.#halt.abort(new Halted());
  }

  /** Aborts when nothing new may begin. */
  get halted(): AbortSignal {
    return this.#halt.signal;
  }

  /** Aborts when nobody waits any more even for what has begun. */
  get over(): AbortSignal {
    return this.#over;
  }

  state(): ChainState {
    return this.parts.journal.held(this.intentId).state;
  }

  /** The plan that is carried out. */
  intent(): Intent {
    const intent = intentOf(this.state());
    if (!intent) throw new ReveilleError('internal', `the intent ${this.intentId} has not been compiled`);
    return intent;
  }

  /** After which no call begins, milliseconds since the epoch. */
  deadline(): number {
    const { deadline } = this.intent();
    return deadline === undefined ? Number.POSITIVE_INFINITY : parseInstant(deadline)!;
  }

  /**
   * Puts down what has happened; again and again where the disk refuses. Throws {@link Halted} when it does not count
   * any more.
   */
  async record(decide: Decide): Promise<ChainState> {
    const { journal, clock, log } = this.parts;
    for (let tries = 0; ; tries++) {
      if (this.#over.aborted) throw new Halted();
      try {
        const { state, broken } = await journal.change(this.intentId, (before) => {
          if (isOver(before)) throw new Halted();
          return decide(before);
        });
        if (broken) throw new Halted();
        return state;
      } catch (thrown) {
        if (!(thrown instanceof ReveilleError && thrown.retryable)) throw thrown;
        log.error({ intent: this.intentId, err: thrown }, 'what happened cannot be written down; trying again');
        await wait(clock, STORE_AGAIN_MS[Math.min(tries, STORE_AGAIN_MS.length - 1)]!, this.#over);
      }
    }
  }

  /** Like {@link record}, for what is to begin: not once the course is halted. */
  begin(decide: Decide): Promise<ChainState> {
    return this.record((state) => {
      if (this.#halt.signal.aborted) throw new Halted();
      return decide(state);
    });
  }

  /** Resolves when the intent has changed, at the wall-clock instant at the latest. Throws {@link Halted}. */
  async changeBefore(instant: number): Promise<void> {
    const { journal, clock } = this.parts;
    const changed = new AbortController();
    const end = journal.onChange((intentId) => {
      if (intentId === this.intentId) changed.abort();
    });
    const until = Math.min(Math.max(instant - clock.now(), 0), LOOK_MS);
    try {
      await wait(clock, until, AbortSignal.any([changed.signal, this.#halt.signal]));
    } finally {
      end();
    }
    if (this.#halt.signal.aborted) throw new Halted();
  }

  /** Waits on the clock. Throws {@link Halted}. */
  async pause(ms: number): Promise<void> {
    await wait(this.parts.clock, ms, this.#halt.signal);
    if (this.#halt.signal.aborted) throw new Halted();
  }
}

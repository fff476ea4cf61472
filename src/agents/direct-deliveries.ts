/**
 * Agents that accept a wake within the wake's own time: the agent's answer is the answer to the wake. They recognize
 * repetitions by the fire id, and report no later result. Agents that execute turns implement `turns/agent.ts`.
 */
import type { Dispatcher } from 'undici';
import { type Clock, within } from '../kit/clock/clock.ts';
import { RefusedAddress } from '../kit/http/guarded-lookup.ts';
import type { Logger } from '../kit/log/log.ts';
import { MachineUnavailable } from '../router/providers/provider.ts';
import type { NewTurn } from '../turns/turn.ts';
import { type OnStage, stageOf } from '../turns/turn-view.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Wake } from '../wire/wake.ts';
import { type Answered, call } from './call.ts';
import { ANSWER_MAX_BYTES } from './neo/client.ts';
import { framedPrompt } from './prompt.ts';
import type { AgentTurnStore } from './turn-store.ts';

export type DirectAgent = {
  /**
   * @param signal ends the attempt
   * @returns the agent's name of the accepted turn, if it has one
   * @throws ReveilleError {@link refused}, {@link ReceiverGone}, {@link tryLater}; or as {@link post}
   */
  deliver(wake: Wake, turn: NewTurn, prompt: string, signal: AbortSignal): Promise<string | undefined>;
};

/** No turn began, and the next attempt fails as well unless a person changes something. */
export const refused = (why: string) => new ReveilleError('unavailable', why, { status: 502 });

/** It may have been accepted; the fire id identifies another attempt. */
export const uncertain = (why: string) => refused(`${why}; the wake may or may not have been accepted`);

/** The receiver is permanently gone. */
export class ReceiverGone extends ReveilleError {
  readonly why: string;

  constructor(why: string) {
    super('not_found', `${why}; the machine is suspended until it is restored`, { status: 410 });
    this.why = why;
  }
}

/** No turn began; it may be tried again. */
export const tryLater = (why: string, retryAfterSeconds: number | undefined) =>
  new ReveilleError('unavailable', why, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });

type Post = {
  /** The receiver in errors, such as `the webhook`. */
  receiver: string;
  dispatcher: Dispatcher;
  url: URL;
  headers: Record<string, string>;
  body: string;
  /** A secret that errors must not repeat. */
  token: string;
  clock: Clock;
  limitSeconds: number;
  signal: AbortSignal;
};

/**
 * Posts a wake.
 *
 * @throws MachineUnavailable when the receiver was not reached; ReveilleError {@link refused} when its address is not
 *   allowed, {@link uncertain} when it did not answer
 */
export async function post({ receiver, dispatcher, token, clock, limitSeconds, ...request }: Post): Promise<Answered> {
  const answer = await within(clock, limitSeconds * 1000, request.signal, (signal) =>
    call(dispatcher, { method: 'POST', ...request, signal, secrets: [token], maxBytes: ANSWER_MAX_BYTES }),
  );
  if (answer.result === 'answered') return answer;
  if (answer.result === 'unknown') throw uncertain(`${receiver} did not answer: ${answer.why}`);
  if (answer.error instanceof RefusedAddress) throw refused(answer.error.message);
  throw new MachineUnavailable(`${receiver} was not reached: ${answer.why}`);
}

type DirectDeliveriesOptions = {
  store: Pick<AgentTurnStore, 'accept'>;
  clock: Clock;
  log: Logger;
  onStage: OnStage;
  /** Suspends a machine whose receiver reported that it is permanently gone. */
  suspend: (userId: string, why: string) => Promise<void>;
};

export class DirectDeliveries {
  readonly #options: DirectDeliveriesOptions;
  /** Under way, by user and fire. */
  readonly #underWay = new Map<string, Promise<NewTurn>>();

  constructor(options: DirectDeliveriesOptions) {
    this.#options = options;
  }

  /**
   * Delivers a wake. A concurrent repetition shares the answer of the first call.
   *
   * @returns the recorded turn
   * @throws ReveilleError 410 when the receiver is permanently gone, 502 when the wake was rejected or may have
   *   arrived, 503 when no turn began
   */
  async deliver(agent: DirectAgent, wake: Wake, turn: NewTurn, deadline: AbortSignal): Promise<NewTurn> {
    const key = `${turn.userId} ${turn.fireId}`;
    const first = this.#underWay.get(key);
    if (first) return await first;
    const outcome = this.#deliver(agent, wake, turn, deadline);
    this.#underWay.set(key, outcome);
    try {
      return await outcome;
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #deliver(agent: DirectAgent, wake: Wake, turn: NewTurn, deadline: AbortSignal): Promise<NewTurn> {
    const { store, clock, log, onStage, suspend } = this.#options;
    // The receiver compares contents, and an attempt that is repeated after a restart has no reason.
    const prompt = framedPrompt({ ...turn, lateBecause: undefined });
    const handle = await agent.deliver(wake, turn, prompt, deadline).catch(async (thrown: unknown) => {
      if (thrown instanceof ReceiverGone) await suspend(turn.userId!, thrown.why);
      throw thrown;
    });
    const now = clock.now();
    try {
      const named = handle === undefined ? {} : { handle };
      await store.accept({ ...turn, status: 'accepted', ...named, startedAt: now, finishedAt: now });
    } catch (err) {
      // The agent has accepted it and recognizes repetitions. A failed record must not cause a repetition.
      log.error({ err, turn_id: turn.id }, 'a delivered wake could not be recorded');
    }
    onStage({ ...stageOf(turn, now), stage: 'accepted' });
    return turn;
  }
}

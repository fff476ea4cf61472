/**
 * Agents that accept a wake within the wake's own time: the agent's answer is the answer to the wake. They recognize
 * repetitions by the fire id, and report no later result. Agents that execute turns implement `turns/agent.ts`.
 */
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { MachineUnavailable } from '../router/providers/provider.ts';
import type { NewTurn } from '../turns/turn.ts';
import { type OnStage, stageOf } from '../turns/turn-view.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Wake } from '../wire/wake.ts';
import { framedPrompt } from './prompt.ts';
import type { AgentTurnStore } from './turn-store.ts';

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

export type DirectAgent = {
  /** @param signal ends the attempt; a wake that may have been sent by then is `unknown`. Never rejects. */
  deliver(wake: Wake, turn: NewTurn, prompt: string, signal: AbortSignal): Promise<DeliveryOutcome>;
};

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
  async deliver(target: DirectAgent, wake: Wake, turn: NewTurn, deadline: AbortSignal): Promise<NewTurn> {
    const key = `${turn.userId} ${turn.fireId}`;
    const first = this.#underWay.get(key);
    if (first) return await first;
    const outcome = this.#deliver(target, wake, turn, deadline);
    this.#underWay.set(key, outcome);
    try {
      return await outcome;
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #deliver(target: DirectAgent, wake: Wake, turn: NewTurn, deadline: AbortSignal): Promise<NewTurn> {
    const { store, clock, log, onStage, suspend } = this.#options;
    // The receiver compares contents, and an attempt that is repeated after a restart has no reason.
    const prompt = framedPrompt({ ...turn, lateBecause: undefined });
    const outcome = await target.deliver(wake, turn, prompt, deadline);
    if (outcome.result === 'gone') await suspend(turn.userId!, outcome.why);
    if (outcome.result !== 'accepted') throw refusalOf(outcome);
    const now = clock.now();
    const named = outcome.handle === undefined ? {} : { handle: outcome.handle };
    try {
      await store.accept({ ...turn, status: 'accepted', ...named, startedAt: now, finishedAt: now });
    } catch (err) {
      // The target has accepted it and recognizes repetitions. A failed record must not cause a repetition.
      log.error({ err, turn_id: turn.id }, 'a delivered wake could not be recorded');
    }
    onStage({ ...stageOf(turn, now), stage: 'accepted' });
    return turn;
  }
}

function refusalOf(outcome: Exclude<DeliveryOutcome, { result: 'accepted' }>): ReveilleError {
  const { why } = outcome;
  switch (outcome.result) {
    case 'not_started': {
      const { retryAfterSeconds } = outcome;
      return new ReveilleError('unavailable', why, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
    }
    case 'not_there':
      return new MachineUnavailable(why);
    case 'refused':
      return new ReveilleError('unavailable', why, { status: 502 });
    case 'unknown':
      return new ReveilleError('unavailable', `${why}; the wake may or may not have been accepted`, { status: 502 });
    case 'gone':
      return new ReveilleError('not_found', `${why}; the machine is suspended until it is restored`, { status: 410 });
  }
}

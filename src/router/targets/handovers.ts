/** Wakes that are handed over within their own time: what the target answers is what the wake is answered. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Wake } from '../../wire/wake.ts';
import { MachineUnavailable } from '../providers/provider.ts';
import type { DirectTarget, Handover } from './target.ts';
import type { Turn } from './turn.ts';
import { type OnStage, stageOf } from './turn.ts';
import type { TurnStore } from './turn-store.ts';
import { framedWords } from './words.ts';

type HandoversOptions = {
  store: TurnStore;
  clock: Clock;
  log: Logger;
  onStage: OnStage;
  /** Suspends a machine whose receiver said that it is gone for good. */
  suspend: (userId: string, why: string) => Promise<void>;
};

export class Handovers {
  readonly #options: HandoversOptions;
  /** On their way, by user and fire. */
  readonly #underWay = new Map<string, Promise<Turn>>();

  constructor(options: HandoversOptions) {
    this.#options = options;
  }

  /**
   * Hands a wake over. A repetition that arrives while the first one is under way shares its answer.
   *
   * @returns the turn that is on record
   * @throws ReveilleError 410 when the receiver is gone for good, 502 when the wake was refused or may have arrived,
   *   503 when nothing
   *   of it was begun
   */
  async handOver(target: DirectTarget, wake: Wake, turn: Turn, deadline: AbortSignal): Promise<Turn> {
    const key = `${turn.userId} ${turn.fireId}`;
    const first = this.#underWay.get(key);
    if (first) return await first;
    const handover = this.#deliver(target, wake, turn, deadline);
    this.#underWay.set(key, handover);
    try {
      return await handover;
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #deliver(target: DirectTarget, wake: Wake, turn: Turn, deadline: AbortSignal): Promise<Turn> {
    const { store, clock, log, onStage, suspend } = this.#options;
    // What is handed over is told apart by its words, and an attempt that is repeated after a restart knows no reason.
    const words = framedWords({ ...turn, lateBecause: undefined });
    const handover = await target.deliver(wake, turn, words, deadline);
    if (handover.result === 'gone') await suspend(turn.userId, handover.why);
    if (handover.result !== 'accepted') throw refusalOf(handover);
    const now = clock.now();
    const { handle } = handover;
    try {
      await store.accept({ ...turn, status: 'accepted', handle, startedAt: now, finishedAt: now });
    } catch (err) {
      // The target has it and knows a repetition by itself; the wake is not to be repeated for the record's sake.
      log.error({ err, turn_id: turn.id }, 'a wake was handed over and could not be put on record');
    }
    onStage({ ...stageOf(turn, now), stage: 'accepted' });
    return turn;
  }
}

function refusalOf(handover: Exclude<Handover, { result: 'accepted' }>): ReveilleError {
  const { why } = handover;
  switch (handover.result) {
    case 'not_started': {
      const { retryAfterSeconds } = handover;
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

/**
 * Attempts at a turn: chooses its session and folder, runs it, reads the outcome, and recovers an attempt of an earlier
 * router.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CommandMachine, Machine } from '../machines/machine.ts';
import type { Preset } from './preset.ts';
import type { Attempt, Outcome, TurnTarget } from './target.ts';
import type { Turn } from './turn.ts';
import { type OnStage, stageOf } from './turn.ts';
import type { TurnStore } from './turn-store.ts';

/** A target that executes turns, with its preset and the prompt of a turn. */
export type Worker = { machine: CommandMachine; preset: Preset; target: TurnTarget; promptOf: (turn: Turn) => string };

type AttemptsOptions = {
  store: TurnStore;
  machineOf: (userId: string) => Machine | undefined;
  /** Throws a ReveilleError when the machine's preset cannot be used. */
  workerOf: (machine: CommandMachine) => Worker;
  clock: Clock;
  log: Logger;
  onStage: OnStage;
};

/** The outcome of an attempt; without a worker no target ran. */
export type Attempted = { outcome: Outcome; worker: Worker | undefined; cwd: string | undefined };

/** The session and the folder of a turn. `guessed`: only the form of its name suggests that it is a session. */
type TurnLocation = { session: string | undefined; cwd: string | undefined; guessed: boolean };

/** A busy program exits quickly: a turn that lasts longer than this has begun, milliseconds. */
const CERTAIN_MS = 5_000;

const notAttempted = (outcome: Outcome): Attempted => ({ outcome, worker: undefined, cwd: undefined });

export class Attempts {
  readonly #options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /**
   * Begins a turn that is due, and waits for its end. Sets the start in `turn`, and counts it.
   *
   * @throws ReveilleError `unavailable` when the store fails
   */
  async begin(turn: Turn, signal: AbortSignal): Promise<Attempted> {
    const reasonNotToBegin = this.#reasonNotToBegin(turn);
    if (reasonNotToBegin) return notAttempted(reasonNotToBegin);
    const worker = this.#workerOf(turn);
    if ('result' in worker) return notAttempted(worker);
    return await this.#run(turn, worker, signal);
  }

  /** Finds the outcome of a turn that an earlier router began. */
  async recover(turn: Turn, signal: AbortSignal): Promise<Attempted> {
    const worker = this.#workerOf(turn);
    if ('result' in worker) {
      const why = 'why' in worker ? worker.why : 'its machine has been replaced';
      const error = `it had begun before the router ended, and its outcome cannot be read any more: ${why}`;
      return notAttempted({ result: 'unknown', error });
    }
    const { cwd, guessed } = this.#locationOf(turn, worker);
    const { session, spawnId = '', startedAt = turn.acceptedAt } = turn;
    turn.startedAt = startedAt;
    const attempt: Attempt = {
      ...this.#attemptOf(turn, worker, { session, cwd, spawnId, signal }),
      startedAt,
      begin: () => Promise.reject(new ReveilleError('internal', 'a turn that has begun is not begun again')),
    };
    const outcome = await this.#announceStart(turn, Promise.resolve(), () => worker.target.resume(attempt));
    return await this.#retryIfGone(turn, worker, outcome, { session, cwd, guessed }, signal);
  }

  async #run(turn: Turn, worker: Worker, signal: AbortSignal): Promise<Attempted> {
    const { store, clock } = this.#options;
    const location = this.#locationOf(turn, worker);
    const { session, cwd } = location;
    const spawnId = randomUUID();
    const started = Promise.withResolvers<void>();
    turn.startedAt = undefined;
    const attempt: Attempt = {
      ...this.#attemptOf(turn, worker, { session, cwd, spawnId, signal }),
      get startedAt() {
        return turn.startedAt ?? clock.now();
      },
      async begin() {
        const now = clock.now();
        await store.begin(turn.id, { session, spawnId, now });
        turn.attempts++;
        turn.startedAt = now;
        started.resolve();
      },
    };
    const outcome = await this.#announceStart(turn, started.promise, () => worker.target.run(attempt));
    return await this.#retryIfGone(turn, worker, outcome, location, signal);
  }

  /** A missing session: a guessed one never existed, a stored one is lost. */
  async #retryIfGone(
    turn: Turn,
    worker: Worker,
    outcome: Outcome,
    location: TurnLocation,
    signal: AbortSignal,
  ): Promise<Attempted> {
    const { session, cwd, guessed } = location;
    if (outcome.result !== 'no_session') return { outcome, worker, cwd };
    const { preset } = worker;
    const beginNew = guessed || ('when_gone' in preset && preset.when_gone === 'begin_anew');
    if (session === undefined || !beginNew) {
      const remedy = `give the alarm another conversation_id, or use a preset with "when_gone": "begin_anew"`;
      const error = `${preset.name} does not have the conversation ${turn.conversationId} any more, and no other was begun in its place (${outcome.why}); ${remedy}`;
      return { outcome: { result: 'failed', error }, worker, cwd };
    }
    // Without a session the retry cannot find one missing, so this happens once.
    await this.#options.store.keepSession(turn, undefined, cwd, this.#options.clock.now());
    return await this.#run(turn, worker, signal);
  }

  /** The session and the folder of a turn. */
  #locationOf(turn: Turn, { machine, preset }: Worker): TurnLocation {
    const kept = this.#options.store.conversations.get(turn);
    if (kept) return { session: kept.session, cwd: kept.cwd ?? machine.spec.cwd, guessed: false };
    const form = 'session' in preset ? preset.session : undefined;
    const guessed = turn.named && form !== undefined && new RegExp(form).test(turn.conversationId);
    return { session: guessed ? turn.conversationId : undefined, cwd: machine.spec.cwd, guessed };
  }

  /** The reason why the turn cannot begin on its machine now. */
  #reasonNotToBegin({ userId }: Turn): Outcome | undefined {
    const state = this.#options.machineOf(userId)?.state;
    if (state === 'active') return undefined;
    if (state === 'suspended' || state === 'provisioning')
      return { result: 'not_started', why: `the machine is ${state}` };
    return { result: 'failed', error: 'the machine was deleted before the turn began' };
  }

  #workerOf(turn: Turn): Worker | Extract<Outcome, { result: 'failed' | 'not_started' }> {
    const machine = this.#options.machineOf(turn.userId);
    if (machine?.provider !== 'command' || machine.spec.preset !== turn.preset) {
      return {
        result: 'failed',
        error: `the machine is no longer one of preset ${turn.preset}; it was changed before the turn began`,
      };
    }
    try {
      return this.#options.workerOf(machine);
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      return { result: 'not_started', why: thrown.message };
    }
  }

  #attemptOf(
    turn: Turn,
    worker: Worker,
    about: Pick<Attempt, 'session' | 'cwd' | 'spawnId' | 'signal'>,
  ): Omit<Attempt, 'startedAt' | 'begin'> {
    const { store, log } = this.#options;
    return {
      turn,
      prompt: worker.promptOf(turn),
      ...about,
      recordProcess: (pid, birth) => store.recordProcess(turn.id, pid, birth),
      async storeNames(names) {
        try {
          await store.name(turn.id, names);
          return true;
        } catch (err) {
          log.warn({ err, turn_id: turn.id }, 'the target’s name of a turn could not be stored');
          return false;
        }
      },
    };
  }

  /** Announces the start of a turn as soon as it is certain. */
  async #announceStart(turn: Turn, started: Promise<void>, work: () => Promise<Outcome>): Promise<Outcome> {
    const { clock, onStage, log } = this.#options;
    let isAnnounced = false;
    let cancel: (() => void) | undefined;
    const announce = () => {
      if (!isAnnounced) onStage({ ...stageOf(turn, turn.startedAt ?? clock.now()), stage: 'turn_started' });
      isAnnounced = true;
    };
    void started.then(() => {
      cancel = clock.after(CERTAIN_MS, announce);
    });
    let outcome: Outcome;
    try {
      outcome = await work();
    } catch (err) {
      log.error({ err, turn_id: turn.id }, 'a target failed with an unexpected error');
      const error = 'the router had an internal error while the turn ran; see its log';
      outcome = turn.startedAt === undefined ? { result: 'not_started', why: error } : { result: 'unknown', error };
    }
    cancel?.();
    const ran = turn.startedAt !== undefined && outcome.result !== 'not_started' && outcome.result !== 'no_session';
    if (ran) announce();
    return outcome;
  }
}

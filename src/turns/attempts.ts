/** Attempts at a turn: chooses its session and folder, runs the agent, and announces the start once it is certain. */
import { randomUUID } from 'node:crypto';
import { backoff, withJitter } from '../kit/clock/backoff.ts';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Attempt, Outcome, Worker } from './agent.ts';
import type { Turn } from './turn.ts';
import type { TurnStore } from './turn-store.ts';

/** The stored sessions of agents that have conversations of their own. */
export type Sessions = {
  /** `session`: none while the next turn must create one. */
  get(
    turn: Pick<Turn, 'userId' | 'conversationId' | 'preset'>,
  ): { session: string | undefined; cwd: string | undefined } | undefined;
  /** From now on the conversation has this session, or none. */
  keep(turn: Turn, session: string | undefined, cwd: string | undefined): Promise<void>;
};

export type AttemptsOptions = {
  store: Pick<TurnStore, 'begin' | 'recordProcess' | 'name'>;
  sessions?: Sessions | undefined;
  persist: Attempt['persist'];
  /** The name of the process in errors. */
  owner: string;
  /** The start of an attempt is certain, and its report is not stored yet. */
  onStart: (turn: Turn, at: number) => void;
  clock: Clock;
  log: Logger;
};

/** The outcome of an attempt. */
export type Attempted = {
  /** As the attempt left it. */
  turn: Turn;
  outcome: Outcome;
  /** Absent when no agent ran. */
  worker?: Worker;
  cwd?: string | undefined;
  /** When it began, if no report of its start was stored yet. */
  began?: number | undefined;
  /** Whether the store has counted it. */
  isCounted: boolean;
};

/** A busy program exits quickly: a turn that lasts longer than this has begun, milliseconds. */
const CERTAIN_MS = 5_000;

/** One attempt over the store. */
class StoredAttempt implements Attempt {
  turn: Turn;
  readonly prompt: string;
  readonly session: string | undefined;
  readonly cwd: string | undefined;
  readonly spawnId: string;
  readonly signal: AbortSignal;
  readonly persist: Attempt['persist'];
  readonly #options: AttemptsOptions;
  /** Whether the turn runs, by this attempt or since an earlier process. */
  #isBegun: boolean;
  /** Whether `begin` was called. */
  isCounted = false;
  #isReported = false;
  #isAnnounced = false;
  #cancelAnnouncement = () => {};

  constructor(
    options: AttemptsOptions,
    turn: Turn,
    about: Pick<Attempt, 'prompt' | 'session' | 'cwd' | 'spawnId' | 'signal'> & { isResumed: boolean },
  ) {
    this.#options = options;
    this.persist = options.persist;
    this.turn = turn;
    this.prompt = about.prompt;
    this.session = about.session;
    this.cwd = about.cwd;
    this.spawnId = about.spawnId;
    this.signal = about.signal;
    this.#isBegun = about.isResumed;
    if (this.#isBegun) this.#announceLater();
  }

  get startedAt(): number {
    const { turn } = this;
    return this.#isBegun ? (turn.startedAt ?? turn.createdAt) : this.#options.clock.now();
  }

  async begin(isCertain = false): Promise<void> {
    const { session, spawnId } = this;
    this.turn = await this.#options.store.begin(this.turn.id, { session, spawnId, isCertain });
    this.#isBegun = true;
    this.isCounted = true;
    this.#isReported = isCertain;
    this.#isAnnounced ||= isCertain;
    this.#announceLater();
  }

  recordProcess(pid: number, birth: string): void {
    this.#options.store.recordProcess(this.turn.id, pid, birth);
  }

  async storeNames(names: { session?: string; handle?: string }): Promise<boolean> {
    const { store, log } = this.#options;
    try {
      await store.name(this.turn.id, names);
      return true;
    } catch (err) {
      log.warn({ err, turn_id: this.turn.id }, 'the agent’s name of a turn could not be stored');
      return false;
    }
  }

  /** Waits for the outcome. @returns with it when the turn began, if no report of its start was stored */
  async outcomeOf(work: Promise<Outcome>): Promise<Pick<Attempted, 'outcome' | 'began'>> {
    const { log, owner } = this.#options;
    let outcome: Outcome;
    try {
      outcome = await work;
    } catch (err) {
      log.error({ err, turn_id: this.turn.id }, 'an agent failed with an unexpected error');
      const error = `${owner} had an internal error while the turn ran; see its log`;
      outcome = this.#isBegun ? { status: 'unknown', error } : { status: 'not_started', why: error };
    }
    this.#cancelAnnouncement();
    const hasRun = this.#isBegun && RAN.has(outcome.status);
    if (hasRun) this.#announce();
    return { outcome, began: hasRun && !this.#isReported ? this.startedAt : undefined };
  }

  /** A turn that runs for this long has certainly begun. */
  #announceLater(): void {
    this.#cancelAnnouncement();
    if (!this.#isAnnounced) this.#cancelAnnouncement = this.#options.clock.after(CERTAIN_MS, () => this.#announce());
  }

  #announce(): void {
    if (!this.#isAnnounced) this.#options.onStart(this.turn, this.startedAt);
    this.#isAnnounced = true;
  }
}

/** Runs agents for turns. */
export class Attempts {
  readonly #options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /**
   * Begins a turn that is due, or finds the outcome of one that an earlier process began. Waits for its end.
   *
   * @throws ReveilleError `unavailable` when the store fails
   */
  async make(
    turn: Turn,
    worker: Worker,
    signal: AbortSignal,
    isResumed = turn.status === 'running',
  ): Promise<Attempted> {
    const { agent, prompt, guessedSession } = worker;
    const kept = this.#options.sessions?.get(turn);
    const cwd = kept?.cwd ?? worker.cwd;
    const session = isResumed ? turn.session : kept ? kept.session : guessedSession;
    const spawnId = isResumed ? (turn.spawnId ?? '') : randomUUID();
    const attempt = new StoredAttempt(this.#options, turn, { prompt, session, cwd, spawnId, signal, isResumed });
    const ended = await attempt.outcomeOf(isResumed ? agent.resume(attempt) : agent.run(attempt));
    const attempted = { ...ended, turn: attempt.turn, worker, cwd, isCounted: attempt.isCounted || isResumed };
    if (ended.outcome.status !== 'no_session') return attempted;
    // A missing session: a guessed one never existed, a stored one is lost.
    if (session === undefined || !(kept ? worker.replacesLostSession : guessedSession !== undefined)) {
      return { ...attempted, outcome: lostSession(turn, worker, ended.outcome.why) };
    }
    // Without a session the next attempt cannot find one missing, so this happens once.
    await this.#options.sessions!.keep(turn, undefined, cwd);
    return await this.make(attempt.turn, worker, signal, false);
  }
}

/** The outcomes of an attempt that has run. */
const RAN: ReadonlySet<Outcome['status']> = new Set(['done', 'failed', 'unknown']);

function lostSession({ conversationId }: Turn, { name }: Worker, why: string): Outcome {
  const remedy = `give the alarm another conversation_id, or use a preset with "when_gone": "begin_anew"`;
  const error = `${name} does not have the conversation ${conversationId} any more, and no other was begun in its place (${why}); ${remedy}`;
  return { status: 'failed', error };
}

/** When turns of wakes are retried after a temporary failure. */
export type RetryPolicy = {
  /** The first delay, in milliseconds; it doubles up to `longestMs`. 0: never. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** A turn that was accepted longer ago than this fails permanently. */
  readonly giveUpMs: number;
};

export const RETRY_POLICY: RetryPolicy = { firstMs: 30_000, longestMs: 15 * 60_000, giveUpMs: 24 * 3600_000 };

/**
 * The time of a turn's retry; `undefined` when it has failed permanently. A person sees the failure and can send the
 * message again.
 *
 * @param draw uniform in [0, 1); spreads turns that failed together
 */
export function retryAt(
  turn: Pick<Turn, 'origin' | 'retries' | 'createdAt'>,
  outcome: Outcome,
  { policy, now, draw }: { policy: RetryPolicy; now: number; draw: number },
): number | undefined {
  const { firstMs, longestMs, giveUpMs } = policy;
  if (outcome.status !== 'failed' || !outcome.temporary || turn.origin === 'user' || firstMs === 0) return undefined;
  const delayMs = withJitter(backoff({ first: firstMs, longest: longestMs })(turn.retries + 1), draw);
  const at = now + Math.ceil(Math.max(delayMs, (outcome.temporary.afterSeconds ?? 0) * 1000));
  return at - turn.createdAt > giveUpMs ? undefined : at;
}

const pauseAfter = backoff({ first: 5_000, longest: 60_000 });
const LONGEST_REQUESTED_PAUSE_MS = 15 * 60_000;

/** The pause before a turn that did not start is tried again, milliseconds. */
export function pauseOf(attempts: number, requestedMs: number | undefined): number {
  if (requestedMs === undefined) return pauseAfter(attempts);
  return Math.min(Math.max(requestedMs, 1000), LONGEST_REQUESTED_PAUSE_MS);
}

/**
 * Executes turns: one at a time in each conversation. Each is begun at most once, unless its target proves that it did
 * not run, and the end of each is recorded. The state in memory can be lost: the store has all of it.
 */
import { backoff } from '../../kit/clock/backoff.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Attempted, Attempts, Worker } from './attempts.ts';
import { type Outcome, TurnEnd } from './target.ts';
import { type QueuedTurn, TurnQueues } from './target-queues.ts';
import type { Turn } from './turn.ts';
import { type OnStage, stageOf } from './turn.ts';
import type { Ending, TurnStore } from './turn-store.ts';

type TurnsOptions = {
  store: TurnStore;
  attempts: Attempts;
  clock: Clock;
  log: Logger;
  onStage: OnStage;
  /** The most concurrent turns of one user. */
  perUser: number;
};

/** The most waiting turns of one conversation. */
const LONGEST_QUEUE = 32;
const FULL_RETRY_SECONDS = 60;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;
const pauseAfter = backoff({ first: FIRST_PAUSE_MS, longest: LONGEST_PAUSE_MS });
const LONGEST_REQUESTED_PAUSE_MS = 15 * 60_000;
/** The pause between two attempts to store an outcome, milliseconds. */
const STORE_PAUSE_MS = 2_000;
const DEFAULT_WAIT_SECONDS = 21_600;

/** The pauses before a turn that did not start is tried again. */
function pauseOf(attempts: number, requestedMs: number | undefined): number {
  if (requestedMs !== undefined) return Math.min(Math.max(requestedMs, 1000), LONGEST_REQUESTED_PAUSE_MS);
  return pauseAfter(attempts);
}

const queueKeyOf = ({ conversationId, preset }: Turn) => `${preset} ${conversationId}`;

const entryOf = (turn: Turn): QueuedTurn => ({
  id: turn.id,
  userId: turn.userId,
  queue: queueKeyOf(turn),
  notBefore: turn.notBefore ?? 0,
});

type Work = { userId: string; abort: AbortController; done: Promise<void> };

export class Turns {
  readonly #options: TurnsOptions;
  readonly #queues: TurnQueues;
  readonly #work = new Map<string, Work>();
  readonly #closing = new AbortController();
  #cancelTimer = () => {};

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#queues = new TurnQueues(options.perUser);
  }

  /**
   * Accepts a turn. Resolves when it is on disk, with the existing turn of its fire if there is one.
   *
   * @throws ReveilleError `unavailable` when too many turns wait in the conversation, when it could not be stored, or
   *   with the target's message when it could not begin the turn now
   */
  async accept(turn: Turn, { machine, target, promptOf: wordsOf }: Worker): Promise<{ turn: Turn; deduped: boolean }> {
    const { store } = this.#options;
    if (this.#closing.signal.aborted) throw new ReveilleError('unavailable', 'the router is shutting down');
    const entry = entryOf(turn);
    if (this.#queues.waiting(entry) >= LONGEST_QUEUE) {
      const message = `the conversation ${turn.conversationId} has ${LONGEST_QUEUE} waiting turns already`;
      throw new ReveilleError('unavailable', message, { retryAfterSeconds: FULL_RETRY_SECONDS });
    }
    await target.check(wordsOf(turn), store.conversations.get(turn)?.cwd ?? machine.spec.cwd);
    const accepted = await store.accept(turn);
    if (accepted.deduped) return accepted;
    this.#options.onStage({ ...stageOf(turn, turn.acceptedAt), stage: 'accepted' });
    this.#queues.add(entry);
    this.#pump();
    return accepted;
  }

  /** The current activity of a user as text; `undefined` without any. */
  running(userId: string): string | undefined {
    const running = [...this.#work.values()].filter((work) => work.userId === userId).length;
    const waiting = this.#queues.waitingOf(userId);
    if (running + waiting === 0) return undefined;
    return `${running} running, ${waiting} waiting`;
  }

  /** Resumes the turns of an earlier router: it finds the outcomes of running ones, and queues the waiting ones. */
  recover(): void {
    for (const turn of this.#options.store.unfinished()) {
      const entry = entryOf(turn);
      if (turn.status === 'queued') {
        this.#queues.add(entry);
        continue;
      }
      this.#queues.occupy(entry);
      this.#start(entry);
    }
    this.#pump();
  }

  /** Ends the running turns of a user, and resolves when their ends are recorded. Waiting turns keep waiting. */
  async stop(userId: string, why: string): Promise<void> {
    const ofUser = [...this.#work.values()].filter((work) => work.userId === userId);
    for (const { abort } of ofUser) abort.abort(new TurnEnd(`was ended because ${why}`));
    await Promise.all(ofUser.map(({ done }) => done));
  }

  /** Ends turns that cannot continue without the router, and begins no more. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    for (const { abort } of this.#work.values()) abort.abort(new TurnEnd('was ended because the router was stopped'));
    await Promise.all([...this.#work.values()].map(({ done }) => done));
  }

  #pump(): void {
    this.#cancelTimer();
    if (this.#closing.signal.aborted) return;
    const now = this.#options.clock.now();
    for (const entry of this.#queues.take(now)) this.#start(entry);
    const next = this.#queues.nextAt();
    // Not before the wall clock shows it. The clock may be set meanwhile, so it is read again from time to time.
    if (next !== undefined)
      this.#cancelTimer = this.#options.clock.after(Math.min(Math.max(next - now, 50), LONGEST_PAUSE_MS), () =>
        this.#pump(),
      );
  }

  #start(entry: QueuedTurn): void {
    const { log, clock } = this.#options;
    const abort = new AbortController();
    const done = this.#execute(entry.id, abort.signal)
      .catch((err: unknown): Settled => {
        log.error({ err, turn_id: entry.id, user_id: entry.userId }, 'a turn could not be executed; trying again');
        return { putBackAt: clock.now() + FIRST_PAUSE_MS };
      })
      .then((settled) => {
        this.#work.delete(entry.id);
        if (settled === undefined) return;
        if ('putBackAt' in settled) this.#queues.putBack(entry, settled.putBackAt);
        else this.#queues.release(entry);
        this.#pump();
      });
    this.#work.set(entry.id, { userId: entry.userId, abort, done });
  }

  async #execute(id: string, signal: AbortSignal): Promise<Settled | undefined> {
    const { store, attempts } = this.#options;
    const turn = store.get(id);
    if (turn?.status === 'running') return await this.#settle(turn, await attempts.recover(turn, signal));
    if (turn?.status === 'queued') return await this.#settle(turn, await attempts.begin(turn, signal));
    return { over: true };
  }

  /** Stores the outcome of an attempt. `undefined`: the next router continues it. */
  async #settle(turn: Turn, { outcome, worker, cwd }: Attempted): Promise<Settled | undefined> {
    const closing = this.#closing.signal.aborted;
    if (closing && (worker === undefined || worker.target.outlivesRouter)) return undefined;
    if (outcome.result === 'not_started') {
      const again = await this.#putBack(turn, worker, outcome, closing);
      if (again) return again;
    }
    const ending = endingOf(turn, outcome, this.#options.clock.now());
    const session = 'session' in outcome ? outcome.session : undefined;
    if (!(await this.#stored(() => this.#options.store.finish(turn, ending, session, cwd), turn))) return undefined;
    const { status, reply, error } = ending;
    const ok = status === 'unknown' ? undefined : status === 'done';
    const about = { user_id: turn.userId, fire_id: turn.fireId, turn_id: turn.id, status, attempts: turn.attempts };
    this.#options.log[ok ? 'info' : 'warn']({ ...about, reason: error }, 'a turn has ended');
    this.#options.onStage({
      ...stageOf(turn, ending.at),
      stage: 'turn_finished',
      ok,
      ...(error === undefined ? {} : { error }),
      ...(reply === undefined ? {} : { result: reply }),
    });
    await worker?.target.settled(turn).catch((err: unknown) => {
      this.#options.log.warn({ err, turn_id: turn.id }, 'the files of a turn could not be removed');
    });
    return { over: true };
  }

  /** Queues a turn that did not start for another attempt; `undefined` when it has waited too long. */
  async #putBack(
    turn: Turn,
    worker: Worker | undefined,
    { why, retryAfterMs }: Extract<Outcome, { result: 'not_started' }>,
    closing: boolean,
  ): Promise<Settled | undefined> {
    const { clock, store, log } = this.#options;
    const now = clock.now();
    // A failed attempt without a start counts as well, so that the pauses grow.
    if (turn.startedAt === undefined) turn.attempts++;
    const preset = worker?.preset;
    const limitSeconds = preset && 'wait_seconds' in preset ? preset.wait_seconds : DEFAULT_WAIT_SECONDS;
    if (!closing && now - turn.acceptedAt >= limitSeconds * 1000) return undefined;
    const putBackAt = now + (closing ? 0 : pauseOf(turn.attempts, retryAfterMs));
    if (!(await this.#stored(() => store.requeue(turn, putBackAt, why), turn))) return { over: true };
    log.info({ turn_id: turn.id, user_id: turn.userId, reason: why, attempts: turn.attempts }, 'a turn waits');
    return { putBackAt };
  }

  /** Repeats until it is on disk, because the turn can make no other progress; false when the router closes before. */
  async #stored(store: () => Promise<void>, { id }: Turn): Promise<boolean> {
    const { clock, log } = this.#options;
    for (;;) {
      try {
        await store();
        return true;
      } catch (err) {
        log.error({ err, turn_id: id }, 'the outcome of a turn could not be stored; trying again');
        if (this.#closing.signal.aborted) return false;
        await wait(clock, STORE_PAUSE_MS, this.#closing.signal);
      }
    }
  }
}

/** Releases or requeues a turn in its conversation. */
type Settled = { over: true } | { putBackAt: number };

function endingOf({ startedAt: began }: Turn, outcome: Outcome, at: number): Ending {
  switch (outcome.result) {
    case 'done':
      return { status: 'done', reply: outcome.reply, began, at };
    case 'failed':
      return { status: 'failed', reply: outcome.reply, error: outcome.error, began, at };
    case 'unknown':
      return { status: 'unknown', error: outcome.error, began, at };
    case 'not_started':
      return {
        status: 'failed',
        error: `it was tried for as long as its preset allows and did not start: ${outcome.why}`,
        at,
      };
    case 'no_session':
      return { status: 'failed', error: outcome.why, at };
  }
}

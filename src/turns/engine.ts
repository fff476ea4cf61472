/**
 * The turn engine: executes accepted turns, one at a time in each conversation, and stores the end of each. The database
 * is the queue; the state in memory can be lost. A turn that was running when the last process ended is given to its
 * agent's `resume`, which alone decides whether it is begun again.
 */
import { untilStored } from '../kit/clock/backoff.ts';
import type { CancelTimer, Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { continueTrace, failSpan, measure, messagingFacts, type SpanFacts } from '../kit/trace/trace.ts';
import { ReveilleError } from '../wire/errors.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import { ProcessStops, TurnCancelled, TurnEnd, type Worker } from './agent.ts';
import { type Attempted, Attempts, type Sessions } from './attempts.ts';
import { type Outcome, pauseOf, RETRY_POLICY, type RetryPolicy, retryAt, type Turn } from './turn.ts';
import { type QueuedTurn, TurnQueues } from './turn-queues.ts';
import type { TurnStore } from './turn-store.ts';
import type { Ending, UnfinishedTurn } from './turn-table.ts';

export type TurnEngineOptions = {
  store: Omit<TurnStore, 'db' | 'writes' | 'run' | 'accept'>;
  /** The agent of a turn, or why there is none now. */
  workerOf: (turn: Turn) => Worker | Outcome;
  /** The sessions of conversations, where agents have any. */
  sessions?: Sessions;
  /** The most turns that run at once, over all, or of one user. */
  concurrency: number;
  perUser: boolean;
  /** When turns are retried after a temporary failure. */
  retryPolicy?: RetryPolicy | undefined;
  /** The name of the process in errors, such as `the router`. */
  owner: string;
  /** A turn has certainly begun, and no report of its start is stored yet. */
  onStart?: (turn: Turn, at: number) => void;
  onFinished?: (turn: Turn) => void;
  /** {@link TurnEngine.countsOf} of a user has changed. */
  onCounts?: ((userId: string) => void) | undefined;
  clock: Clock;
  log: Logger;
};

/** Delay between attempts to store something while the disk refuses. */
const STORE_RETRY_MS = [1000, 2000, 5000, 10_000, 30_000];
/** The wall clock may be set meanwhile, so it is read at least this often. */
const CLOCK_CHECK_MS = 30_000;
/** The pause after an attempt that could not be made because the store failed. */
const FAILED_PAUSE_MS = 5_000;
const DEFAULT_WAIT_MS = 6 * 3600_000;

/** Puts a turn back into the queue, or removes it. */
type Settled = { again: Pick<QueuedTurn, 'notBefore' | 'isParked' | 'isHeld'> } | 'over';

type Work = { userId: string | undefined; abort: AbortController; done: Promise<void> };

export class TurnEngine {
  readonly #options: TurnEngineOptions;
  readonly #queues: TurnQueues;
  readonly #attempts: Attempts;
  readonly #work = new Map<string, Work>();
  readonly #closing = new AbortController();
  /** Turns that ran when the last process ended. */
  #interrupted: QueuedTurn[] = [];
  /** Running turns that must not wait after their attempt, see {@link TurnEngine.hurry}. */
  readonly #hurried = new Set<string>();
  /** The newest turn that the queue has seen. */
  #seen = 0;
  #isStarted = false;
  #cancelTimer: CancelTimer = () => {};

  /** Reads the unfinished turns; nothing runs before `start`. */
  constructor(options: TurnEngineOptions) {
    const { store, sessions, onStart = () => {}, owner, clock, log } = options;
    this.#options = options;
    this.#queues = new TurnQueues(options.concurrency);
    const persist = <T>(write: () => Promise<T>) => this.#persist(write);
    this.#attempts = new Attempts({ store, sessions, persist, owner, onStart, clock, log });
    this.#readNew();
  }

  /** Begins to run turns, those of the last process first. */
  start(): void {
    this.#isStarted = true;
    for (const entry of this.#interrupted) this.#begin(entry);
    this.#interrupted = [];
    this.#pump();
  }

  /** A turn has been stored. */
  accepted(): void {
    this.#readNew();
    this.#pump();
  }

  /** The answer has come for which a turn waits, or is about to wait: it begins as soon as it may. */
  hurry(turnId: string): void {
    if (this.#queues.hurry(turnId)) this.#pump();
    else if (this.#work.has(turnId)) this.#hurried.add(turnId);
  }

  waiting(turn: Pick<UnfinishedTurn, 'userId' | 'conversationId' | 'preset'>): number {
    return this.#queues.waiting(this.#placeOf(turn));
  }

  /** The running and waiting turns of a user. */
  countsOf(userId: string): { running: number; waiting: number } {
    const running = [...this.#work.values()].filter((work) => work.userId === userId).length;
    return { running, waiting: this.#queues.waitingOf(userId) };
  }

  /**
   * `busy` while a turn runs or waits; `queued` counts turns that wait to begin. `nextTurnAt`: the time of the next
   * retry, epoch milliseconds.
   */
  state(): { busy: boolean; queued: number; nextTurnAt?: number } {
    const queued = this.#queues.waitingOf(EVERYONE);
    const nextTurnAt = this.#queues.nextParkedAt();
    const busy = this.#work.size + this.#interrupted.length + queued > 0;
    return { busy, queued, ...(nextTurnAt === undefined ? {} : { nextTurnAt }) };
  }

  /**
   * Ends a turn permanently: a waiting one never begins, a running one is stopped. Resolves when that is on disk.
   *
   * @returns the updated turn, also one that had ended before; `undefined` when there is none with this id
   * @throws ReveilleError `unavailable` when the process stops, or the disk refuses, before the turn has ended
   */
  async cancel(turnId: string): Promise<Turn | undefined> {
    const { store, owner } = this.#options;
    const entry = this.#queues.remove(turnId);
    const waiting = entry && store.turnById(turnId);
    if (waiting) {
      try {
        const error = 'cancelled on request before it was begun';
        const ended = await store.finish(waiting, { status: 'failed', error });
        if (ended) this.#options.onFinished?.(ended);
        this.#countsChanged(entry);
        return ended;
      } catch (thrown) {
        this.#queues.add(entry);
        throw thrown;
      } finally {
        this.#pump();
      }
    }
    const work = this.#work.get(turnId);
    work?.abort.abort(new TurnCancelled());
    await work?.done;
    const turn = store.turnById(turnId);
    if (turn === undefined || turn.finishedAt !== undefined) return turn;
    const message = `the turn could not be cancelled because ${owner} stops; retry when it runs`;
    throw new ReveilleError('unavailable', message);
  }

  /** Ends the running turns of a user, and resolves when their ends are recorded. Waiting turns keep waiting. */
  async endTurnsOf(userId: string, why: string): Promise<void> {
    const ofUser = [...this.#work.values()].filter((work) => work.userId === userId);
    for (const { abort } of ofUser) abort.abort(new TurnEnd(`was ended because ${why}`));
    await Promise.all(ofUser.map(({ done }) => done));
  }

  /** The number of turns that run now. */
  get running(): number {
    return this.#work.size;
  }

  /**
   * Begins no more turns and waits for the running ones. After `graceMs`, leaves turns that continue
   * without the process to the next one, and ends the others.
   */
  async stop(graceMs: number): Promise<void> {
    const { clock, owner } = this.#options;
    this.#closing.abort();
    this.#cancelTimer();
    const end = () => {
      for (const { abort } of this.#work.values()) abort.abort(new ProcessStops(owner));
    };
    const cancel = graceMs > 0 ? clock.after(graceMs, end) : end();
    await Promise.all([...this.#work.values()].map(({ done }) => done));
    cancel?.();
  }

  #placeOf({ userId, preset, conversationId }: Pick<UnfinishedTurn, 'userId' | 'conversationId' | 'preset'>) {
    const conversation = preset === undefined ? conversationId : `${preset} ${conversationId}`;
    return { group: this.#options.perUser ? (userId ?? EVERYONE) : EVERYONE, conversation };
  }

  /** Adds the turns that were stored since the last call. */
  #readNew(): void {
    for (const turn of this.#options.store.unfinished(this.#seen)) {
      const { id, seq, status, retryAt: notBefore = 0, waits } = turn;
      this.#seen = seq;
      const isParked = notBefore > 0 && waits === undefined;
      const entry: QueuedTurn = { id, seq, ...this.#placeOf(turn), notBefore, isParked };
      if (status === 'queued') {
        this.#queues.add(entry);
        this.#countsChanged(entry);
        continue;
      }
      this.#queues.occupy(entry);
      this.#interrupted.push(entry);
    }
  }

  #pump(): void {
    this.#cancelTimer();
    if (!this.#isStarted || this.#closing.signal.aborted) return;
    const now = this.#options.clock.now();
    for (const entry of this.#queues.take(now)) this.#begin(entry);
    const next = this.#queues.nextAt();
    if (next === undefined) return;
    const delayMs = Math.min(Math.max(next - now, 1), CLOCK_CHECK_MS);
    this.#cancelTimer = this.#options.clock.after(delayMs, () => this.#pump());
  }

  #begin(entry: QueuedTurn): void {
    const { log, clock } = this.#options;
    const abort = new AbortController();
    const userId = this.#options.perUser ? entry.group : undefined;
    const done = this.#execute(entry, abort.signal)
      .catch((err: unknown): Settled => {
        log.error({ err, turn_id: entry.id, user_id: userId }, 'a turn could not be executed; trying again');
        return { again: { notBefore: clock.now() + FAILED_PAUSE_MS, isParked: false } };
      })
      .then((settled) => {
        this.#work.delete(entry.id);
        if (settled === undefined) return;
        this.#queues.leave(entry);
        const isHurried = this.#hurried.delete(entry.id);
        if (settled !== 'over') this.#queues.add({ ...entry, ...settled.again });
        if (isHurried) this.#queues.hurry(entry.id);
        this.#countsChanged(entry);
        this.#pump();
      });
    this.#work.set(entry.id, { userId, abort, done });
    this.#countsChanged(entry);
  }

  #countsChanged({ group }: QueuedTurn): void {
    this.#options.onCounts?.(group);
  }

  async #execute({ id }: QueuedTurn, signal: AbortSignal): Promise<Settled | undefined> {
    const turn = this.#options.store.turnById(id);
    if (!turn || turn.finishedAt !== undefined) return 'over';
    const worker = this.#options.workerOf(turn);
    if ('agent' in worker) return await this.#attempt(turn, worker, signal);
    if (turn.status === 'queued') return await this.#settle({ turn, outcome: worker, isCounted: false });
    const why = 'why' in worker ? worker.why : 'its machine has been replaced';
    const error = `it had begun before ${this.#options.owner} ended, and its outcome cannot be read any more: ${why}`;
    return await this.#settle({ turn, outcome: { status: 'unknown', error }, isCounted: true });
  }

  /** Makes an attempt and stores its outcome, in the trace of the turn's delivery. */
  #attempt(turn: Turn, worker: Worker, signal: AbortSignal): Promise<Settled | undefined> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    const isWake = turn.origin === 'chronos';
    return continueTrace(turn.traceparent, isWake ? 'process alarms' : 'turn', processing(turn), async (span) => {
      const attempted = await this.#attempts.make(turn, worker, signal);
      const { status } = attempted.outcome;
      span?.setAttribute('reveille.turn.outcome', status);
      if (status !== 'done') failSpan(span, status);
      if (isWake)
        measure('messaging.process.duration', (clock.monotonic() - began) / 1000, () =>
          messagingFacts('process', status === 'done' ? {} : { 'error.type': status }),
        );
      return await this.#settle(attempted);
    });
  }

  /** Stores the outcome of an attempt. `undefined`: the next process continues the turn. */
  async #settle(attempted: Attempted): Promise<Settled | undefined> {
    const { turn, outcome, worker } = attempted;
    if (outcome.status === 'left') return undefined;
    if (this.#closing.signal.aborted && (worker === undefined || worker.agent.outlivesProcess)) return undefined;
    const { store, log, onFinished } = this.#options;
    const again = await this.#again(attempted);
    if (again) return again;
    const ending = endingOf(attempted);
    const ended = await this.#persist(() => store.finish(turn, ending, outcome.said));
    if (!ended) return 'over';
    onFinished?.(ended);
    await worker?.agent.settled(ended).catch((err: unknown) => {
      log.warn({ err, turn_id: turn.id }, 'the files of a turn could not be removed');
    });
    // What made other turns fail temporarily has passed.
    if (ended.status === 'done') this.#queues.release(Number.POSITIVE_INFINITY, false);
    return 'over';
  }

  /** Stores that a turn waits for another attempt; `undefined` when it has ended. */
  async #again({ turn, outcome, worker, isCounted }: Attempted): Promise<Settled | undefined> {
    const { clock, store, log, retryPolicy = RETRY_POLICY } = this.#options;
    const about = { turn_id: turn.id, fire_id: turn.fireId };
    const now = clock.now();
    if (outcome.status === 'stopped') {
      await store.putBack(turn);
      return { again: { notBefore: 0, isParked: false } };
    }
    if (outcome.status === 'failed') {
      const at = retryAt(turn, outcome, { policy: retryPolicy, now, draw: Math.random() });
      if (at === undefined) return undefined;
      const parked = await this.#persist(() => store.park(turn, outcome, at));
      if (!parked) return 'over';
      const fields = { ...about, retry_at: formatInstant(at), retries: parked.retries };
      const isHeld = outcome.temporary?.isAnswer === true;
      if (isHeld) log.info({ ...fields, reason: outcome.error }, 'a turn waits for an answer of the user');
      else log.warn({ ...fields, reason: outcome.error }, 'turn failed; it will be retried');
      return { again: { notBefore: at, isParked: true, isHeld } };
    }
    if (outcome.status !== 'not_started') return undefined;
    const isClosing = this.#closing.signal.aborted;
    if (!isClosing && now - turn.createdAt >= (worker?.waitMs ?? DEFAULT_WAIT_MS)) return undefined;
    // A failed attempt without a start counts as well, so that the pauses grow.
    const attempts = isCounted ? turn.attempts : turn.attempts + 1;
    const at = now + (isClosing ? 0 : pauseOf(attempts, outcome.retryAfterMs));
    await this.#persist(() => store.requeue(turn, { attempts, at, why: outcome.why }));
    log.info({ ...about, user_id: turn.userId, reason: outcome.why, attempts }, 'a turn waits');
    return { again: { notBefore: at, isParked: false } };
  }

  /** Repeats a write until the disk accepts it. Gives up when the engine stops, or when a repetition cannot help. */
  #persist<T>(write: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#options;
    const { signal } = this.#closing;
    const onRetry = (err: unknown) => log.error({ err }, 'the state of a turn could not be stored; retrying');
    return untilStored(write, { clock, pausesMs: STORE_RETRY_MS, signal, onRetry });
  }
}

/** The group of all turns where no user has one. */
const EVERYONE = '';

const processing =
  ({ id, conversationId, fireId, attempts, origin }: Turn) =>
  (): SpanFacts => ({
    ...(origin === 'chronos' && { kind: 'consumer' }),
    attributes: {
      ...(origin === 'chronos' && messagingFacts('process', { 'messaging.message.id': fireId })),
      'gen_ai.conversation.id': conversationId,
      'reveille.turn.id': id,
      'reveille.attempt': attempts + 1,
    },
  });

function endingOf({ outcome, cwd, began }: Attempted): Ending {
  if (outcome.status === 'not_started') {
    const error = `it was tried for as long as its preset allows and did not start: ${outcome.why}`;
    return { status: 'failed', error };
  }
  // Attempts turn a lost session into a failure, and a stopped turn is put back.
  if (outcome.status === 'no_session' || outcome.status === 'stopped' || outcome.status === 'left')
    throw new TypeError('the turn has not ended');
  return { ...outcome, cwd, began };
}

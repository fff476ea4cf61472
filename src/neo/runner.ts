/**
 * Runs accepted turns: one at a time in each conversation, in the order of acceptance, a bounded number at once over
 * all.
 *
 * The database is the queue. Memory contains which conversations have waiting turns, and their order. After a crash
 * both are read again, and running turns are put back (`turn.ts` limits how often).
 */
import { type Clock, wait } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError } from '../wire/errors.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import type { ConversationStore } from './conversations/store.ts';
import type { NeoModel } from './model.ts';
import type { TurnMemory } from './prompt.ts';
import { noTools, type ToolSurface, TurnCancelled } from './tools/surface.ts';
import { RETRY_POLICY, type RetryPolicy, retryAt, type Turn } from './turn.ts';

export type RunnerOptions = {
  store: ConversationStore;
  model: NeoModel;
  /** The capabilities of a turn; used by turns of a model that calls tools. No tools by default. */
  surface?: (() => Promise<ToolSurface>) | undefined;
  memory?: TurnMemory | undefined;
  /** Called when a turn has ended. */
  onFinished?: (turn: Turn) => void;
  /** When turns are retried after a temporary failure. */
  retryPolicy?: RetryPolicy | undefined;
  /** The size of the model's context, in tokens; 128,000 by default. */
  contextTokens?: number;
  clock: Clock;
  log: Logger;
  /** The most turns that run at once; 8 by default. */
  concurrency?: number;
};

export type Runner = {
  /** Begins to run turns, unfinished ones of the last process first. */
  start(): void;
  /** A turn has been stored in this conversation. */
  accepted(conversationId: string): void;
  /**
   * Ends a turn permanently: a waiting one never begins, a running one is stopped. Resolves when that is on disk.
   *
   * @returns the updated turn, also one that had ended before; `undefined` when there is none with this id
   * @throws ReveilleError `unavailable` when Neo stops, or the disk refuses, before the turn has ended
   */
  cancel(turnId: string): Promise<Turn | undefined>;
  /**
   * `busy` while a turn runs or waits; `queued` counts turns that wait to begin. `nextTurnAt`: the time of the next
   * retry, epoch milliseconds.
   */
  state(): { busy: boolean; queued: number; nextTurnAt?: number };
  /**
   * Begins no more turns and waits for the running ones. After `graceMs` the rest is stopped and waits for the next
   * start.
   */
  stop(graceMs: number): Promise<void>;
};

/** Delay between attempts to store something while the disk refuses. */
const STORE_RETRY_MS = [1000, 2000, 5000, 10_000, 30_000];

/** The wall clock may be set meanwhile, so it is read at least this often. */
const CLOCK_CHECK_MS = 30_000;

/** Makes a runner over the last process's turns; nothing runs before `start`. */
export function createRunner(options: RunnerOptions): Runner {
  const { store, model, memory, onFinished, clock, log, concurrency = 8 } = options;
  const { surface = async () => noTools, contextTokens = 128_000, retryPolicy = RETRY_POLICY } = options;
  /** Conversations with waiting turns and none running, in the order of their next start. */
  const ready = new Set<string>();
  const running = new Map<string, Promise<void>>();
  /** For each running turn, by its id: how to cancel it, and its end. */
  const cancellable = new Map<string, { cancel: () => void; ended: Promise<void> }>();
  const stopping = new AbortController();
  const cutOff = new AbortController();
  let started = false;
  let cancelRetry = () => {};
  const unfinished = store.recover();
  let { queued } = unfinished;
  for (const id of unfinished.conversationIds) ready.add(id);

  /** Repeats a write until the disk accepts it. Gives up when Neo stops, or when a repetition cannot help. */
  async function persist<T>(write: () => Promise<T>): Promise<T> {
    for (let n = 0; ; n++) {
      try {
        return await write();
      } catch (thrown) {
        const retryable = thrown instanceof ReveilleError && thrown.retryable && thrown.code === 'unavailable';
        if (!retryable || stopping.signal.aborted) throw thrown;
        log.error({ err: thrown }, 'the state of a turn could not be stored; retrying');
        await wait(clock, STORE_RETRY_MS[Math.min(n, STORE_RETRY_MS.length - 1)]!, stopping.signal);
      }
    }
  }

  async function runNext(conversationId: string): Promise<void> {
    const turn = await persist(() => store.beginNext(conversationId));
    if (!turn) return;
    queued--;
    const cancelling = new AbortController();
    const ended = Promise.withResolvers<void>();
    cancellable.set(turn.id, { cancel: () => cancelling.abort(new TurnCancelled()), ended: ended.promise });
    try {
      await run(turn, AbortSignal.any([cancelling.signal, cutOff.signal]));
    } finally {
      cancellable.delete(turn.id);
      ended.resolve();
    }
  }

  async function run(turn: Turn, signal: AbortSignal): Promise<void> {
    const answerOptions = { store, model, surface, memory, contextTokens, persist, clock, log };
    // The first turn loads the answering code: the router waits for a woken machine until it listens.
    const { answerTurn } = await import('./answer.ts');
    const { outcome, said } = await answerTurn(turn, { ...answerOptions, signal });
    if (!outcome) {
      await store.putBack(turn);
      queued++;
      return;
    }
    const again = retryAt(turn, outcome, { policy: retryPolicy, now: clock.now(), draw: Math.random() });
    if (again !== undefined && outcome.status === 'failed') return await park(turn, outcome, again);
    const finished = await persist(() => store.finish(turn, outcome, said));
    if (!finished) return;
    logFinished(finished);
    onFinished?.(finished);
    // The endpoint answers again.
    if (finished.status === 'done') await release(Number.MAX_SAFE_INTEGER);
  }

  async function park(turn: Turn, failure: { error: string; model: string }, at: number): Promise<void> {
    const parked = await persist(() => store.park(turn, failure, at));
    if (!parked) return;
    const fields = { turn_id: turn.id, fire_id: turn.fireId, retry_at: formatInstant(at), retries: parked.retries };
    log.warn({ ...fields, reason: failure.error }, 'turn failed; it will be retried');
    scheduleRetry();
  }

  /** Makes turns ready whose retry time is up to this time. */
  async function release(upTo: number): Promise<void> {
    if ((store.nextRetry() ?? Number.POSITIVE_INFINITY) > upTo) return scheduleRetry();
    for (const conversationId of await persist(() => store.release(upTo))) {
      queued++;
      if (!running.has(conversationId)) ready.add(conversationId);
    }
    pump();
    scheduleRetry();
  }

  function releaseDue(): void {
    release(clock.now()).catch((err: unknown) => log.error({ err }, 'turns to be retried are left to the next start'));
  }

  function scheduleRetry(): void {
    cancelRetry();
    const next = store.nextRetry();
    if (next === undefined || stopping.signal.aborted) return;
    const delayMs = Math.min(Math.max(next - clock.now(), 0), CLOCK_CHECK_MS);
    cancelRetry = clock.after(delayMs, releaseDue);
  }

  function logFinished(turn: Turn): void {
    const tookMs = (turn.finishedAt ?? 0) - (turn.startedAt ?? 0);
    const fields = { turn_id: turn.id, conversation_id: turn.conversationId, fire_id: turn.fireId, tookMs };
    if (turn.status === 'done') log.info(fields, 'turn done');
    else log.warn({ ...fields, reason: turn.error }, `turn ${turn.status}`);
  }

  async function work(conversationId: string): Promise<void> {
    let more = false;
    try {
      await runNext(conversationId);
      more = store.hasQueued(conversationId);
    } catch (err) {
      // The turn keeps its stored state, and the next start continues it.
      log.error({ err, conversation_id: conversationId }, 'a conversation was left to the next start');
    }
    running.delete(conversationId);
    if (more) ready.add(conversationId);
    pump();
  }

  function pump(): void {
    for (const conversationId of ready) {
      if (!started || stopping.signal.aborted || running.size >= concurrency) return;
      ready.delete(conversationId);
      running.set(conversationId, work(conversationId));
    }
  }

  return {
    start() {
      started = true;
      if (queued > 0) log.info({ queued }, "continuing the last process's turns");
      pump();
      releaseDue();
    },

    accepted(conversationId) {
      queued++;
      if (!running.has(conversationId)) ready.add(conversationId);
      pump();
    },

    async cancel(turnId) {
      const waiting = await store.endQueued(turnId, 'cancelled on request before it was begun');
      if (waiting) {
        // A turn that waits for its retry was not counted.
        if (waiting.retryAt === undefined) queued--;
        else scheduleRetry();
        logFinished(waiting);
        return waiting;
      }
      // A turn that begins at this moment is known here a little later than on the disk.
      for (let attempt = 0; attempt < 100; attempt++) {
        const runs = cancellable.get(turnId);
        runs?.cancel();
        await runs?.ended;
        const turn = store.turnById(turnId);
        if (turn === undefined || turn.finishedAt !== undefined) return turn;
        if (runs) break;
        await new Promise((resolve) => setImmediate(resolve));
      }
      throw new ReveilleError('unavailable', 'the turn could not be cancelled because Neo stops; retry when it runs');
    },

    state() {
      const nextTurnAt = store.nextRetry();
      return { busy: running.size > 0 || queued > 0, queued, ...(nextTurnAt === undefined ? {} : { nextTurnAt }) };
    },

    async stop(graceMs) {
      stopping.abort();
      cancelRetry();
      const cancel = clock.after(graceMs, () => cutOff.abort());
      while (running.size > 0) await Promise.all(running.values());
      cancel();
    },
  };
}

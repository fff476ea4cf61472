/**
 * Runs accepted turns: one at a time in each conversation, in the order they were accepted, a bounded number at once over all.
 *
 * The database is the queue. Memory holds which conversations have something waiting and in what order they come up; after a
 * crash both are read again, and turns that were running are put back (`turn.ts` says how often).
 */
import { type Clock, wait } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import { ReveilleError } from '../wire/errors.ts';
import { answerTurn } from './answer.ts';
import type { ConversationStore } from './conversations/store.ts';
import type { Model } from './model/model.ts';
import type { Turn } from './turn.ts';

export type RunnerOptions = {
  store: ConversationStore;
  model: Model;
  clock: Clock;
  log: Logger;
  /** Turns that run at once; 8 unless told. */
  concurrency?: number;
};

export type Runner = {
  /** Begins to run turns, what the last process left behind first. */
  start(): void;
  /** A turn has been stored in this conversation. */
  accepted(conversationId: string): void;
  /** `busy` while anything runs or waits; `queued` counts turns that wait. */
  state(): { busy: boolean; queued: number };
  /**
   * Begins no more turns and waits for the running ones. What still runs after `graceMs` is stopped and waits for the next start.
   */
  stop(graceMs: number): Promise<void>;
};

/** Pauses between attempts to store something while the disk refuses. */
const STORE_RETRY_MS = [1000, 2000, 5000, 10_000, 30_000];

/** Makes a runner over what the last process left behind; nothing runs before `start`. */
export function createRunner({ store, model, clock, log, concurrency = 8 }: RunnerOptions): Runner {
  /** Conversations with waiting turns and none running, in the order they come up. */
  const ready = new Set<string>();
  const running = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  const cutOff = new AbortController();
  let started = false;
  const unfinished = store.recover();
  let { queued } = unfinished;
  for (const id of unfinished.conversationIds) ready.add(id);

  /** Repeats a write until the disk takes it. Gives up when Neo stops, or when trying again cannot help. */
  async function persist<T>(write: () => Promise<T>): Promise<T> {
    for (let n = 0; ; n++) {
      try {
        return await write();
      } catch (thrown) {
        const retryable = thrown instanceof ReveilleError && thrown.retryable && thrown.code === 'unavailable';
        if (!retryable || stopping.signal.aborted) throw thrown;
        log.error({ err: thrown }, 'the state of a turn could not be stored; trying again');
        await wait(clock, STORE_RETRY_MS[Math.min(n, STORE_RETRY_MS.length - 1)]!, stopping.signal);
      }
    }
  }

  async function runNext(conversationId: string): Promise<void> {
    const turn = await persist(() => store.beginNext(conversationId));
    if (!turn) return;
    queued--;
    const { outcome, said } = await answerTurn(turn, { store, model, clock, log, signal: cutOff.signal });
    if (!outcome) {
      await store.putBack(turn);
      queued++;
      return;
    }
    const finished = await persist(() => store.finish(turn, outcome, said));
    if (finished) logFinished(finished);
  }

  function logFinished(turn: Turn): void {
    const tookMs = (turn.finishedAt ?? 0) - (turn.startedAt ?? 0);
    const facts = { turn_id: turn.id, conversation_id: turn.conversationId, fire_id: turn.fireId, tookMs };
    if (turn.status === 'done') log.info(facts, 'turn done');
    else log.warn({ ...facts, reason: turn.error }, `turn ${turn.status}`);
  }

  async function work(conversationId: string): Promise<void> {
    let more = false;
    try {
      await runNext(conversationId);
      more = store.hasQueued(conversationId);
    } catch (err) {
      // The turn keeps its stored state, and the next start takes it up.
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
      if (queued > 0) log.info({ queued }, 'taking up the turns that the last process left');
      pump();
    },

    accepted(conversationId) {
      queued++;
      if (!running.has(conversationId)) ready.add(conversationId);
      pump();
    },

    state: () => ({ busy: running.size > 0 || queued > 0, queued }),

    async stop(graceMs) {
      stopping.abort();
      const cancel = clock.after(graceMs, () => cutOff.abort());
      while (running.size > 0) await Promise.all(running.values());
      cancel();
    },
  };
}

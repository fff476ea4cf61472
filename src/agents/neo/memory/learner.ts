/**
 * Learns from ended turns in the background, one at a time. The queue is in the file and survives a crash. A lesson
 * ends in the transaction that stores its memories, so nothing is learned twice.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Turn } from '../../../turns/turn.ts';
import { ReveilleError, toReveilleError } from '../../../wire/errors.ts';
import type { NeoModel } from '../model.ts';
import type { Cortex } from './cortex.ts';
import { EXTRACTION_SYSTEM, extractionPrompt, parseExtraction } from './extraction.ts';
import type { Lesson } from './lesson-table.ts';

/** Queries a model without tools and without streaming. A truncated answer counts as an error. */
export function modelQuery(model: NeoModel): QueryModel {
  return async ({ system, prompt, turn, signal }) => {
    const messages = [{ role: 'user' as const, content: prompt }];
    const answer = await model.generate({ system, messages, turn, signal, onText: () => {} });
    if (answer.cutOff !== undefined) throw new ReveilleError('unavailable', answer.cutOff);
    return answer.text;
  };
}

/**
 * Queries a model. Rejects when the signal aborts or the model does not answer.
 *
 * @throws ReveilleError
 */
export type QueryModel = (request: {
  system: string;
  prompt: string;
  turn: Turn;
  signal: AbortSignal;
}) => Promise<string>;

export type LearnerOptions = {
  cortex: Pick<Cortex, 'lessons' | 'write' | 'rememberIn'>;
  queryModel: QueryModel;
  /** The source of the texts of turns. */
  turns: {
    turn(id: string, conversationId: string): Turn | undefined;
    /** The newest done turns; a crash may have lost some before they were offered. */
    newestDone?(limit: number): readonly Turn[];
  };
  clock: Clock;
  log: Logger;
  /** Called when memories were learned. */
  onLearned: () => void;
};

export type Learner = {
  /**
   * Queues a done turn; other turns and already offered ones are skipped. Returns at once.
   *
   * @returns resolves when it is on disk, or was not to be stored; waiting is optional. Never rejects.
   */
  offer(turn: Turn): Promise<void>;
  /** The failed and dropped lessons, as a sentence. */
  warning(): string | undefined;
  close(): Promise<void>;
};

/** The most waiting turns; beyond it the oldest are dropped and counted. */
const WAITING_MAX = 256;
/** How many turns are checked after a start: several times the number that could end at once. */
const CATCH_UP_TURNS = 64;
/** How often a turn is tried, and the delays after each failure. */
const ATTEMPTS = 5;
const DELAYS_MS = [30_000, 120_000, 600_000, 3_600_000];
/** Delay between attempts to store something while the disk refuses. */
const STORE_RETRY_MS = 300_000;

/** Makes the learner and continues the last process's queue. */
export function createLearner(options: LearnerOptions): Learner {
  const { cortex, queryModel, turns, clock, log, onLearned } = options;
  const { lessons } = cortex;
  const stopping = new AbortController();
  const { signal } = stopping;
  let working: Promise<void> | undefined;
  let cancelTimer: (() => void) | undefined;
  let isWakePending = false;

  /** Tries a turn once. */
  async function learnFrom({ turnId, conversationId, attempts }: Lesson): Promise<void> {
    const turn = turns.turn(turnId, conversationId);
    if (turn?.status !== 'done') {
      await cortex.write(() => lessons.settle(turnId, 'given_up', 'the turn no longer exists'));
      return;
    }
    try {
      const answer = await queryModel({ system: EXTRACTION_SYSTEM, prompt: extractionPrompt(turn), turn, signal });
      const { memories, refused } = parseExtraction(answer);
      const source = { turnId, conversationId, at: turn.createdAt };
      const learned = await cortex.write(() =>
        // Another process with this file may have been faster.
        lessons.settle(turnId, 'learned') ? cortex.rememberIn(memories, source) : [],
      );
      log.debug({ turn_id: turnId, learned: learned.length, refused }, 'learned from a turn');
      if (learned.length > 0) onLearned();
    } catch (thrown) {
      if (signal.aborted) return;
      await failedOnce(turnId, attempts + 1, thrown);
    }
  }

  async function failedOnce(turnId: string, attempts: number, thrown: unknown): Promise<void> {
    const { message } = toReveilleError(thrown);
    if (!(thrown instanceof ReveilleError))
      log.error({ err: thrown, turn_id: turnId }, 'learning failed by an internal error');
    if (attempts >= ATTEMPTS) {
      log.warn({ turn_id: turnId, attempts, reason: message }, 'nothing is learned from a turn');
      await cortex.write(() => lessons.settle(turnId, 'given_up', message));
      return;
    }
    log.debug({ turn_id: turnId, attempts, reason: message }, 'learning from a turn is retried later');
    const asksFor = thrown instanceof ReveilleError ? (thrown.retryAfterSeconds ?? 0) * 1000 : 0;
    const delay = Math.min(Math.max(DELAYS_MS[attempts - 1]!, asksFor), DELAYS_MS.at(-1)!);
    await cortex.write(() => lessons.putOff(turnId, clock.now() + delay, message));
  }

  async function work(): Promise<void> {
    try {
      while (isWakePending && !signal.aborted) {
        isWakePending = false;
        for (let lesson = lessons.next(); lesson && !signal.aborted; lesson = lessons.next()) {
          const ahead = lesson.dueAt - clock.now();
          if (ahead > 0) {
            // A wall clock that was set back must not delay a lesson beyond its longest delay.
            later(Math.min(ahead, DELAYS_MS.at(-1)!));
            break;
          }
          await learnFrom(lesson);
        }
      }
    } catch (err) {
      if (signal.aborted) return;
      log.error({ err }, 'the state of the learning queue could not be stored; retrying');
      later(STORE_RETRY_MS);
    }
  }

  function later(delayMs: number): void {
    cancelTimer?.();
    cancelTimer = clock.after(delayMs, () => {
      cancelTimer = undefined;
      wake();
    });
  }

  function wake(): void {
    isWakePending = true;
    if (working || signal.aborted) return;
    working = work().finally(() => {
      working = undefined;
      // A turn was queued since the last query.
      if (isWakePending && !cancelTimer) wake();
    });
  }

  async function offer({ id, conversationId, status }: Turn): Promise<void> {
    if (status !== 'done' || signal.aborted) return;
    try {
      const dropped = await cortex.write(() => lessons.add(id, conversationId, clock.now(), WAITING_MAX));
      if (dropped > 0) log.warn({ dropped }, 'turns were dropped without learning: too many were waiting');
      wake();
    } catch (err) {
      log.warn({ err, turn_id: id }, 'a turn could not be queued for learning');
    }
  }

  wake();
  const caughtUp = Promise.all((turns.newestDone?.(CATCH_UP_TURNS) ?? []).map(offer));
  return {
    offer,

    warning() {
      const { given_up: failed, dropped, waiting } = lessons.counts();
      if (failed + dropped === 0) return undefined;
      return `memory: of the latest turns, learning failed for ${failed} and ${dropped} were dropped because too many waited (${waiting} wait now)`;
    },

    async close() {
      stopping.abort();
      cancelTimer?.();
      await caughtUp;
      await working;
    },
  };
}

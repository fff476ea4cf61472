/**
 * What stands behind `core_execute`: hands a task to the executor, brings its questions to the people who listen and their answers
 * back, and says what came of it.
 *
 * The executor knows a task again by the id of its call. So submitting may be repeated, and a turn that runs again after a crash takes
 * up the intent it had made.
 */
import { createHash } from 'node:crypto';
import { type Clock, wait } from '../../clock/clock.ts';
import { orAborted } from '../../clock/or-aborted.ts';
import type { Logger } from '../../log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { type ToolAnswer, type ToolCallContext, ToolFailure, TurnCancelled, textAnswer } from '../tools/surface.ts';
import type { Delegate } from '../tools/tool-set.ts';
import type { Approvers } from './approvers.ts';
import { createBell } from './bell.ts';
import {
  createExecutorClient,
  type ExecutorAddress,
  ExecutorUnreachable,
  type IntentState,
  type PendingGate,
} from './executor-client.ts';
import { createGateDesk } from './gate-desk.ts';
import { followIntent } from './intent-events.ts';
import { asksBack, isOver, renderOutcome, renderPending } from './outcome.ts';

export type DelegateOptions = {
  executor: ExecutorAddress;
  approvers: Approvers;
  clock: Clock;
  log: Logger;
  /** How long an answer is waited for; 30 minutes unless told. */
  waitMs?: number;
  /** How long a gate waits for somebody to listen before it is denied; 5 seconds unless told. */
  approverMs?: number;
};

export type ExecutorLink = {
  readonly delegate: Delegate;
  /** Answers a gate; rejects as the `answer` of `createGateDesk` does. */
  answer(intentId: string, nodeId: string, answer: GateAnswer): Promise<void>;
  /** Waits for what is still being told to the executor. */
  close(): Promise<void>;
};

const WAIT_MS = 30 * 60_000;
const APPROVER_MS = 5000;

/** Pauses between attempts to submit. */
const SUBMIT_AGAIN_MS = [250, 750, 2000];
/** The longest pause that an executor may ask for while a task is submitted. */
const LONGEST_PAUSE_MS = 30_000;

/** How often the executor is asked while events come, and while none can. */
const POLL_LIVE_MS = 10_000;
const POLL_MS = [500, 1000, 2000, 5000];
/** However many events come, the executor is asked no more often than this. */
const LOOK_GAP_MS = 50;

/** What a call's gates have come to. */
type Relayed = {
  /** Gates that somebody was there for. */
  readonly seen: Set<string>;
  /** Whether one was denied because nobody was. */
  unattended: boolean;
};

const NOBODY = 'nobody was listening on GET /events';
const TOO_LONG = 'what it would do is too long to be shown to a person';

/** The key under which the executor knows a call again. */
function idempotencyKey(callId: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(callId) ? callId : createHash('sha256').update(callId).digest('hex');
}

export function createExecutorLink(options: DelegateOptions): ExecutorLink {
  const { approvers, clock, log, waitMs = WAIT_MS, approverMs = APPROVER_MS } = options;
  const client = createExecutorClient(options.executor, clock);
  const desk = createGateDesk(client);
  const background = new Set<Promise<void>>();

  function inBackground(work: Promise<void>, what: string): void {
    const done = work
      .catch((err: unknown) => log.warn({ err }, `${what} failed`))
      .finally(() => background.delete(done));
    background.add(done);
  }

  /**
   * Submits a task, again and again where that may help. Once a request may have arrived the signal does not stop it: asking again is the
   * only way to learn the id under which the intent can be called off.
   */
  async function submit(prose: string, { turn, callId, signal }: ToolCallContext): Promise<string> {
    const request = { prose, idempotency_key: idempotencyKey(callId), conversation_id: turn.conversationId };
    let mayHaveRun = false;
    for (let tries = 0; ; tries++) {
      if (!mayHaveRun) signal.throwIfAborted();
      try {
        return await client.submit(request);
      } catch (thrown) {
        const unreachable = thrown instanceof ExecutorUnreachable;
        if (unreachable) mayHaveRun ||= thrown.mayHaveArrived;
        else if (!(thrown instanceof ReveilleError) || !thrown.retryable) throw thrown;
        const pause = SUBMIT_AGAIN_MS[tries];
        if (pause === undefined) {
          throw new ToolFailure(thrown.message, { mayHaveRun, repeatable: true, cause: thrown });
        }
        const asked = unreachable ? undefined : thrown.retryAfterSeconds;
        await wait(clock, Math.min((asked ?? 0) * 1000 || pause, LONGEST_PAUSE_MS), signal);
      }
    }
  }

  /** Denies a gate in nobody's name. Another answer that was faster is as good. */
  async function denyUnattended(intentId: string, nodeId: string, reason: string): Promise<void> {
    try {
      await desk.deny(intentId, nodeId, reason);
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError && thrown.code === 'conflict')) throw thrown;
    }
  }

  /** Brings the intent's questions to whoever listens, and denies them where nobody does. */
  async function relayGates(intentId: string, { turn, notify, signal }: ToolCallContext, relayed: Relayed) {
    const waiting = await client.gates(intentId, signal);
    desk.lapse(intentId, waiting, 'it was answered at the executor');
    const attend = async ({ nodeId, callSha256, isShowable }: PendingGate): Promise<void> => {
      if (!isShowable) return denyUnattended(intentId, nodeId, TOO_LONG);
      const key = `${nodeId} ${callSha256}`;
      if (relayed.seen.has(key)) return;
      const attended = await approvers.expect(turn.conversationId, approverMs, signal);
      signal.throwIfAborted();
      if (attended) {
        relayed.seen.add(key);
        return;
      }
      relayed.unattended = true;
      await denyUnattended(intentId, nodeId, NOBODY);
    };
    await Promise.all(waiting.filter((gate) => desk.open(intentId, gate, notify)).map(attend));
  }

  /** Follows an intent to its end, or until the time for waiting is over. */
  async function follow(intentId: string, context: ToolCallContext): Promise<ToolAnswer> {
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const bell = createBell(clock);
    const relayed: Relayed = { seen: new Set(), unattended: false };
    const began = clock.monotonic();
    // An answered gate is worth a look at once.
    const notify: ToolCallContext['notify'] = (notice) => {
      context.notify(notice);
      bell.ring();
    };
    const events = followIntent((end) => client.openEvents(intentId, end), { clock, signal, onHint: bell.ring });
    let state: IntentState | undefined;
    let missed = 0;
    try {
      for (let looks = 0; ; looks++) {
        try {
          state = await client.state(intentId, signal);
          if (isOver(state) || asksBack(state)) return renderOutcome(intentId, state, relayed.unattended);
          if (state.status !== 'drafting') await relayGates(intentId, { ...context, notify, signal }, relayed);
          missed = 0;
        } catch (thrown) {
          context.signal.throwIfAborted();
          if (thrown instanceof ReveilleError && !thrown.retryable && thrown.code !== 'conflict') {
            return lost(intentId, thrown);
          }
          if (!(thrown instanceof ReveilleError || thrown instanceof ExecutorUnreachable)) throw thrown;
          if (missed++ === 0) {
            log.warn({ intent_id: intentId, reason: thrown.message }, 'the executor does not answer; asking again');
            context.notify({ type: 'status', text: `${thrown.message}; asking again about intent ${intentId}` });
          }
        }
        const waited = clock.monotonic() - began;
        if (waited >= waitMs) {
          return renderPending(intentId, waited, {
            status: state?.status ?? 'the executor does not answer',
            questions: desk.openQuestions(intentId),
          });
        }
        const pause = events.live() && missed === 0 ? POLL_LIVE_MS : POLL_MS[Math.min(looks, POLL_MS.length - 1)]!;
        await wait(clock, LOOK_GAP_MS, signal);
        await bell.wait(Math.min(pause, waitMs - waited), signal);
        context.signal.throwIfAborted();
      }
    } finally {
      over.abort();
      if (state && isOver(state)) desk.lapse(intentId, [], `the intent is ${state.status}`);
    }
  }

  function lost(intentId: string, error: ReveilleError): ToolAnswer {
    const lines = [
      `The executor took the task as intent ${intentId}, but says nothing more about it: ${error.message}`,
      'It is not known whether it was carried out. Do not hand it over again; tell the user.',
    ];
    return textAnswer(lines.join('\n'), true);
  }

  /** Calls the intent off, when there is one and the turn will not be taken up again. */
  function callOff(submitted: Promise<string>, signal: AbortSignal): void {
    if (!(signal.reason instanceof TurnCancelled)) return;
    const cancel = async () => {
      const intentId = await submitted;
      await client.cancel(intentId);
      desk.lapse(intentId, [], 'its turn was cancelled');
      log.info({ intent_id: intentId }, 'the intent was called off with its turn');
    };
    inBackground(cancel(), 'calling an intent off');
  }

  return {
    async delegate(intent, context) {
      const submitted = submit(intent, context);
      // Whoever gives the call up does not wait for it any more.
      submitted.catch(() => {});
      try {
        const intentId = await orAborted(submitted, context.signal);
        log.info({ intent_id: intentId, turn_id: context.turn.id }, 'a task was handed to the executor');
        return await follow(intentId, context);
      } catch (thrown) {
        if (context.signal.aborted) {
          callOff(submitted, context.signal);
          throw context.signal.reason;
        }
        if (!(thrown instanceof ReveilleError)) throw thrown;
        if (thrown.code === 'unavailable') {
          throw new ToolFailure(thrown.message, { mayHaveRun: false, repeatable: false, cause: thrown });
        }
        return textAnswer(`The executor did not take the task: ${thrown.message}`, true);
      }
    },

    answer: desk.answer,

    async close() {
      await Promise.all(background);
    },
  };
}

/**
 * Follows an intent: shows its questions to the followers and returns its outcome.
 *
 * A turn of an alarm does not wait for absent people: its intent is parked and the turn ends. The executor has the
 * agent woken in the conversation when the intent has ended. An intent that exceeds the waiting time is parked too.
 */
import type { ExecutorClient, IntentState, Reply, WaitingGate } from '../../../executor/client.ts';
import { backoff } from '../../../kit/clock/backoff.ts';
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import { WakeSignal } from '../../../kit/clock/wake-signal.ts';
import { NoAnswer } from '../../../kit/http/caller.ts';
import type { ChangeHub } from '../../../kit/http/changed-ids.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { isIntentFinal } from '../../../wire/executor.ts';
import { type GateNotice, type ToolAnswer, type ToolCallContext, textAnswer } from '../tools/surface.ts';
import type { Approvers } from './approvers.ts';
import { type GateRegistry, isShowable } from './gate-registry.ts';
import { describeBlockedCalls, isSettled, type Pending, renderOutcome, renderPending } from './outcome.ts';

export type IntentFollowerOptions = {
  client: ExecutorClient;
  /** The events of the user's intents. */
  news: Pick<ChangeHub, 'follow'>;
  registry: GateRegistry;
  approvers: Approvers;
  clock: Clock;
  log: Logger;
  /** How long an answer is awaited; 30 minutes by default. */
  waitMs?: number;
  /** How long a gate waits for a listener before the intent is cancelled or parked; 5 seconds by default. */
  approverMs?: number;
  /** How long nothing is queried while no event arrives; 30 seconds by default. */
  safetyMs?: number;
};

const WAIT_MS = 30 * 60_000;
const APPROVER_MS = 5000;

/** A stream that stalls, and an executor that sends no events, must not keep a turn waiting. */
export const SAFETY_MS = 30_000;
/** Pauses before a failed query is repeated, unless an event comes first. */
const failedPauseMs = backoff({ first: 500, longest: SAFETY_MS });
/** The shortest interval between queries of the executor, however many events arrive. */
const QUERY_GAP_MS = 50;

/** The state of a call's gates. */
type FollowProgress = {
  /** Gates that had a listener. */
  readonly seen: Set<string>;
  /** Whether it was cancelled because there was none. */
  isCancelledUnattended: boolean;
  /**
   * Whether a gate waits without a possible approver: in a turn of an alarm, or where the intent cannot be cancelled.
   */
  lacksApprover: boolean;
  /** The last status text about the intent that is executed first. */
  behind: string | undefined;
  /** The waiting question of that intent, and how to answer it. */
  blocked: string | undefined;
};

const ANSWERED_AT_EXECUTOR = 'it was answered at the executor';
const NO_LISTENER = 'no client was listening on GET /events';
const TOO_LONG = 'its effect is too long to be shown to a person';

function lostIntent(intentId: string, error: ReveilleError): ToolAnswer {
  const lines = [
    `The executor took the task as intent ${intentId}, but says nothing more about it: ${error.message}`,
    'It is not known whether it was carried out. Do not hand it over again; report it to the user.',
  ];
  return textAnswer(lines.join('\n'), true);
}

/** @returns follows an intent until it has ended, or until waiting has no use; throws the signal's reason */
export function createIntentFollower(options: IntentFollowerOptions) {
  const { client, news, registry, approvers, clock, log, waitMs = WAIT_MS } = options;
  const { approverMs = APPROVER_MS, safetyMs = SAFETY_MS } = options;

  /**
   * Cancels an intent with a question that no present person can answer. Only a person answers; the submitter can only
   * cancel.
   *
   * @returns whether it has ended; a part of it may already have been executed, and then it waits
   */
  async function cancelIntent(intentId: string, reason: string): Promise<boolean> {
    try {
      await client.cancel(intentId, reason);
    } catch (thrown) {
      // An answer came first, or a call that cannot be undone had begun.
      if (thrown instanceof ReveilleError && thrown.code === 'conflict') return false;
      throw thrown;
    }
    await registry.lapse(intentId, [], reason);
    return true;
  }

  /** Adds the executor's waiting gates to the registry. @returns the open gates */
  async function registerGates(
    intentId: string,
    { turn, notify, signal }: ToolCallContext,
  ): Promise<Reply<WaitingGate>[]> {
    const waiting = await client.gates(intentId, signal);
    await registry.lapse(intentId, waiting, ANSWERED_AT_EXECUTOR);
    const audience = {
      conversationId: turn.conversationId,
      notify: (gate: GateNotice) => notify({ type: 'gate', gate }),
    };
    return waiting.filter((gate) => registry.open(intentId, gate, audience));
  }

  /**
   * Shows the intent's questions to the followers. Without a follower the intent is cancelled. In a turn of an alarm,
   * and where cancelling is too late, its questions keep waiting.
   */
  async function presentGates(intentId: string, context: ToolCallContext, progress: FollowProgress): Promise<void> {
    const { turn, signal } = context;
    const approverProblem = async (gate: Reply<WaitingGate>): Promise<string | undefined> => {
      if (!isShowable(gate)) return TOO_LONG;
      const key = `${gate.value.node_id} ${gate.value.displayed_sha256}`;
      // The follower of the question may have left since; in a turn of an alarm no client waits for the end.
      if (progress.seen.has(key) && turn.origin !== 'chronos') return undefined;
      const hasApprover = await approvers.waitFor(turn.conversationId, approverMs, signal);
      signal.throwIfAborted();
      if (hasApprover) progress.seen.add(key);
      else if (turn.origin === 'chronos') progress.lacksApprover = true;
      else return NO_LISTENER;
      return undefined;
    };
    const reasons = await Promise.all((await registerGates(intentId, context)).map(approverProblem));
    const reason = reasons.find((one) => one === TOO_LONG) ?? reasons.find((one) => one !== undefined);
    if (reason === undefined) return;
    if (!(await cancelIntent(intentId, reason))) progress.lacksApprover = true;
    else if (reason === NO_LISTENER) progress.isCancelledUnattended = true;
  }

  /** The questions of the intent that is executed first; none where the executor does not report them. */
  async function blockingQuestions(behind: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return describeBlockedCalls(behind, await client.gates(behind, signal));
    } catch (thrown) {
      signal.throwIfAborted();
      if (thrown instanceof ReveilleError) return undefined;
      throw thrown;
    }
  }

  /** An intent behind another one, which may wait for an approval itself. */
  async function reportQueuePosition(
    intentId: string,
    behind: string,
    context: ToolCallContext,
    progress: FollowProgress,
  ) {
    const { turn, notify, signal } = context;
    const questions = await blockingQuestions(behind, signal);
    const text = [
      `intent ${intentId} begins when ${behind} has ended`,
      ...(questions === undefined ? [] : [questions]),
    ].join('. ');
    if (progress.behind !== text) notify({ type: 'status', text });
    progress.behind = text;
    progress.blocked = questions;
    if (turn.origin !== 'chronos') return;
    progress.lacksApprover ||= !(await approvers.waitFor(turn.conversationId, approverMs, signal));
  }

  /** The text for the model about an ended or stopped intent; its questions wait no more. */
  async function renderSettled(
    intentId: string,
    state: Reply<IntentState>,
    { isCancelledUnattended }: FollowProgress,
  ): Promise<ToolAnswer> {
    if (isIntentFinal(state.value)) await registry.lapse(intentId, [], `the intent is ${state.value.status}`);
    return renderOutcome(intentId, state, isCancelledUnattended);
  }

  /** The text for the model about an intent that its turn does not wait for any more. */
  const pending = (
    intentId: string,
    state: Reply<IntentState> | undefined,
    more: Pick<Pending, 'parked' | 'waitedMs' | 'blocked'>,
  ) =>
    renderPending(intentId, {
      status: state?.value.status ?? 'the executor does not answer',
      queuedBehind: state?.value.queued_behind,
      questions: registry.openQuestions(intentId),
      ...more,
    });

  /** Stops waiting for an unfinished intent. The agent is woken at its end, if the executor supports that. */
  async function parkIntent(
    intentId: string,
    { turn, notify, signal }: ToolCallContext,
    progress: FollowProgress,
    waitedMs?: number,
  ) {
    const parked = await client.park(intentId, turn.conversationId, signal);
    const state = await client.state(intentId, signal);
    if (isSettled(state.value)) return renderSettled(intentId, state, progress);
    log.info({ intent_id: intentId, turn_id: turn.id, parked }, 'a turn ends before its intent does');
    if (parked) notify({ type: 'status', text: `intent ${intentId} is parked; the agent is woken when it has ended` });
    return pending(intentId, state, { parked, waitedMs, blocked: progress.blocked });
  }

  /** Like {@link parkIntent}, when the waiting time has passed, whatever the executor answers. */
  async function parkAfterTimeout(
    intentId: string,
    seen: Reply<IntentState> | undefined,
    context: ToolCallContext,
    progress: FollowProgress,
    waitedMs: number,
  ) {
    try {
      return await parkIntent(intentId, context, progress, waitedMs);
    } catch (err) {
      context.signal.throwIfAborted();
      log.warn({ err, intent_id: intentId }, 'an intent could not be parked');
      return pending(intentId, seen, { parked: false, waitedMs, blocked: progress.blocked });
    }
  }

  /** Reads the state of an intent and shows its questions. @returns the text for the model when waiting has no use */
  async function checkIntent(
    intentId: string,
    state: Reply<IntentState>,
    context: ToolCallContext,
    progress: FollowProgress,
  ) {
    if (isSettled(state.value)) return renderSettled(intentId, state, progress);
    const { parked, status, queued_behind: behind } = state.value;
    if (parked) {
      // An earlier run of this call has parked it, and was interrupted before it could report that.
      await registerGates(intentId, context);
      return pending(intentId, state, { parked: true });
    }
    progress.lacksApprover = false;
    progress.blocked = undefined;
    if (status !== 'drafting') await presentGates(intentId, context, progress);
    if (behind !== undefined) await reportQueuePosition(intentId, behind, context, progress);
    return progress.lacksApprover ? parkIntent(intentId, context, progress) : undefined;
  }

  /** Follows an intent to its end, or until waiting has no use. */
  async function follow(intentId: string, context: ToolCallContext): Promise<ToolAnswer> {
    const { signal } = context;
    const wakeSignal = new WakeSignal(clock);
    const progress: FollowProgress = {
      seen: new Set(),
      isCancelledUnattended: false,
      lacksApprover: false,
      behind: undefined,
      blocked: undefined,
    };
    const startedAt = clock.monotonic();
    // An answered gate is a reason for a query at once.
    const notify: ToolCallContext['notify'] = (notice) => {
      context.notify(notice);
      wakeSignal.notify();
    };
    let state: Reply<IntentState> | undefined;
    const leave = news.follow(({ isAll, ids }) => {
      // It begins when the one before it has ended, whose questions are shown meanwhile.
      const behind = state?.value.queued_behind;
      if (isAll || ids.has(intentId) || (behind !== undefined && ids.has(behind))) wakeSignal.notify();
    });
    let missed = 0;
    try {
      for (;;) {
        try {
          state = await client.state(intentId, signal);
          const answer = await checkIntent(intentId, state, { ...context, notify }, progress);
          if (answer) return answer;
          missed = 0;
        } catch (thrown) {
          context.signal.throwIfAborted();
          if (!(thrown instanceof ReveilleError)) throw thrown;
          const mayPass = thrown instanceof NoAnswer || thrown.retryable || thrown.code === 'conflict';
          if (!mayPass) return lostIntent(intentId, thrown);
          if (missed++ === 0) {
            log.warn({ intent_id: intentId, reason: thrown.message }, 'the executor does not answer; retrying');
            context.notify({ type: 'status', text: `${thrown.message}; querying intent ${intentId} again` });
          }
        }
        const waited = clock.monotonic() - startedAt;
        if (waited >= waitMs) return await parkAfterTimeout(intentId, state, { ...context, notify }, progress, waited);
        const pauseMs = missed > 0 ? failedPauseMs(missed) : safetyMs;
        await wait(clock, QUERY_GAP_MS, signal);
        await wakeSignal.sleepUntil(clock.now() + Math.min(pauseMs, waitMs - waited), signal);
        wakeSignal.reset();
        context.signal.throwIfAborted();
      }
    } finally {
      leave();
    }
  }

  return follow;
}

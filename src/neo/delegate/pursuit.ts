/**
 * Follows an intent: shows its questions to the followers and returns its outcome.
 *
 * A turn of an alarm does not wait for absent people: its intent is parked and the turn ends. The executor has the
 * agent woken in the conversation when the intent has ended. An intent that exceeds the waiting time is parked too.
 */
import {
  type ExecutorClient,
  followIntent,
  type IntentState,
  type Told,
  type WaitingGate,
} from '../../executor/client.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { NoAnswer } from '../../kit/http/caller.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isIntentOver } from '../../wire/executor.ts';
import { type GateNotice, type ToolAnswer, type ToolCallContext, textAnswer } from '../tools/surface.ts';
import type { Approvers } from './approvers.ts';
import { type GateDesk, isShowable } from './gate-desk.ts';
import { blockedWords, isSettled, type Pending, renderOutcome, renderPending } from './outcome.ts';

// Waits for a signal, with a time limit. A signal while no caller waits is not lost.

function createWakeSignal(clock: Clock) {
  let rung = false;
  let wake = () => {};
  return {
    notify(): void {
      rung = true;
      wake();
    },

    /**
     * Resolves at the next signal, at once when there was one since the last wait, after `withinMs`, or when the signal
     * aborts.
     */
    wait(withinMs: number, signal: AbortSignal): Promise<void> {
      return new Promise((resolve) => {
        const done = () => {
          cancel();
          signal.removeEventListener('abort', done);
          wake = () => {};
          rung = false;
          resolve();
        };
        const cancel = clock.after(withinMs, done);
        signal.addEventListener('abort', done);
        wake = done;
        if (rung || signal.aborted) done();
      });
    },
  };
}

export type PursuitOptions = {
  client: ExecutorClient;
  desk: GateDesk;
  approvers: Approvers;
  clock: Clock;
  log: Logger;
  /** How long an answer is awaited; 30 minutes by default. */
  waitMs?: number;
  /** How long a gate waits for a listener before the intent is cancelled or parked; 5 seconds by default. */
  approverMs?: number;
};

const WAIT_MS = 30 * 60_000;
const APPROVER_MS = 5000;

/** How often the executor is queried with an event stream, and without one. */
const POLL_LIVE_MS = 10_000;
const POLL_MS = [500, 1000, 2000, 5000];
/** The shortest interval between queries of the executor, however many events arrive. */
const LOOK_GAP_MS = 50;

/** The state of a call's gates. */
type Relayed = {
  /** Gates that had a listener. */
  readonly seen: Set<string>;
  /** Whether it was cancelled because there was none. */
  unattended: boolean;
  /**
   * Whether a gate waits without a possible approver: in a turn of an alarm, or where the intent cannot be cancelled.
   */
  deserted: boolean;
  /** The last status text about the intent that is executed first. */
  behind: string | undefined;
  /** The waiting question of that intent, and how to answer it. */
  blocked: string | undefined;
};

const ANSWERED_THERE = 'it was answered at the executor';
const NOBODY = 'no client was listening on GET /events';
const TOO_LONG = 'its effect is too long to be shown to a person';

function lost(intentId: string, error: ReveilleError): ToolAnswer {
  const lines = [
    `The executor took the task as intent ${intentId}, but says nothing more about it: ${error.message}`,
    'It is not known whether it was carried out. Do not hand it over again; report it to the user.',
  ];
  return textAnswer(lines.join('\n'), true);
}

/** @returns follows an intent until it has ended, or until waiting has no use; throws the signal's reason */
export function createPursuit(options: PursuitOptions) {
  const { client, desk, approvers, clock, log, waitMs = WAIT_MS, approverMs = APPROVER_MS } = options;

  /**
   * Cancels an intent with a question that no present person can answer. Only a person answers; the submitter can only
   * cancel.
   *
   * @returns whether it has ended; a part of it may already have been executed, and then it waits
   */
  async function callOff(intentId: string, reason: string): Promise<boolean> {
    try {
      await client.cancel(intentId, reason);
    } catch (thrown) {
      // An answer came first, or a call that cannot be undone had begun.
      if (thrown instanceof ReveilleError && thrown.code === 'conflict') return false;
      throw thrown;
    }
    await desk.lapse(intentId, [], reason);
    return true;
  }

  /** Adds the executor's waiting gates to the registry. @returns the open gates */
  async function takeGates(intentId: string, { turn, notify, signal }: ToolCallContext): Promise<Told<WaitingGate>[]> {
    const waiting = await client.gates(intentId, signal);
    await desk.lapse(intentId, waiting, ANSWERED_THERE);
    const place = { conversationId: turn.conversationId, tell: (gate: GateNotice) => notify({ type: 'gate', gate }) };
    return waiting.filter((gate) => desk.open(intentId, gate, place));
  }

  /**
   * Shows the intent's questions to the followers. Without a follower the intent is cancelled. In a turn of an alarm,
   * and where cancelling is too late, its questions keep waiting.
   */
  async function relayGates(intentId: string, context: ToolCallContext, relayed: Relayed): Promise<void> {
    const { turn, signal } = context;
    const attend = async (gate: Told<WaitingGate>): Promise<string | undefined> => {
      if (!isShowable(gate)) return TOO_LONG;
      const key = `${gate.value.node_id} ${gate.value.displayed_sha256}`;
      // The follower of the question may have left since; in a turn of an alarm no client waits for the end.
      if (relayed.seen.has(key) && turn.origin !== 'chronos') return undefined;
      const attended = await approvers.expect(turn.conversationId, approverMs, signal);
      signal.throwIfAborted();
      if (attended) relayed.seen.add(key);
      else if (turn.origin === 'chronos') relayed.deserted = true;
      else return NOBODY;
      return undefined;
    };
    const reasons = await Promise.all((await takeGates(intentId, context)).map(attend));
    const reason = reasons.find((one) => one === TOO_LONG) ?? reasons.find((one) => one !== undefined);
    if (reason === undefined) return;
    if (!(await callOff(intentId, reason))) relayed.deserted = true;
    else if (reason === NOBODY) relayed.unattended = true;
  }

  /** The questions of the intent that is executed first; none where the executor does not report them. */
  async function questionsAhead(behind: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return blockedWords(behind, await client.gates(behind, signal));
    } catch (thrown) {
      signal.throwIfAborted();
      if (thrown instanceof ReveilleError) return undefined;
      throw thrown;
    }
  }

  /** An intent behind another one, which may wait for an approval itself. */
  async function standInLine(intentId: string, behind: string, context: ToolCallContext, relayed: Relayed) {
    const { turn, notify, signal } = context;
    const asked = await questionsAhead(behind, signal);
    const text = [`intent ${intentId} begins when ${behind} has ended`, ...(asked === undefined ? [] : [asked])].join(
      '. ',
    );
    if (relayed.behind !== text) notify({ type: 'status', text });
    relayed.behind = text;
    relayed.blocked = asked;
    if (turn.origin !== 'chronos') return;
    relayed.deserted ||= !(await approvers.expect(turn.conversationId, approverMs, signal));
  }

  /** The text for the model about an ended or stopped intent; its questions wait no more. */
  async function settled(intentId: string, state: Told<IntentState>, { unattended }: Relayed): Promise<ToolAnswer> {
    if (isIntentOver(state.value)) await desk.lapse(intentId, [], `the intent is ${state.value.status}`);
    return renderOutcome(intentId, state, unattended);
  }

  /** The text for the model about an intent that its turn does not wait for any more. */
  const pending = (
    intentId: string,
    state: Told<IntentState> | undefined,
    more: Pick<Pending, 'parked' | 'waitedMs' | 'blocked'>,
  ) =>
    renderPending(intentId, {
      status: state?.value.status ?? 'the executor does not answer',
      queuedBehind: state?.value.queued_behind,
      questions: desk.openQuestions(intentId),
      ...more,
    });

  /** Stops waiting for an unfinished intent. The agent is woken at its end, if the executor supports that. */
  async function leave(
    intentId: string,
    { turn, notify, signal }: ToolCallContext,
    relayed: Relayed,
    waitedMs?: number,
  ) {
    const parked = await client.park(intentId, turn.conversationId, signal);
    const state = await client.state(intentId, signal);
    if (isSettled(state.value)) return settled(intentId, state, relayed);
    log.info({ intent_id: intentId, turn_id: turn.id, parked }, 'a turn ends before its intent does');
    if (parked) notify({ type: 'status', text: `intent ${intentId} is parked; the agent is woken when it has ended` });
    return pending(intentId, state, { parked, waitedMs, blocked: relayed.blocked });
  }

  /** Like {@link leave}, when the waiting time has passed, whatever the executor answers. */
  async function leaveAtLast(
    intentId: string,
    seen: Told<IntentState> | undefined,
    context: ToolCallContext,
    relayed: Relayed,
    waitedMs: number,
  ) {
    try {
      return await leave(intentId, context, relayed, waitedMs);
    } catch (err) {
      context.signal.throwIfAborted();
      log.warn({ err, intent_id: intentId }, 'an intent could not be parked');
      return pending(intentId, seen, { parked: false, waitedMs, blocked: relayed.blocked });
    }
  }

  /** Reads the state of an intent and shows its questions. @returns the text for the model when waiting has no use */
  async function look(intentId: string, state: Told<IntentState>, context: ToolCallContext, relayed: Relayed) {
    if (isSettled(state.value)) return settled(intentId, state, relayed);
    const { parked, status, queued_behind: behind } = state.value;
    if (parked) {
      // An earlier run of this call has parked it, and was interrupted before it could report that.
      await takeGates(intentId, context);
      return pending(intentId, state, { parked: true });
    }
    relayed.deserted = false;
    relayed.blocked = undefined;
    if (status !== 'drafting') await relayGates(intentId, context, relayed);
    if (behind !== undefined) await standInLine(intentId, behind, context, relayed);
    return relayed.deserted ? leave(intentId, context, relayed) : undefined;
  }

  /** Follows an intent to its end, or until waiting has no use. */
  async function follow(intentId: string, context: ToolCallContext): Promise<ToolAnswer> {
    const over = new AbortController();
    const signal = AbortSignal.any([context.signal, over.signal]);
    const wakeSignal = createWakeSignal(clock);
    const relayed: Relayed = {
      seen: new Set(),
      unattended: false,
      deserted: false,
      behind: undefined,
      blocked: undefined,
    };
    const began = clock.monotonic();
    // An answered gate is a reason for a query at once.
    const notify: ToolCallContext['notify'] = (notice) => {
      context.notify(notice);
      wakeSignal.notify();
    };
    const events = followIntent((end) => client.openEvents(intentId, end), {
      clock,
      signal,
      onHint: wakeSignal.notify,
    });
    let state: Told<IntentState> | undefined;
    let missed = 0;
    try {
      for (let looks = 0; ; looks++) {
        try {
          state = await client.state(intentId, signal);
          const told = await look(intentId, state, { ...context, notify, signal }, relayed);
          if (told) return told;
          missed = 0;
        } catch (thrown) {
          context.signal.throwIfAborted();
          if (!(thrown instanceof ReveilleError)) throw thrown;
          const mayPass = thrown instanceof NoAnswer || thrown.retryable || thrown.code === 'conflict';
          if (!mayPass) return lost(intentId, thrown);
          if (missed++ === 0) {
            log.warn({ intent_id: intentId, reason: thrown.message }, 'the executor does not answer; retrying');
            context.notify({ type: 'status', text: `${thrown.message}; querying intent ${intentId} again` });
          }
        }
        const waited = clock.monotonic() - began;
        if (waited >= waitMs) return await leaveAtLast(intentId, state, { ...context, notify }, relayed, waited);
        const pause = events.live() && missed === 0 ? POLL_LIVE_MS : POLL_MS[Math.min(looks, POLL_MS.length - 1)]!;
        await wait(clock, LOOK_GAP_MS, signal);
        await wakeSignal.wait(Math.min(pause, waitMs - waited), signal);
        context.signal.throwIfAborted();
      }
    } finally {
      over.abort();
    }
  }

  return follow;
}

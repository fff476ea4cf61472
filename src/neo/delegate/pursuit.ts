/**
 * Following an intent: its questions go to whoever listens, and what came of it comes back.
 *
 * A turn that an alarm began does not wait for people who are not there: its intent is parked, the turn ends, and the
 * executor has the agent woken in the conversation when the intent is over. So is one that has not come to its end
 * within the time for waiting.
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

// Waiting until something has happened, or for a time at most. A signal while nobody waits is not lost.

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
  /** How long an answer is waited for; 30 minutes unless told. */
  waitMs?: number;
  /** How long a gate waits for somebody to listen before the intent is called off or parked; 5 seconds unless told. */
  approverMs?: number;
};

const WAIT_MS = 30 * 60_000;
const APPROVER_MS = 5000;

/** How often the executor is asked while events come, and while none can. */
const POLL_LIVE_MS = 10_000;
const POLL_MS = [500, 1000, 2000, 5000];
/** However many events come, the executor is asked no more often than this. */
const LOOK_GAP_MS = 50;

/** What a call's gates have come to. */
type Relayed = {
  /** Gates that somebody was there for. */
  readonly seen: Set<string>;
  /** Whether it was called off because nobody was. */
  unattended: boolean;
  /**
   * Whether something waits, and nobody is there who could answer: in a turn that an alarm began, or where it cannot be
   * called off.
   */
  deserted: boolean;
  /** The last status text about the intent that is executed first. */
  behind: string | undefined;
  /** The question of that intent which waits, and how to answer it. */
  blocked: string | undefined;
};

const ANSWERED_THERE = 'it was answered at the executor';
const NOBODY = 'nobody was listening on GET /events';
const TOO_LONG = 'what it would do is too long to be shown to a person';

function lost(intentId: string, error: ReveilleError): ToolAnswer {
  const lines = [
    `The executor took the task as intent ${intentId}, but says nothing more about it: ${error.message}`,
    'It is not known whether it was carried out. Do not hand it over again; tell the user.',
  ];
  return textAnswer(lines.join('\n'), true);
}

/** @returns follows an intent until it is over, or until there is no use in waiting; throws the signal's reason */
export function createPursuit(options: PursuitOptions) {
  const { client, desk, approvers, clock, log, waitMs = WAIT_MS, approverMs = APPROVER_MS } = options;

  /**
   * Calls an intent off that asks what nobody is there to answer. Only a person answers; what its submitter can do is
   * not to want it any more.
   *
   * @returns whether it is over; something of it may have been carried out already, and then it waits
   */
  async function callOff(intentId: string, reason: string): Promise<boolean> {
    try {
      await client.cancel(intentId, reason);
    } catch (thrown) {
      // Somebody was faster than this, or a call that cannot be undone had begun.
      if (thrown instanceof ReveilleError && thrown.code === 'conflict') return false;
      throw thrown;
    }
    await desk.lapse(intentId, [], reason);
    return true;
  }

  /** Takes what waits at the executor to the desk. @returns the gates that are open */
  async function takeGates(intentId: string, { turn, notify, signal }: ToolCallContext): Promise<Told<WaitingGate>[]> {
    const waiting = await client.gates(intentId, signal);
    await desk.lapse(intentId, waiting, ANSWERED_THERE);
    const place = { conversationId: turn.conversationId, tell: (gate: GateNotice) => notify({ type: 'gate', gate }) };
    return waiting.filter((gate) => desk.open(intentId, gate, place));
  }

  /**
   * Brings the intent's questions to whoever listens. Where nobody does the intent is called off; in a turn that an
   * alarm began, and where that cannot be done any more, its questions are left to wait.
   */
  async function relayGates(intentId: string, context: ToolCallContext, relayed: Relayed): Promise<void> {
    const { turn, signal } = context;
    const attend = async (gate: Told<WaitingGate>): Promise<string | undefined> => {
      if (!isShowable(gate)) return TOO_LONG;
      const key = `${gate.value.node_id} ${gate.value.displayed_sha256}`;
      // Whoever was there for the question may have left since; beside an alarm's turn nobody waits for its end.
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

  /** The questions of the intent that is executed first; none where the executor does not say. */
  async function questionsAhead(behind: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return blockedWords(behind, await client.gates(behind, signal));
    } catch (thrown) {
      signal.throwIfAborted();
      if (thrown instanceof ReveilleError) return undefined;
      throw thrown;
    }
  }

  /** An intent that waits for another one, which may wait for an approval itself. */
  async function standInLine(intentId: string, behind: string, context: ToolCallContext, relayed: Relayed) {
    const { turn, notify, signal } = context;
    const asked = await questionsAhead(behind, signal);
    const text = [`intent ${intentId} begins when ${behind} is over`, ...(asked === undefined ? [] : [asked])].join(
      '. ',
    );
    if (relayed.behind !== text) notify({ type: 'status', text });
    relayed.behind = text;
    relayed.blocked = asked;
    if (turn.origin !== 'chronos') return;
    relayed.deserted ||= !(await approvers.expect(turn.conversationId, approverMs, signal));
  }

  /** What the model is told of an intent that has come to its end, or goes no further; its questions wait no more. */
  async function settled(intentId: string, state: Told<IntentState>, { unattended }: Relayed): Promise<ToolAnswer> {
    if (isIntentOver(state.value)) await desk.lapse(intentId, [], `the intent is ${state.value.status}`);
    return renderOutcome(intentId, state, unattended);
  }

  /** What the model is told of an intent that its turn does not wait for any more. */
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

  /**
   * Ends the waiting for an intent that is not over: the agent is woken when it is, where the executor can see to that.
   */
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
    if (parked) notify({ type: 'status', text: `intent ${intentId} is parked; the agent is woken when it is over` });
    return pending(intentId, state, { parked, waitedMs, blocked: relayed.blocked });
  }

  /** As {@link leave}, when the time for waiting is over whatever the executor says. */
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

  /**
   * Looks how an intent stands and brings its questions on. @returns what the model is told when there is nothing to
   * wait for
   */
  async function look(intentId: string, state: Told<IntentState>, context: ToolCallContext, relayed: Relayed) {
    if (isSettled(state.value)) return settled(intentId, state, relayed);
    const { parked, status, queued_behind: behind } = state.value;
    if (parked) {
      // An earlier run of this call has parked it, and was cut short before it could say so.
      await takeGates(intentId, context);
      return pending(intentId, state, { parked: true });
    }
    relayed.deserted = false;
    relayed.blocked = undefined;
    if (status !== 'drafting') await relayGates(intentId, context, relayed);
    if (behind !== undefined) await standInLine(intentId, behind, context, relayed);
    return relayed.deserted ? leave(intentId, context, relayed) : undefined;
  }

  /** Follows an intent to its end, or until there is no use in waiting. */
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
    // An answered gate is worth a look at once.
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
            log.warn({ intent_id: intentId, reason: thrown.message }, 'the executor does not answer; asking again');
            context.notify({ type: 'status', text: `${thrown.message}; asking again about intent ${intentId}` });
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

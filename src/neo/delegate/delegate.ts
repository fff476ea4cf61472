/**
 * What stands behind `core_execute`: hands a task to the executor, brings its questions to the people who listen and
 * their answers back, and says what came of it.
 *
 * The executor knows a task again by the id of its call. So submitting may be repeated, and a turn that runs again
 * after a crash takes up the intent it had made.
 */

import { createHash } from 'node:crypto';
import { createExecutorClient, type ExecutorClient } from '../../executor/client.ts';
import { type Clock, orAborted, wait } from '../../kit/clock/clock.ts';
import { NoAnswer, withinTime } from '../../kit/http/caller.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { ContextPiece, GateAnswer, IntentRequest } from '../../wire/executor.ts';
import type { RawJson } from '../../wire/json.ts';
import { type GateNotice, type ToolCallContext, ToolFailure, TurnCancelled, textAnswer } from '../tools/surface.ts';
import type { Delegate } from '../tools/tool-set.ts';
import type { Conversations } from './evidence.ts';
import { createGateDesk, type GateDesk, isShowable, type Place, type ShownGate } from './gate-desk.ts';
import { createPursuit, type PursuitOptions } from './pursuit.ts';

// Finding out which gates wait that no turn follows: of tasks that were parked, also where the question came up, or was
// answered, while Neo slept.

type SurveyOptions = {
  client: Pick<ExecutorClient, 'list' | 'gates'>;
  desk: Pick<GateDesk, 'open' | 'lapse' | 'shown'>;
  /** Whether a turn follows this intent and brings its gates to the desk itself. */
  isFollowed: (intentId: string) => boolean;
  tell: (conversationId: string) => Place['tell'];
};

/**
 * Brings the desk up to date for a conversation, or for all.
 *
 * @throws as the executor's client does
 */
async function surveyGates(
  conversationId: string | undefined,
  signal: AbortSignal,
  { client, desk, isFollowed, tell }: SurveyOptions,
): Promise<void> {
  // Other steps of an intent may be under way while one waits: it is not among those that wait then.
  const intents = new Map(desk.shown().map((gate) => [gate.intent_id, gate.conversation_id]));
  for (const { value } of await client.list({ status: 'awaiting_approval' }, signal))
    if (value.conversation_id !== undefined) intents.set(value.intent_id, value.conversation_id);
  const survey = async (intentId: string, where: string) => {
    const waiting = await client.gates(intentId, signal);
    await desk.lapse(intentId, waiting, 'it was answered at the executor');
    for (const gate of waiting) {
      if (isShowable(gate)) desk.open(intentId, gate, { conversationId: where, tell: tell(where) });
    }
  };
  await Promise.all(
    [...intents]
      .filter(([intentId, where]) => !isFollowed(intentId) && (conversationId ?? where) === where)
      .map(([intentId, where]) => survey(intentId, where)),
  );
}

/** Pauses between attempts to submit. */
const SUBMIT_AGAIN_MS = [250, 750, 2000];
/** The longest pause that an executor may ask for while a task is submitted. */
const LONGEST_PAUSE_MS = 30_000;

/** The key under which the executor knows a call again. */
function idempotencyKey(callId: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(callId) ? callId : createHash('sha256').update(callId).digest('hex');
}

/** The request for a task of a turn. */
function requestOf(prose: string, { turn, callId }: ToolCallContext, context: ContextPiece[]): IntentRequest {
  return {
    prose,
    idempotency_key: idempotencyKey(callId),
    conversation_id: turn.conversationId,
    origin: turn.origin === 'chronos' ? 'chronos' : 'person',
    ...(context.length === 0 ? {} : { context }),
  };
}

/**
 * Submits a task, again and again where that may help. Once a request may have arrived the signal does not stop it:
 * asking again is the only way to learn the id under which the intent can be called off.
 *
 * @returns the id of the intent
 * @throws ReveilleError with what the executor answered, ToolFailure when it did not answer, the signal's reason
 */
async function submitTask(
  request: IntentRequest,
  { client, clock, signal }: { client: Pick<ExecutorClient, 'submit'>; clock: Clock; signal: AbortSignal },
): Promise<string> {
  let mayHaveRun = false;
  for (let tries = 0; ; tries++) {
    if (!mayHaveRun) signal.throwIfAborted();
    try {
      return await client.submit(request);
    } catch (thrown) {
      if (thrown instanceof NoAnswer) mayHaveRun ||= thrown.mayHaveArrived;
      else if (!(thrown instanceof ReveilleError) || !thrown.retryable) throw thrown;
      const pause = SUBMIT_AGAIN_MS[tries];
      if (pause === undefined) {
        throw new ToolFailure(thrown.message, { mayHaveRun, repeatable: true, cause: thrown });
      }
      await wait(clock, Math.min((thrown.retryAfterSeconds ?? 0) * 1000 || pause, LONGEST_PAUSE_MS), signal);
    }
  }
}

/** The executor, a submitter's token there, and whose intents these are. */
export type ExecutorAddress = { readonly url: string; readonly token: string; readonly userId: string };

export type DelegateOptions = Omit<PursuitOptions, 'client' | 'desk'> & {
  executor: ExecutorAddress;
  conversations: Conversations;
};

export type ExecutorLink = {
  readonly delegate: Delegate;
  /** Answers a gate; rejects as the `answer` of `createGateDesk` does. */
  answer(intentId: string, nodeId: string, answer: GateAnswer): Promise<void>;
  /**
   * The gates of a conversation, or of all, that wait for an answer and have been told of before: for somebody who
   * begins to listen. Asks the executor, too, and tells those who listen of what is new. Never rejects.
   */
  openGates(conversationId: string | undefined, signal: AbortSignal): Promise<ShownGate[]>;
  /** The receipt of an intent of this agent's user, as its source text. @throws ReveilleError as the executor says */
  receipt(intentId: string): Promise<RawJson>;
  /** Waits for what is still being told to the executor. */
  close(): Promise<void>;
};

/** How long one exchange may take. */
const EXCHANGE_MS = 15_000;
/** Of a longer answer nothing is used. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** That the executor refuses us is not the fault of whoever asked us. */
function ownError(error: ReveilleError): ReveilleError {
  if (error.code !== 'unauthorized') return error;
  const remedy = 'NEO_EXECUTOR_TOKEN must be a submitter\'s token of this user ("reveille submitter add")';
  const why = `the executor refuses this agent (${error.message}); ${remedy}`;
  return new ReveilleError('unavailable', why, { retryable: false, cause: error });
}

export function createExecutorLink(options: DelegateOptions): ExecutorLink {
  const { conversations, clock, log } = options;
  const client = createExecutorClient({
    ...options.executor,
    attend: withinTime(clock, EXCHANGE_MS),
    maxBytes: MAX_ANSWER_BYTES,
    explain: ownError,
  });
  const desk = createGateDesk(client);
  const follow = createPursuit({ ...options, client, desk });
  const background = new Set<Promise<void>>();
  /** Intents that a turn follows. */
  const followed = new Set<string>();
  let surveyFails = false;

  function inBackground(work: Promise<void>, what: string): void {
    const done = work
      .catch((err: unknown) => log.warn({ err }, `${what} failed`))
      .finally(() => background.delete(done));
    background.add(done);
  }

  /** Calls the intent off, when there is one and the turn will not be taken up again. */
  function callOff(submitted: Promise<string>, signal: AbortSignal): void {
    if (!(signal.reason instanceof TurnCancelled)) return;
    const cancel = async () => {
      const intentId = await submitted;
      await client.cancel(intentId);
      await desk.lapse(intentId, [], 'its turn was cancelled');
      log.info({ intent_id: intentId }, 'the intent was called off with its turn');
    };
    inBackground(cancel(), 'calling an intent off');
  }

  return {
    async delegate(intent, context) {
      const request = requestOf(intent, context, conversations.evidence(context.turn));
      const submitted = submitTask(request, { client, clock, signal: context.signal });
      // Whoever gives the call up does not wait for it any more.
      submitted.catch(() => {});
      try {
        const intentId = await orAborted(submitted, context.signal);
        log.info({ intent_id: intentId, turn_id: context.turn.id }, 'a task was handed to the executor');
        followed.add(intentId);
        try {
          return await follow(intentId, context);
        } finally {
          followed.delete(intentId);
        }
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

    receipt: client.receipt,

    async openGates(conversationId, signal) {
      const before = desk.shown(conversationId);
      const tell = (where: string) => (gate: GateNotice) => conversations.tell(where, gate);
      try {
        const isFollowed = (intentId: string) => followed.has(intentId);
        await surveyGates(conversationId, signal, { client, desk, isFollowed, tell });
        surveyFails = false;
      } catch (err) {
        if (!signal.aborted && !surveyFails) log.warn({ err }, 'the executor does not say what waits for an answer');
        surveyFails ||= !signal.aborted;
      }
      const open = new Set(desk.shown(conversationId).map(({ intent_id, node_id }) => `${intent_id} ${node_id}`));
      return before.filter(({ intent_id, node_id }) => open.has(`${intent_id} ${node_id}`));
    },

    async close() {
      await Promise.all(background);
    },
  };
}

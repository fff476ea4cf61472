/**
 * The implementation of `core_execute`: submits a task to the executor, shows its gates to approvers, returns their
 * answers, and reports the outcome.
 *
 * The executor recognizes a task by the id of its call. Submitting may therefore be repeated, and a turn that runs
 * again after a crash continues with its existing intent.
 */

import { createHash } from 'node:crypto';
import { createExecutorClient, type ExecutorClient } from '../../../executor/client.ts';
import { type Clock, orAborted, wait } from '../../../kit/clock/clock.ts';
import { WakeSignal } from '../../../kit/clock/wake-signal.ts';
import { NoAnswer, withinTime } from '../../../kit/http/caller.ts';
import { ChangeHub } from '../../../kit/http/changed-ids.ts';
import type { FollowStreamOptions } from '../../../kit/http/follow-stream.ts';
import { TurnCancelled } from '../../../turns/agent.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { ContextPiece, GateAnswer, IntentRequest } from '../../../wire/executor.ts';
import type { IntentEvent } from '../../../wire/intent-event.ts';
import type { RawJson } from '../../../wire/json.ts';
import { type GateNotice, type ToolCallContext, ToolFailure, textAnswer } from '../tools/surface.ts';
import type { Delegate } from '../tools/tool-set.ts';
import type { Conversations } from './evidence.ts';
import {
  createGateRegistry,
  type GateAudience,
  type GateRegistry,
  isShowable,
  type ShownGate,
} from './gate-registry.ts';
import { createIntentFollower, type IntentFollowerOptions, SAFETY_MS } from './intent-follower.ts';

// Finds gates that no turn follows: of parked tasks, also when a gate was created or answered while Neo slept.

type SurveyOptions = {
  client: Pick<ExecutorClient, 'list' | 'gates'>;
  registry: Pick<GateRegistry, 'open' | 'lapse' | 'shown'>;
  /** Whether a turn follows this intent and adds its gates to the registry itself. */
  isFollowed: (intentId: string) => boolean;
  notifierFor: (conversationId: string) => GateAudience['notify'];
};

/**
 * Updates the registry for a conversation, or for all.
 *
 * @throws the errors of the executor's client
 */
async function surveyGates(
  conversationId: string | undefined,
  signal: AbortSignal,
  { client, registry, isFollowed, notifierFor }: SurveyOptions,
): Promise<void> {
  // Other steps of an intent may be running while one waits; it is then not listed as waiting.
  const intents = new Map(registry.shown().map((gate) => [gate.intent_id, gate.conversation_id]));
  for (const { value } of await client.list({ status: 'awaiting_approval' }, signal))
    if (value.conversation_id !== undefined) intents.set(value.intent_id, value.conversation_id);
  const survey = async (intentId: string, location: string) => {
    const waiting = await client.gates(intentId, signal);
    await registry.lapse(intentId, waiting, 'it was answered at the executor');
    for (const gate of waiting) {
      if (isShowable(gate)) registry.open(intentId, gate, { conversationId: location, notify: notifierFor(location) });
    }
  };
  await Promise.all(
    [...intents]
      .filter(([intentId, location]) => !isFollowed(intentId) && (conversationId ?? location) === location)
      .map(([intentId, location]) => survey(intentId, location)),
  );
}

/** Delays between attempts to submit. */
const SUBMIT_RETRY_MS = [250, 750, 2000];
/** The longest delay that an executor may request while a task is submitted. */
const LONGEST_DELAY_MS = 30_000;

/** The key by which the executor recognizes a repeated call. */
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
 * Submits a task and retries where that may help. Once a request may have arrived the signal does not stop it: only a
 * repetition returns the id with which the intent can be cancelled.
 *
 * @returns the id of the intent
 * @throws ReveilleError with the executor's answer, ToolFailure when it did not answer, the signal's reason
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
      const delayMs = SUBMIT_RETRY_MS[tries];
      if (delayMs === undefined) {
        throw new ToolFailure(thrown.message, { mayHaveRun, repeatable: true, cause: thrown });
      }
      await wait(clock, Math.min((thrown.retryAfterSeconds ?? 0) * 1000 || delayMs, LONGEST_DELAY_MS), signal);
    }
  }
}

/** The executor, a submitter's token, and the user of the intents. */
export type ExecutorAddress = { readonly url: string; readonly token: string; readonly userId: string };

export type DelegateOptions = Omit<IntentFollowerOptions, 'client' | 'news' | 'registry'> & {
  executor: ExecutorAddress;
  conversations: Conversations;
};

export type ExecutorLink = {
  readonly delegate: Delegate;
  /** Answers a gate; rejects like `answer` of `createGateRegistry`. */
  answer(intentId: string, nodeId: string, answer: GateAnswer): Promise<void>;
  /**
   * The waiting gates of a conversation, or of all, that have been shown before: for a client that opens a stream. Also
   * queries the executor, and sends new gates to the open streams. Never rejects.
   */
  openGates(conversationId: string | undefined, signal: AbortSignal): Promise<ShownGate[]>;
  /** Sends new gates of parked tasks to the open streams, and their results. @returns ends it */
  watchGates(): () => void;
  /** The receipt of an intent of this agent's user, as its source text. @throws ReveilleError the executor's error */
  receipt(intentId: string): Promise<RawJson>;
  /** Waits for pending messages to the executor. */
  close(): Promise<void>;
};

/** The time limit of one exchange. */
const EXCHANGE_MS = 15_000;
/** The shortest interval between surveys of the gates, however many events arrive. */
const SURVEY_GAP_MS = 50;
/** A longer answer is dropped. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** A refusal of Neo's own credentials is not an error of Neo's caller. */
function ownError(error: ReveilleError): ReveilleError {
  if (error.code !== 'unauthorized') return error;
  const remedy = 'NEO_EXECUTOR_TOKEN must be a submitter\'s token of this user ("reveille submitter add")';
  const message = `the executor refuses this agent (${error.message}); ${remedy}`;
  return new ReveilleError('unavailable', message, { retryable: false, cause: error });
}

/** Events of single calls are omitted: they change neither the status of an intent nor its gates. */
async function* intentEvents(
  client: Pick<ExecutorClient, 'events'>,
  options: FollowStreamOptions,
): AsyncGenerator<IntentEvent> {
  for await (const event of client.events(options)) if (!event.type.startsWith('step.')) yield event;
}

export function createExecutorLink(options: DelegateOptions): ExecutorLink {
  const { conversations, clock, log } = options;
  const client = createExecutorClient({
    ...options.executor,
    attend: withinTime(clock, EXCHANGE_MS),
    maxBytes: MAX_ANSWER_BYTES,
    explain: ownError,
    clock,
  });
  const news = new ChangeHub({ events: (options) => intentEvents(client, options), clock });
  const registry = createGateRegistry(client);
  const follow = createIntentFollower({ ...options, client, news, registry });
  const background = new Set<Promise<void>>();
  /** Intents that a turn follows. */
  const followed = new Set<string>();
  let surveyFailed = false;
  /** The readers of {@link ExecutorLink.watchGates}, and the end of their common survey. */
  let watchers = 0;
  let endWatch = () => {};

  /** Updates the registry, see {@link surveyGates}. Never rejects. */
  async function survey(conversationId: string | undefined, signal: AbortSignal): Promise<void> {
    const notifierFor = (location: string) => (gate: GateNotice) => conversations.notifyGate(location, gate);
    try {
      const isFollowed = (intentId: string) => followed.has(intentId);
      await surveyGates(conversationId, signal, { client, registry, isFollowed, notifierFor });
      surveyFailed = false;
    } catch (err) {
      if (!signal.aborted && !surveyFailed) log.warn({ err }, 'the executor does not list the waiting gates');
      surveyFailed ||= !signal.aborted;
    }
  }

  /** Surveys all gates after each event, until the signal aborts: no turn waits beside a parked task. */
  async function surveyAfterEvents(signal: AbortSignal): Promise<void> {
    const wakeSignal = new WakeSignal(clock);
    const leave = news.follow(() => wakeSignal.notify());
    signal.addEventListener('abort', leave);
    while (!signal.aborted) {
      // The events may be cut off without a sign.
      await wakeSignal.sleepUntil(clock.now() + SAFETY_MS, signal);
      wakeSignal.reset();
      if (!signal.aborted) await survey(undefined, signal);
      await wait(clock, SURVEY_GAP_MS, signal);
    }
  }

  function inBackground(work: Promise<void>, what: string): void {
    const done = work
      .catch((err: unknown) => log.warn({ err }, `${what} failed`))
      .finally(() => background.delete(done));
    background.add(done);
  }

  /** Cancels the intent if there is one and the turn will not continue. */
  function cancelIntent(submitted: Promise<string>, signal: AbortSignal): void {
    if (!(signal.reason instanceof TurnCancelled)) return;
    const cancel = async () => {
      const intentId = await submitted;
      await client.cancel(intentId);
      await registry.lapse(intentId, [], 'its turn was cancelled');
      log.info({ intent_id: intentId }, 'the intent was cancelled with its turn');
    };
    inBackground(cancel(), 'cancelling an intent');
  }

  return {
    async delegate(intent, context) {
      const request = requestOf(intent, context, conversations.evidence(context.turn));
      const submitted = submitTask(request, { client, clock, signal: context.signal });
      // A caller that aborts does not wait for it any more.
      submitted.catch(() => {});
      try {
        const intentId = await orAborted(submitted, context.signal);
        log.info({ intent_id: intentId, turn_id: context.turn.id }, 'a task was submitted to the executor');
        followed.add(intentId);
        try {
          return await follow(intentId, context);
        } finally {
          followed.delete(intentId);
        }
      } catch (thrown) {
        if (context.signal.aborted) {
          cancelIntent(submitted, context.signal);
          throw context.signal.reason;
        }
        if (!(thrown instanceof ReveilleError)) throw thrown;
        if (thrown.code === 'unavailable') {
          throw new ToolFailure(thrown.message, { mayHaveRun: false, repeatable: false, cause: thrown });
        }
        return textAnswer(`The executor did not accept the task: ${thrown.message}`, true);
      }
    },

    answer: registry.answer,

    receipt: client.receipt,

    async openGates(conversationId, signal) {
      const before = registry.shown(conversationId);
      await survey(conversationId, signal);
      const open = new Set(registry.shown(conversationId).map(({ intent_id, node_id }) => `${intent_id} ${node_id}`));
      return before.filter(({ intent_id, node_id }) => open.has(`${intent_id} ${node_id}`));
    },

    watchGates() {
      if (watchers++ === 0) {
        const over = new AbortController();
        endWatch = () => over.abort();
        inBackground(surveyAfterEvents(over.signal), 'following the gates');
      }
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        if (--watchers === 0) endWatch();
      };
    },

    async close() {
      endWatch();
      await Promise.all(background);
    },
  };
}

/**
 * The executor's outbox: a notification when a question waits and the person may be absent, and a wake when a parked
 * intent ends. A message is written in the transaction that causes it. A slow receiver delays no other message.
 */
import type { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import type { Logger } from '../../kit/log/log.ts';
import { postNotification, signedHeaders } from '../../kit/outbox/notification-post.ts';
import { runNotificationProgram } from '../../kit/outbox/notification-program.ts';
import { createOutbox, type Delivery, type Outbox, type OutboxStore } from '../../kit/outbox/outbox.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type gateSchema, isIntentFinal } from '../../wire/executor.ts';
import type { IntentReceipt } from '../../wire/intent-receipt.ts';
import { encodeJson } from '../../wire/json.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ExecutorConfig } from '../config.ts';
import type { ExecutorRail, IntentView } from '../rail.ts';
import type { SigningKey } from '../receipt/chain.ts';
import { createWaker, wakeMessage, wakePayload } from './wake.ts';

export type OutboxMessage = {
  /** The same on every attempt, so that the receiver can recognize a repetition. */
  readonly id: string;
  readonly kind: 'notify' | 'wake';
  readonly user: string;
  readonly intentId: string;
  /** Of a `notify`. */
  readonly nodeId: string | undefined;
  /** Of a `wake`: the conversation that the agent is woken in. */
  readonly conversationId: string | undefined;
  readonly attempts: number;
};

export type ExecutorOutboxOptions = {
  readonly messages: OutboxStore<OutboxMessage>;
  readonly rail: Pick<ExecutorRail, 'view' | 'gates' | 'receipt'>;
  readonly config: Pick<ExecutorConfig, 'notify' | 'chronos'>;
  /** The executor's own. */
  readonly key: SigningKey;
  /** The environment from which a command gets an allow-list. */
  readonly variables: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1); spreads retries. */
  readonly random: () => number;
};

type Webhook = NonNullable<ExecutorConfig['notify']['webhook']>;

/** Messages that are delivered at the same time. */
const CONCURRENCY = 8;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** About a day with these pauses; a question that waits longer has its own expiry. */
const MOST_NOTICES = 104;

class Messenger {
  readonly #options: ExecutorOutboxOptions;
  readonly #wake: ReturnType<typeof createWaker> | undefined;
  /** For messages with two receivers: the receivers that this process has already served. */
  readonly #delivered = new Map<string, Set<string>>();

  constructor(options: ExecutorOutboxOptions) {
    this.#options = options;
    const { config, key, clock } = options;
    this.#wake = config.chronos && createWaker({ chronos: config.chronos, key, clock });
  }

  async deliver(message: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    try {
      const delivery = await (message.kind === 'wake'
        ? this.#wakeAgent(message, signal)
        : this.#notify(message, signal));
      if (delivery.result !== 'later') this.#delivered.delete(message.id);
      return delivery;
    } catch (thrown) {
      const isMissing = thrown instanceof ReveilleError && thrown.code === 'not_found';
      if (isMissing) return { result: 'drop', why: thrown.message };
      throw thrown;
    }
  }

  async #wakeAgent({ user, intentId, conversationId }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const { rail } = this.#options;
    const view = rail.view(user, intentId);
    // An intent with a pending clarification is final, too.
    if (!isIntentFinal(view) && view.clarify === undefined)
      return { result: 'later', why: `the intent is ${view.status}` };
    if (conversationId === undefined) return { result: 'drop', why: 'it names no conversation' };
    if (this.#wake === undefined) {
      return { result: 'later', slow: true, why: 'EXECUTOR_CHRONOS_URL is not set, so no agent can be woken' };
    }
    const message = wakeMessage(view, rail.receipt(user, intentId));
    return this.#wake({ user, conversationId, intentId, message, payload: wakePayload(view) }, signal);
  }

  async #notify({ id, user, intentId, nodeId }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const { rail, config, variables, clock } = this.#options;
    const gate = rail.gates(user, intentId).find(({ node_id }) => node_id === nodeId);
    if (gate === undefined) return { result: 'drop', why: 'the question is no longer pending' };
    const body = noticeText(user, rail.view(user, intentId), gate, rail.receipt(user, intentId));
    const { webhook, command } = config.notify;
    if (!webhook && !command) {
      const unset = 'neither EXECUTOR_NOTIFY_URL nor EXECUTOR_NOTIFY_COMMAND is set';
      return { result: 'drop', why: `${unset}; the question remains pending` };
    }
    const delivered = this.#delivered.get(id) ?? new Set();
    this.#delivered.set(id, delivered);
    const once = async (receiver: string, send: () => Promise<Delivery>): Promise<Delivery> => {
      if (delivered.has(receiver)) return { result: 'done' };
      const delivery = await send();
      if (delivery.result !== 'later') delivered.add(receiver);
      return delivery;
    };
    const deliveries = await Promise.all([
      ...(webhook ? [once('webhook', () => this.#post(webhook, { id, body }, signal))] : []),
      ...(command ? [once('command', () => runNotificationProgram(command, body, { variables, clock, signal }))] : []),
    ]);
    const failed = deliveries.filter((delivery) => delivery.result === 'later');
    if (failed.length > 0) return { result: 'later', why: failed.map(({ why }) => why).join('; ') };
    return deliveries.find(({ result }) => result === 'drop') ?? { result: 'done' };
  }

  #post({ url, secret }: Webhook, message: { id: string; body: string }, signal: AbortSignal): Promise<Delivery> {
    const { clock } = this.#options;
    const headers = { ...signedHeaders(secret, message, clock), 'content-type': 'application/json' };
    return postNotification(
      { who: 'the webhook', url: new URL(url), headers, body: message.body },
      { transport: plainTransport, clock, signal },
    );
  }
}

/**
 * Creates the delivery of the executor's outbox. Closing aborts deliveries in progress; the next process repeats them.
 */
export function createExecutorOutbox(options: ExecutorOutboxOptions): Outbox {
  const { messages, clock, log, random } = options;
  const messenger = new Messenger(options);
  return createOutbox<OutboxMessage>({
    store: messages,
    deliver: (message, signal) => messenger.deliver(message, signal),
    now: () => clock.now(),
    ...{ clock, log, random, concurrency: CONCURRENCY },
    ...{ firstPauseMs: FIRST_PAUSE_MS, longestPauseMs: LONGEST_PAUSE_MS, lastRoundMs: 0 },
    mostAttempts: ({ kind }) => (kind === 'notify' ? MOST_NOTICES : undefined),
    noun: 'a message of the executor',
    about: ({ id: message, kind, user, intentId: intent }) => ({ message, kind, user, intent }),
  });
}

export type WaitingGate = z.output<typeof gateSchema>;

const NOTICE_TYPE = 'reveille.gate.asked';

/** The last envelope that records the question; a question can be asked again. */
function askedOf({ envelopes }: IntentReceipt, nodeId: string): Readonly<Record<string, unknown>> | undefined {
  return envelopes.findLast(({ kind, body }) => kind === 'gate.asked' && body.node_id === nodeId)?.body;
}

/** One JSON object, the same on every attempt. @param user the user of the intent */
function noticeText(user: string, view: IntentView, gate: WaitingGate, receipt: IntentReceipt): string {
  const asked = askedOf(receipt, gate.node_id);
  const { intent_id, conversation_id, origin, parked } = view;
  return encodeJson({
    type: NOTICE_TYPE,
    timestamp: asked?.at,
    data: {
      ...{ user_id: user, intent_id, node_id: gate.node_id, conversation_id, origin, parked },
      ...{ question: gate.question, options: gate.options, call: gate.call, expires_at: asked?.expires_at },
      answer_with: `reveille intent approve ${intent_id} ${gate.node_id}`,
    },
  });
}

/**
 * What the executor owes others: a notice when a question waits and nobody may be there, a wake when an intent that was
 * parked is over. A message is written with what caused it in one transaction. A receiver that hangs delays no other
 * message.
 */

import type { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import type { Logger } from '../../kit/log/log.ts';
import { postNotice, signedHeaders } from '../../kit/outbox/notice-post.ts';
import { runNotice } from '../../kit/outbox/notice-program.ts';
import { createOutbox, type Delivery, type Outbox, type OutboxStore } from '../../kit/outbox/outbox.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type gateSchema, isIntentOver } from '../../wire/executor.ts';
import type { IntentReceipt } from '../../wire/intent-receipt.ts';
import { encodeJson } from '../../wire/json.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ExecutorConfig } from '../config.ts';
import type { ExecutorRail, IntentView } from '../rail.ts';
import type { SigningKey } from '../receipt/signing-key.ts';
import { createWaker } from './wake.ts';
import { wakeMessage, wakePayload } from './wake-message.ts';

export type OutboxMessage = {
  /** The same on every attempt: the receiver can tell a repetition by it. */
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
  /** What a command gets an allow-list of. */
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
/** With these pauses about a day; a question that waits longer has an end of its own. */
const MOST_NOTICES = 104;

class Messenger {
  readonly #options: ExecutorOutboxOptions;
  readonly #wake: ReturnType<typeof createWaker> | undefined;
  /** Of messages with two receivers, those that this process knows to have taken the notice. */
  readonly #taken = new Map<string, Set<string>>();

  constructor(options: ExecutorOutboxOptions) {
    this.#options = options;
    const { config, key, clock } = options;
    this.#wake = config.chronos && createWaker({ chronos: config.chronos, key, clock });
  }

  async deliver(message: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    try {
      const delivery = await (message.kind === 'wake' ? this.#wakeUp(message, signal) : this.#notify(message, signal));
      if (delivery.result !== 'later') this.#taken.delete(message.id);
      return delivery;
    } catch (thrown) {
      const isGone = thrown instanceof ReveilleError && thrown.code === 'not_found';
      if (isGone) return { result: 'drop', why: thrown.message };
      throw thrown;
    }
  }

  async #wakeUp({ user, intentId, conversationId }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const { rail } = this.#options;
    const view = rail.view(user, intentId);
    // An intent that the executor has asked back about goes no further either.
    if (!isIntentOver(view) && view.clarify === undefined)
      return { result: 'later', why: `the intent is ${view.status}` };
    if (conversationId === undefined) return { result: 'drop', why: 'it names no conversation' };
    if (this.#wake === undefined) {
      return { result: 'later', slow: true, why: 'EXECUTOR_CHRONOS_URL is not set, so nobody can be woken' };
    }
    const message = wakeMessage(view, rail.receipt(user, intentId));
    return this.#wake({ user, conversationId, intentId, message, payload: wakePayload(view) }, signal);
  }

  async #notify({ id, user, intentId, nodeId }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const { rail, config, variables, clock } = this.#options;
    const gate = rail.gates(user, intentId).find(({ node_id }) => node_id === nodeId);
    if (gate === undefined) return { result: 'drop', why: 'the question does not wait any more' };
    const body = noticeText(user, rail.view(user, intentId), gate, rail.receipt(user, intentId));
    const { webhook, command } = config.notify;
    if (!webhook && !command) {
      const unset = 'neither EXECUTOR_NOTIFY_URL nor EXECUTOR_NOTIFY_COMMAND is set';
      return { result: 'drop', why: `${unset}; the question waits all the same` };
    }
    const taken = this.#taken.get(id) ?? new Set();
    this.#taken.set(id, taken);
    const once = async (receiver: string, tell: () => Promise<Delivery>): Promise<Delivery> => {
      if (taken.has(receiver)) return { result: 'done' };
      const delivery = await tell();
      if (delivery.result !== 'later') taken.add(receiver);
      return delivery;
    };
    const told = await Promise.all([
      ...(webhook ? [once('webhook', () => this.#post(webhook, { id, body }, signal))] : []),
      ...(command ? [once('command', () => runNotice(command, body, { variables, clock, signal }))] : []),
    ]);
    const failed = told.filter((delivery) => delivery.result === 'later');
    if (failed.length > 0) return { result: 'later', why: failed.map(({ why }) => why).join('; ') };
    return told.find(({ result }) => result === 'drop') ?? { result: 'done' };
  }

  #post({ url, secret }: Webhook, message: { id: string; body: string }, signal: AbortSignal): Promise<Delivery> {
    const { clock } = this.#options;
    const headers = { ...signedHeaders(secret, message, clock), 'content-type': 'application/json' };
    return postNotice(
      { who: 'the webhook', url: new URL(url), headers, body: message.body },
      { transport: plainTransport, clock, signal },
    );
  }
}

/** Makes the delivery of the executor's outbox. Closing it aborts what is under way; the next process takes that up. */
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

/** The envelope that says that the question was asked; the last one, for it can be asked anew. */
function askedOf({ envelopes }: IntentReceipt, nodeId: string): Readonly<Record<string, unknown>> | undefined {
  return envelopes.findLast(({ kind, body }) => kind === 'gate.asked' && body.node_id === nodeId)?.body;
}

/**
 * One JSON object, the same on every attempt.
 *
 * @param user whose intent it is
 */
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

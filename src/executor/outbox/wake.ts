/**
 * Wakes the agent that parked an intent: sets an alarm in chronosd with the executor's own key under the user's label.
 * The idempotency key makes all attempts one alarm. Its message and payload are the same text on every attempt.
 */
import { createChronosClient } from '../../chronos/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';
import { clip } from '../../kit/text/excerpt.ts';
import { didOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { ReceiptPointer } from '../../wire/executor.ts';
import type { IntentReceipt } from '../../wire/intent-receipt.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import type { IntentState, IntentView } from '../rail.ts';
import type { SigningKey } from '../receipt/chain.ts';

type WakeOptions = {
  readonly chronos: { readonly url: string; readonly token: string };
  readonly key: SigningKey;
  readonly clock: Clock;
};

type Wake = {
  readonly user: string;
  readonly conversationId: string;
  readonly intentId: string;
  readonly message: string;
  readonly payload: RawJson;
};

const DELAY_SECONDS = 1;
const LABEL = 'task ended';

function deliveryFor(thrown: unknown, { user, intentId }: Wake, publicKey: string): Delivery {
  if (!(thrown instanceof ReveilleError)) throw thrown;
  const { code, message, retryable } = thrown;
  // An earlier attempt set it, before the intent's outcome was reconciled.
  if (code === 'conflict') return { result: 'drop', why: `an alarm intent-${intentId} already exists: ${message}` };
  if (code === 'forbidden') {
    const remedy = `enrol it with: reveille agent enroll --label ${user} --public-key ${publicKey}`;
    return { result: 'later', slow: true, why: `chronosd does not accept the executor's key for ${user}; ${remedy}` };
  }
  if (code === 'unauthorized') {
    const remedy = 'EXECUTOR_CHRONOS_TOKEN must be the CHRONOS_TOKEN of the chronosd at EXECUTOR_CHRONOS_URL';
    return { result: 'later', slow: true, why: `chronosd rejects the executor's token (${message}); ${remedy}` };
  }
  return { result: 'later', slow: !retryable, why: message };
}

/** Sets the alarm once. @returns the delivery result */
export function createWaker({ chronos, key, clock }: WakeOptions) {
  return async (wake: Wake, signal: AbortSignal): Promise<Delivery> => {
    const { user, conversationId, intentId, message, payload } = wake;
    try {
      // Each call proves the key again, because no session is kept.
      const identity = { ...key, did: didOf(user, key.publicKeyHex) };
      const client = createChronosClient({ ...chronos, identity, clock });
      await client.createAlarm(
        {
          kind: 'once',
          delay_seconds: DELAY_SECONDS,
          label: LABEL,
          wake_message: message,
          conversation_id: conversationId,
          payload,
          idempotency_key: `intent-${intentId}`,
        },
        { signal },
      );
      return { result: 'done' };
    } catch (thrown) {
      return deliveryFor(thrown, wake, key.publicKeyHex);
    }
  };
}

/** Together below the 64 KiB of an alarm's message, even when JSON escapes a character with six. In UTF-16 units. */
const LONGEST_TASK = 1000;
const LONGEST_ANSWER = 300;
const LONGEST_REASON = 2000;
/** A longer result is omitted: a payload has 64 KiB, and a character may take six bytes. */
const LONGEST_RESULT = 8000;
/** Number of decisions in the message, the latest ones. */
const DECISIONS_MAX = 10;

function taskOf({ prose, intent }: IntentView): string {
  // A JSON string stays on one line, whatever it contains.
  if (prose !== undefined) return JSON.stringify(clip(prose, LONGEST_TASK));
  return intent === undefined ? 'an intent given as JSON' : JSON.stringify(clip(intent.verb, LONGEST_TASK));
}

/** Replaces line breaks, so that the text stays on one line. */
const inLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();

function decisionOf({ kind, body }: IntentReceipt['envelopes'][number]): string | undefined {
  const { node_id: step, at, by, answer, approved } = body;
  if (kind === 'gate.expired') return `The question about the step ${step} expired at ${at} without an answer.`;
  if (kind !== 'gate.answered') return undefined;
  const withAnswer =
    typeof answer === 'string' ? `, with the answer ${JSON.stringify(clip(answer, LONGEST_ANSWER))}` : '';
  return `The step ${step} was ${approved === true ? 'approved' : 'denied'} by ${by} at ${at}${withAnswer}.`;
}

/** The decisions in chronological order. */
function decisionsOf({ envelopes }: IntentReceipt): string[] {
  const decisions = envelopes.map(decisionOf).filter((decision) => decision !== undefined);
  const omitted = decisions.length - DECISIONS_MAX;
  return [
    ...(omitted > 0 ? [`${omitted} earlier decisions are in the receipt.`] : []),
    ...decisions.slice(-DECISIONS_MAX),
  ];
}

const reasonOf = ({ error }: IntentState) =>
  error === undefined ? '' : ` Reason: ${clip(inLine(error.message), LONGEST_REASON)}`;

/** The outcome and its consequence for the agent. */
function outcomeOf(view: IntentView): string[] {
  const { status, clarify, intent_id: id } = view;
  if (clarify !== undefined) {
    return [
      `It was not planned, and nothing was carried out. The executor asks: ${clip(inLine(clarify), LONGEST_REASON)}`,
      'Ask a person; submit a new task with their answer.',
    ];
  }
  switch (status) {
    case 'completed':
      return [
        'It was completed; the payload contains the results of the tools.',
        'It is done: do not submit it again.',
      ];
    case 'denied':
      return [`It was denied.${reasonOf(view)}`, 'Do not submit it again unless a person asks for it.'];
    case 'cancelled':
      return [`It was cancelled.${reasonOf(view)}`, 'Do not submit it again unless a person asks for it.'];
    case 'unknown':
      return [
        `Its outcome is unknown: a step may or may not have been carried out.${reasonOf(view)}`,
        `Do not submit it again: it could be done twice. A person has to check; "reveille intent reconcile ${id}" queries the tools again.`,
      ];
    default:
      return [`It failed.${reasonOf(view)}`, 'Do not submit it again unless a person asks for it.'];
  }
}

/**
 * The payload of the alarm. Output of tools is here, as data, and not in the message, which the agent reads as its own
 * words.
 */
export function wakePayload({ intent_id, status, result, receipt }: IntentView): RawJson {
  const base = { intent_id, status, receipt };
  const full = encodeJson({ ...base, ...(result === undefined ? {} : { result }) });
  if (full.length <= LONGEST_RESULT) return new RawJson(full);
  return new RawJson(encodeJson({ ...base, result_left_out: `it is ${full.length} characters long` }));
}

const receiptText = ({ sha256, path }: ReceiptPointer) =>
  `Its receipt has the digest ${sha256}; a person fetches it with GET ${path} from this agent.`;

export function wakeMessage(view: IntentView, receipt: IntentReceipt): string {
  return [
    `A task that I submitted to the executor and did not wait for has ended: intent ${view.intent_id}.`,
    `The task: ${taskOf(view)}`,
    ...decisionsOf(receipt),
    ...outcomeOf(view),
    ...(view.receipt === undefined ? [] : [receiptText(view.receipt)]),
    'This message is from the executor.',
  ].join('\n');
}
